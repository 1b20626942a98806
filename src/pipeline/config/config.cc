#include "pipeline/config/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "pipeline/config/config_graph.h"
#include "pipeline/config/config_keys.h"
#include "pipeline/config/yaml_value.h"
#include "pipeline/remote/address.h"

namespace portico::pipeline {
namespace {

// Names are steps of dotted paths, and parts of the names of files.
bool BelongsInName(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

// The GPUs that a stage of Python sees, as CUDA numbers them: 0 or [0, 1].
Status ReadGpu(const YAML::Node& gpu, const YamlFile& file, StageConfig* stage) {
  if (!gpu) return OkStatus();
  if (!stage->is_python()) return file.Bad(gpu, "`gpu` is of stages of Python");
  std::vector<std::string> ids;
  if (gpu.IsScalar()) ids.push_back(gpu.Scalar());
  if (gpu.IsSequence()) {
    for (const YAML::Node& one : gpu) ids.push_back(one.IsScalar() ? one.Scalar() : "");
  }
  const bool numbers = std::all_of(ids.begin(), ids.end(), [](const std::string& id) {
    return !id.empty() && id.size() <= 3 && id.find_first_not_of("0123456789") == std::string::npos;
  });
  if (ids.empty() || !numbers) return file.Bad(gpu, "`gpu` must be a number or a list of numbers");
  stage->env.emplace_back("CUDA_VISIBLE_DEVICES", fmt::format("{}", fmt::join(ids, ",")));
  return OkStatus();
}

Status ReadStage(const YAML::Node& node, const YamlFile& file, StageConfig* stage) {
  if (!node.IsMap()) return file.Bad(node, "a stage must be a mapping with `name`");
  stage->line = node.Mark().line + 1;
  PORTICO_RETURN_IF_ERROR(CheckKeys(node, kStageKeys, file));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "name", &stage->name));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "factory_path", &stage->factory_path));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "next", &stage->next));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "stream_to", &stage->stream_to));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "wait_for", &stage->wait_for));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "route_fn", &stage->route_fn));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "merge_fn", &stage->merge_fn));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "wait_for_fn", &stage->wait_for_fn));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "stream_done_to_fn", &stage->stream_done_to_fn));
  PORTICO_RETURN_IF_ERROR(
      file.Read(node, "can_accept_stream_before_payload", &stage->accepts_early));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "terminal", &stage->terminal));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "timeout_s", 0, 86400, &stage->timeout_s));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "stall_timeout_s", 0, 86400, &stage->stall_timeout_s));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "hop_timeout_s", 0, 86400, &stage->hop_timeout_s));
  double queued = stage->max_queued;
  PORTICO_RETURN_IF_ERROR(file.Read(node, "max_queued", 0, 65536, &queued));
  stage->max_queued = static_cast<int32_t>(queued);
  PORTICO_RETURN_IF_ERROR(file.Read(node, "process", &stage->process));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "restart", &stage->restart));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "replay", &stage->replay));
  PORTICO_RETURN_IF_ERROR(file.Read(node, "python", &stage->python));
  if (const YAML::Node env = node["env"]) {
    if (!env.IsMap()) return file.Bad(env, "`env` must be a mapping from name to text");
    for (const auto& one : env) stage->env.emplace_back(one.first.Scalar(), one.second.Scalar());
  }
  if (const YAML::Node project = node["project_payload"]) {
    if (!project.IsMap()) {
      return file.Bad(project, "`project_payload` must be a mapping from stage to function");
    }
    for (const auto& one : project) {
      if (!one.second.IsScalar()) return file.Bad(one.second, "a function is named by its path");
      stage->project_payload.emplace_back(one.first.Scalar(), one.second.Scalar());
    }
  }
  PORTICO_RETURN_IF_ERROR(ReadGpu(node["gpu"], file, stage));
  stage->factory = Json(JsonObject{});
  if (const YAML::Node factory = node["factory"]) {
    if (!factory.IsMap()) return file.Bad(factory, "`factory` must be a mapping");
    PORTICO_ASSIGN_OR_RETURN(stage->factory, file.ToJson(factory));
  }
  if (stage->name.empty()) return file.Bad(node, "a stage needs a `name`");
  if (!std::all_of(stage->name.begin(), stage->name.end(), BelongsInName)) {
    return file.Bad(
        node, fmt::format("stage `{}`: a name has letters, digits, `_` and `-`", stage->name));
  }
  if (stage->factory_path.empty()) {
    return file.Bad(node, fmt::format("stage `{}` needs a `factory_path`", stage->name));
  }
  return OkStatus();
}

