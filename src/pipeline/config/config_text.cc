#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "pipeline/config/config.h"
#include "pipeline/config/config_graph.h"

namespace portico::pipeline {
namespace {

// Of a value, of one in it, or of what it is in.
bool IsOverridden(const Overrides& overrides, const std::string& path) {
  return std::any_of(overrides.begin(), overrides.end(), [&path](const auto& override) {
    const std::string& set = override.first;
    return set == path || set.starts_with(path + ".") || path.starts_with(set + ".");
  });
}

// Lines of `key: value`, each with where its value is from.
class Lines {
 public:
  explicit Lines(const Overrides& overrides) : overrides_(overrides) {}

  void Add(std::string_view indent, std::string_view key, const std::string& value,
           const std::string& path) {
    text_ += fmt::format("{}{}: {}", indent, key, value);
    if (IsOverridden(overrides_, path)) text_ += "  # from the command line";
    text_ += '\n';
  }
  void Add(std::string_view line) { text_ += fmt::format("{}\n", line); }
  std::string Take() { return std::move(text_); }

 private:
  const Overrides& overrides_;
  std::string text_;
};

std::string Quoted(std::string_view text) { return Json(text).Dump(); }

std::string List(const std::vector<std::string>& names) {
  return fmt::format("[{}]", fmt::join(names, ", "));
}

std::string ProcessText(const ProcessConfig& process) {
  std::string text = fmt::format("{{num_replicas: {}", process.replicas);
  if (!process.hosts.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& host : process.hosts) quoted.push_back(Quoted(host));
    text += fmt::format(", host: {}, tls: {}", List(quoted), process.tls);
  }
  if (!process.tls_ca.empty()) text += ", tls_ca: " + Quoted(process.tls_ca);
  return text + "}";
}

void AddStage(const StageConfig& stage, Lines* lines) {
  const auto add = [&](std::string_view key, const std::string& value) {
    lines->Add("    ", key, value, fmt::format("{}.{}", stage.name, key));
  };
  lines->Add(fmt::format("  - name: {}", stage.name));
  add("factory_path", stage.factory_path);
  if (!stage.factory.as_object().empty()) add("factory", stage.factory.Dump());
  if (!stage.next.empty()) add("next", List(stage.next));
  if (!stage.stream_to.empty()) add("stream_to", List(stage.stream_to));
  if (!stage.route_fn.empty()) add("route_fn", stage.route_fn);
  if (!stage.wait_for.empty()) add("wait_for", List(stage.wait_for));
  if (!stage.merge_fn.empty()) add("merge_fn", stage.merge_fn);
  if (!stage.wait_for_fn.empty()) add("wait_for_fn", stage.wait_for_fn);
  if (!stage.stream_done_to_fn.empty()) add("stream_done_to_fn", stage.stream_done_to_fn);
  if (stage.accepts_early) add("can_accept_stream_before_payload", "true");
  if (!stage.project_payload.empty()) {
    lines->Add("    project_payload:");
    for (const auto& [target, function] : stage.project_payload) {
      lines->Add("      ", target, function,
                 fmt::format("{}.project_payload.{}", stage.name, target));
    }
  }
  add("terminal", stage.terminal ? "true" : "false");
  add("timeout_s", fmt::format("{}", stage.timeout_s));
  add("stall_timeout_s", fmt::format("{}", stage.stall_timeout_s));
  add("hop_timeout_s", fmt::format("{}", stage.hop_timeout_s));
  add("max_queued", fmt::format("{}", stage.max_queued));
  if (stage.process.empty()) return;
  add("process", stage.process);
  add("restart", stage.restart ? "true" : "false");
  add("replay", stage.replay ? "true" : "false");
  if (!stage.python.empty()) add("python", Quoted(stage.python));
  if (stage.env.empty()) return;
  lines->Add("    env:");
  for (const auto& [name, value] : stage.env) {
    lines->Add("      ", name, Quoted(value), fmt::format("{}.env.{}", stage.name, name));
  }
}

}  // namespace

std::string WithFlags(const PipelineConfig& config, std::string_view stage) {
  std::vector<std::string> flags;
  for (const std::string& path : config.flags) {
    const bool of_stage = path.starts_with(stage) && path.substr(stage.size()).starts_with('.');
    if (stage.empty() || of_stage) flags.push_back("--" + path);
  }
  return flags.empty() ? "" : fmt::format(" (with {})", fmt::join(flags, ", "));
}