// Mappings of the pipeline that a dotted path may begin with, where no stage has the name.
constexpr std::string_view kPipelineMappings[] = {"processes", "voices", "env_defaults"};

// Sets the node that a dotted path names: "say.factory.voice", or "timeout_s" of the pipeline.
Status ApplyOverride(YAML::Node root, const std::string& path, const std::string& text,
                     YamlFile* file) {
  const auto bad = [&path](std::string why) {
    return Error(StatusCode::kInvalidArgument, fmt::format("--{}: {}", path, why));
  };
  const std::vector<std::string> steps = absl::StrSplit(path, '.');
  YAML::Node at = root;
  size_t first = 0;
  if (steps.size() > 1) {
    bool found = false;
    const YAML::Node stages = root["stages"];
    for (size_t i = 0; i < stages.size() && !found; ++i) {
      if (!stages[i].IsMap() || !stages[i]["name"] || stages[i]["name"].Scalar() != steps[0]) {
        continue;
      }
      at.reset(stages[i]);
      found = true;
    }
    const bool mapping = std::find(std::begin(kPipelineMappings), std::end(kPipelineMappings),
                                   steps[0]) != std::end(kPipelineMappings);
    if (!found && !mapping) return bad(fmt::format("there is no stage `{}`", steps[0]));
    first = found ? 1 : 0;
  }
  try {
    const YAML::Node value = LoadOneDocument(text);
    for (size_t i = first; i + 1 < steps.size(); ++i) {
      if (at[steps[i]] && !at[steps[i]].IsMap()) {
        return bad(fmt::format("`{}` is no mapping", steps[i]));
      }
      const bool made = !at[steps[i]];
      at.reset(at[steps[i]]);
      if (made) file->NoteFlag(at, path);
    }
    at[steps.back()] = value;
    file->NoteFlag(at[steps.back()], path);
  } catch (const YAML::Exception& error) {
    return bad(error.what());
  }
  return OkStatus();
}

StatusOr<YAML::Node> Load(const std::string& text, const YamlFile& file) {
  try {
    YAML::Node root = LoadOneDocument(text);
    if (!root.IsMap()) return file.Bad(root, "a pipeline must be a mapping with `stages`");
    return root;
  } catch (const YAML::Exception& error) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{}:{}: {}", file.name(), error.mark.line + 1, error.msg));
  }
}

// processes: {voice: {num_replicas: 2, host: [10.0.0.2:7000, 10.0.0.3:7000], tls: true}}
Status ReadProcesses(const YAML::Node& processes, const YamlFile& file, PipelineConfig* config) {
  if (!processes) return OkStatus();
  if (!processes.IsMap()) return file.Bad(processes, "`processes` must be a mapping by name");
  constexpr std::string_view kKeys[] = {"num_replicas", "host", "tls", "tls_ca"};
  for (const auto& process : processes) {
    if (!process.second.IsMap()) return file.Bad(process.second, "a process must be a mapping");
    PORTICO_RETURN_IF_ERROR(CheckKeys(process.second, kKeys, file));
    ProcessConfig& read = config->processes.emplace_back();
    read.name = process.first.Scalar();
    PORTICO_RETURN_IF_ERROR(file.Read(process.second, "host", &read.hosts));
    for (const std::string& host : read.hosts) {
      const auto address = ParseHostPort(host);
      if (!address.ok()) return file.Bad(process.second["host"], MessageOf(address.status()));
    }
    PORTICO_RETURN_IF_ERROR(file.Read(process.second, "tls", &read.tls));
    PORTICO_RETURN_IF_ERROR(file.Read(process.second, "tls_ca", &read.tls_ca));
    if (read.hosts.empty() && (read.tls || !read.tls_ca.empty())) {
      return file.Bad(process.second, "`tls` is of processes with a `host`");
    }
    if (!read.tls && !read.tls_ca.empty()) {
      return file.Bad(process.second, "`tls_ca` needs `tls: true`");
    }
    double replicas = std::max<double>(1, static_cast<double>(read.hosts.size()));
    PORTICO_RETURN_IF_ERROR(file.Read(process.second, "num_replicas", 1, 64, &replicas));
    read.replicas = static_cast<int32_t>(replicas);
    if (read.hosts.size() > static_cast<size_t>(read.replicas)) {
      return file.Bad(process.second, "`num_replicas` is less than there are hosts");
    }
  }
  return OkStatus();
}

// fused_stages: [[prepare, think], [talk, code2wav]]: stages one behind the other that share a
// process: the one that some of them name, else for Python the first one's.
Status ReadFused(const YAML::Node& fused, const YamlFile& file, PipelineConfig* config) {
  if (!fused) return OkStatus();
  if (!fused.IsSequence()) return file.Bad(fused, "`fused_stages` must be a list of groups");
  std::set<std::string> seen;
  for (const YAML::Node& node : fused) {
    std::vector<std::string>& group = config->fused_stages.emplace_back();
    std::vector<StageConfig*> stages;
    std::string process;
    if (!node.IsSequence() || node.size() < 2) {
      return file.Bad(node, "a group of `fused_stages` must list two stages or more");
    }
    for (const YAML::Node& name : node) {
      const std::string& named = group.emplace_back(name.IsScalar() ? name.Scalar() : "");
      const auto stage =
          std::find_if(config->stages.begin(), config->stages.end(),
                       [&named](const StageConfig& one) { return one.name == named; });
      if (stage == config->stages.end()) {
        return file.Bad(name, fmt::format("`fused_stages`: there is no stage `{}`", named));
      }
      if (!seen.insert(named).second) {
        return file.Bad(name, fmt::format("`fused_stages` has `{}` twice", named));
      }
      if (!stages.empty()) {
        const std::vector<std::string> behind = StagesBehind(*stages.back());
        if (std::find(behind.begin(), behind.end(), named) == behind.end()) {
          return file.Bad(name, fmt::format("`fused_stages`: `{}` does not lead to `{}`",
                                            stages.back()->name, named));
        }
      }
      if (!process.empty() && !stage->process.empty() && stage->process != process) {
        return file.Bad(name, fmt::format("`fused_stages`: `{}` has another `process` than the "
                                          "stages before it in its group",
                                          named));
      }
      if (!stage->process.empty()) process = stage->process;
      stages.push_back(&*stage);
    }
    const bool python = std::any_of(stages.begin(), stages.end(),
                                    [](const StageConfig* stage) { return stage->is_python(); });
    if (process.empty() && python) process = stages.front()->name;
    for (StageConfig* stage : stages) stage->process = process;
  }
  return OkStatus();
}

// Names as media_rules.h has them, and a folder.
Status ReadMedia(const YAML::Node& root, const YamlFile& file, PipelineConfig* config) {
  PORTICO_RETURN_IF_ERROR(
      file.Read(root, "allowed_local_media_path", &config->allowed_local_media_path));
  if (const std::string& folder = config->allowed_local_media_path;
      !folder.empty() && !folder.starts_with('/')) {
    return file.Bad(root["allowed_local_media_path"],
                    "`allowed_local_media_path` must be an absolute path");
  }
  PORTICO_RETURN_IF_ERROR(file.Read(root, "allowed_media_domains", &config->allowed_media_domains));
  for (const std::string& domain : config->allowed_media_domains) {
    const std::string_view name =
        domain.starts_with("*.") ? std::string_view(domain).substr(2) : std::string_view(domain);
    constexpr std::string_view kBytes = "abcdefghijklmnopqrstuvwxyz0123456789-_.:";
    if (domain == "*" ||
        (!name.empty() && name.find_first_not_of(kBytes) == std::string_view::npos)) {
      continue;
    }
    return file.Bad(
        root["allowed_media_domains"],
        fmt::format("`{}` is none of: a name in lower case, *.NAME, *, an address", domain));
  }
  return OkStatus();
}

constexpr int kMostNotedLines = 10000;
// CheckGraph() goes as deep as there are stages one behind the other.
constexpr size_t kMostStages = 1000;

// The lines of a node's values by their paths. Lists are values; deeper ones are told by what they
// are in, which also ends aliases that contain themselves. `left`: so many more are noted, which
// bounds the time too where a mapping has one key often.
void NoteLines(const YAML::Node& node, const std::string& path, int depth, int* left,
               PipelineConfig* config) {
  constexpr int kDeepestNoted = 6;
  if (!node.IsMap() || depth > kDeepestNoted) return;
  for (const auto& entry : node) {
    if (*left <= 0) return;
    --*left;
    if (!entry.first.IsScalar()) continue;
    const std::string at = path + entry.first.Scalar();
    config->lines.emplace(at, entry.first.Mark().line + 1);
    NoteLines(entry.second, at + ".", depth + 1, left, config);
  }
}