std::string ResolvedConfig(const PipelineConfig& config, const Overrides& overrides) {
  Lines lines(overrides);
  lines.Add("", "name", config.name, "name");
  lines.Add("", "model_path", Quoted(config.model_path), "model_path");
  lines.Add("", "entry_stage", config.entry_stage, "entry_stage");
  lines.Add("", "timeout_s", fmt::format("{}", config.timeout_s), "timeout_s");
  lines.Add("", "max_in_flight", fmt::format("{}", config.max_in_flight), "max_in_flight");
  if (!config.allowed_media_domains.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& domain : config.allowed_media_domains) quoted.push_back(Quoted(domain));
    lines.Add("", "allowed_media_domains", List(quoted), "allowed_media_domains");
  }
  if (!config.allowed_local_media_path.empty()) {
    lines.Add("", "allowed_local_media_path", Quoted(config.allowed_local_media_path),
              "allowed_local_media_path");
  }
  if (!config.voices.empty()) {
    lines.Add("voices:");
    for (const auto& [alias, voice] : config.voices) {
      lines.Add("  ", alias, voice, "voices." + alias);
    }
  }
  if (!config.processes.empty()) lines.Add("processes:");
  for (const ProcessConfig& process : config.processes) {
    lines.Add("  ", process.name, ProcessText(process), "processes." + process.name);
  }
  if (!config.fused_stages.empty()) {
    std::vector<std::string> groups;
    for (const std::vector<std::string>& group : config.fused_stages) groups.push_back(List(group));
    lines.Add("", "fused_stages", List(groups), "fused_stages");
  }
  lines.Add("stages:");
  for (const StageConfig& stage : config.stages) AddStage(stage, &lines);
  return lines.Take();
}

StatusOr<std::string> ExplainValue(const PipelineConfig& config, std::string_view path,
                                   const Overrides& overrides) {
  const auto bad = [path] {
    return Error(StatusCode::kNotFound, fmt::format("there is no value `{}`", path));
  };
  // The lines of the whole are one a value, so that both commands show the same.
  YAML::Node at = YAML::Load(ResolvedConfig(config, overrides));
  size_t begin = 0;
  bool first = true;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string step(path.substr(begin, end - begin));
    begin = end + 1;
    YAML::Node next;
    if (first && config.Find(step) != nullptr) {
      for (const YAML::Node& stage : at["stages"]) {
        if (stage["name"].Scalar() == step) next.reset(stage);
      }
    } else if (at.IsMap() && at[step]) {
      next.reset(at[step]);
    } else {
      return bad();
    }
    at.reset(next);
    first = false;
  }
  std::string text = fmt::format("{}: {}\n", path, YAML::Dump(at));
  if (IsOverridden(overrides, std::string(path))) return text + "from the command line\n";
  const auto line = config.lines.find(path);
  if (line == config.lines.end()) return text + "the default\n";
  return text + fmt::format("from {}:{}\n", config.file, line->second);
}

std::string GraphText(const PipelineConfig& config) {
  std::string text;
  for (const StageConfig& stage : config.stages) {
    text += fmt::format("{} ({})", stage.name, stage.factory_path);
    if (stage.name == config.entry_stage) text += ", entry";
    if (stage.terminal) text += ", terminal";
    if (!stage.process.empty()) {
      const int32_t replicas = config.ReplicasOf(stage.process);
      text += fmt::format(", process {}", stage.process);
      if (replicas > 1) text += fmt::format(" × {}", replicas);
      const ProcessConfig* process = config.FindProcess(stage.process);
      if (process != nullptr && !process->hosts.empty()) {
        text += fmt::format(" on {}", fmt::join(process->hosts, ", "));
      }
    }
    text += '\n';
    for (const std::string& next : StagesBehind(stage)) {
      std::string_view how = HasName(stage.stream_to, next) ? " (stream)" : "";
      if (HasName(stage.feeds_back, next)) how = " (stream, back)";
      text += fmt::format("  → {}{}\n", next, how);
    }
  }
  return text;
}

}  // namespace portico::pipeline