StatusOr<PipelineConfig> Read(const YAML::Node& root, const YamlFile& file,
                              const Overrides& overrides) {
  PipelineConfig config;
  config.file = file.name();
  for (const auto& [path, value] : overrides) config.flags.push_back(path);
  int lines_left = kMostNotedLines;
  NoteLines(root, "", 0, &lines_left, &config);
  PORTICO_RETURN_IF_ERROR(CheckKeys(root, kPipelineKeys, file));
  PORTICO_RETURN_IF_ERROR(file.Read(root, "name", &config.name));
  PORTICO_RETURN_IF_ERROR(file.Read(root, "model_path", &config.model_path));
  PORTICO_RETURN_IF_ERROR(file.Read(root, "entry_stage", &config.entry_stage));
  PORTICO_RETURN_IF_ERROR(file.Read(root, "timeout_s", 0.1, 86400, &config.timeout_s));
  double in_flight = config.max_in_flight;
  PORTICO_RETURN_IF_ERROR(file.Read(root, "max_in_flight", 1, 65536, &in_flight));
  config.max_in_flight = static_cast<int32_t>(in_flight);
  if (const YAML::Node voices = root["voices"]) {
    if (!voices.IsMap()) return file.Bad(voices, "`voices` must be a mapping from alias to voice");
    for (const auto& voice : voices) {
      config.voices.emplace_back(voice.first.Scalar(), voice.second.Scalar());
    }
  }
  if (const YAML::Node env = root["env_defaults"]) {
    if (!env.IsMap()) return file.Bad(env, "`env_defaults` must be a mapping from name to text");
    for (const auto& one : env) {
      config.env_defaults.emplace_back(one.first.Scalar(), one.second.Scalar());
    }
  }
  PORTICO_RETURN_IF_ERROR(ReadMedia(root, file, &config));
  PORTICO_RETURN_IF_ERROR(ReadProcesses(root["processes"], file, &config));
  const YAML::Node stages = root["stages"];
  if (!stages || !stages.IsSequence() || stages.size() == 0) {
    return file.Bad(root, "a pipeline needs a list `stages`");
  }
  if (stages.size() > kMostStages) {
    return file.Bad(stages, fmt::format("a pipeline has at most {} stages", kMostStages));
  }
  for (const YAML::Node& node : stages) {
    StageConfig& stage = config.stages.emplace_back();
    PORTICO_RETURN_IF_ERROR(ReadStage(node, file, &stage));
    NoteLines(node, stage.name + ".", 1, &lines_left, &config);
  }
  PORTICO_RETURN_IF_ERROR(ReadFused(root["fused_stages"], file, &config));
  for (StageConfig& stage : config.stages) {
    // Python never runs in the server's own process.
    if (stage.is_python() && stage.process.empty()) stage.process = stage.name;
    for (const std::string& next : StagesBehind(stage)) {
      const StageConfig* behind = config.Find(next);
      stage.python_behind = stage.python_behind || (behind != nullptr && behind->is_python());
    }
    if (!stage.is_python()) continue;
    for (const auto& [name, value] : config.env_defaults) {
      const bool own = std::any_of(stage.env.begin(), stage.env.end(),
                                   [&](const auto& one) { return one.first == name; });
      if (!own) stage.env.emplace_back(name, value);
    }
  }
  if (config.entry_stage.empty()) config.entry_stage = config.stages.front().name;
  const Status graph = CheckGraph(file.name(), &config);
  if (!graph.ok()) {
    return Error(graph.code(), fmt::format("{}{}", MessageOf(graph), WithFlags(config)));
  }
  return config;
}

}  // namespace

const StageConfig* PipelineConfig::Find(std::string_view stage) const {
  for (const StageConfig& config : stages) {
    if (config.name == stage) return &config;
  }
  return nullptr;
}

const ProcessConfig* PipelineConfig::FindProcess(std::string_view process) const {
  for (const ProcessConfig& config : processes) {
    if (config.name == process) return &config;
  }
  return nullptr;
}

int32_t PipelineConfig::ReplicasOf(std::string_view process) const {
  const ProcessConfig* found = FindProcess(process);
  return found == nullptr ? 1 : found->replicas;
}

StatusOr<PipelineConfig> ParsePipelineConfig(const std::string& text, const std::string& file,
                                             const Overrides& overrides) {
  YamlFile yaml(file);
  PORTICO_ASSIGN_OR_RETURN(const YAML::Node root, Load(text, yaml));
  std::set<std::string> seen;
  for (const auto& [path, value] : overrides) {
    if (!seen.insert(path).second) {
      return Error(StatusCode::kInvalidArgument, fmt::format("--{} is given twice", path));
    }
    PORTICO_RETURN_IF_ERROR(ApplyOverride(root, path, value, &yaml));
  }
  try {
    return Read(root, yaml, overrides);
  } catch (const YAML::Exception& error) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
}

}  // namespace portico::pipeline
