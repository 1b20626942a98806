#include "pipeline/config/config_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/coordinator/routes.h"

namespace portico::pipeline {
namespace {

Status Bad(const std::string& file, const StageConfig& stage, std::string_view why) {
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{}:{}: stage `{}` {}", file, stage.line, stage.name, why));
}

StageConfig& Named(PipelineConfig* config, std::string_view name) {
  return *std::find_if(config->stages.begin(), config->stages.end(),
                       [name](const StageConfig& stage) { return stage.name == name; });
}

// Depth first: what leads to a stage on the way goes back, and only a stream may.
Status FindFeedback(StageConfig& stage, const std::string& file, PipelineConfig* config,
                    std::vector<std::string>* way, std::set<std::string>* done) {
  way->push_back(stage.name);
  for (const std::string& next : StagesBehind(stage)) {
    if (done->contains(next)) continue;
    if (!HasName(*way, next)) {
      PORTICO_RETURN_IF_ERROR(FindFeedback(Named(config, next), file, config, way, done));
      continue;
    }
    if (next == stage.name || HasName(stage.next, next)) {
      return Bad(file, stage,
                 fmt::format("is in a cycle: {} → {}; only what is in `stream_to`, and not in "
                             "`next`, may go back to a stage before it",
                             fmt::join(*way, " → "), next));
    }
    StageConfig& before = Named(config, next);
    if (before.factory_path.starts_with("portico.")) {
      return Bad(file, stage,
                 fmt::format("streams back to `{}`, which is no stage of Python and would not know "
                             "when to end",
                             next));
    }
    stage.feeds_back.push_back(next);
    before.fed_by.push_back(stage.name);
  }
  way->pop_back();
  done->insert(stage.name);
  return OkStatus();
}

// The functions of the edges around a stage. Those of Python run in the stage's process.
Status CheckFunctions(const StageConfig& stage, const std::string& file) {
  const auto in_python = [&stage](std::string_view path) {
    return stage.is_python() && StageConfig::IsPythonPath(path);
  };
  if (in_python(stage.route_fn)) {
    if (stage.next.empty()) return Bad(file, stage, "has a route_fn and no `next` that it chooses");
  } else if (!stage.route_fn.empty() && FindRoute(stage.route_fn) == nullptr) {
    return Bad(file, stage,
               fmt::format("has a route_fn `{}` that does not exist; there is {}", stage.route_fn,
                           RouteNames()));
  }
  if (stage.wait_for.empty() != stage.merge_fn.empty()) {
    return Bad(file, stage, "needs `wait_for` and `merge_fn` together");
  }
  if (!stage.merge_fn.empty() && stage.merge_fn != "portico.in_order" &&
      !in_python(stage.merge_fn)) {
    return Bad(file, stage,
               fmt::format("has a merge_fn `{}` that does not exist; there is "
                           "portico.in_order",
                           stage.merge_fn));
  }
  const auto only_in_python = [&](std::string_view key, const std::string& path) {
    if (path.empty() || in_python(path)) return OkStatus();
    return Bad(file, stage,
               stage.is_python()
                   ? fmt::format("has a {} `{}`, which is no path of Python", key, path)
                   : fmt::format("is no stage of Python and takes no `{}`", key));
  };
  PORTICO_RETURN_IF_ERROR(only_in_python("wait_for_fn", stage.wait_for_fn));
  if (!stage.wait_for_fn.empty() && stage.wait_for.empty()) {
    return Bad(file, stage, "has a wait_for_fn and no `wait_for` of which it chooses");
  }
  PORTICO_RETURN_IF_ERROR(only_in_python("stream_done_to_fn", stage.stream_done_to_fn));
  if (!stage.stream_done_to_fn.empty() && stage.stream_to.empty()) {
    return Bad(file, stage, "has a stream_done_to_fn and no `stream_to` of which it chooses");
  }
  const std::vector<std::string> behind = StagesBehind(stage);
  for (const auto& [target, path] : stage.project_payload) {
    if (!stage.is_python()) {
      return Bad(file, stage, "is no stage of Python and takes no `project_payload`");
    }
    if (!HasName(behind, target)) {
      return Bad(file, stage,
                 fmt::format("has a project_payload for `{}`, which is not behind it", target));
    }
    if (in_python(path)) continue;
    return Bad(file, stage,
               fmt::format("has a project_payload `{}`, which is no path of Python", path));
  }
  return OkStatus();
}

Status CheckStage(const PipelineConfig& config, const StageConfig& stage, const std::string& file) {
  for (const std::string& next : StagesBehind(stage)) {
    if (config.Find(next) == nullptr) {
      return Bad(file, stage, fmt::format("leads to `{}`, which does not exist", next));
    }
  }
  for (const std::string& source : stage.wait_for) {
    if (config.Find(source) == nullptr) {
      return Bad(file, stage, fmt::format("waits for `{}`, which does not exist", source));
    }
  }
  const bool leads = !stage.next.empty() || !stage.stream_to.empty();
  if (leads == stage.terminal) {
    return Bad(file, stage, "needs either `next` or `terminal: true`");
  }
  return CheckFunctions(stage, file);
}

// What shares a process must be able to.
Status CheckProcesses(const PipelineConfig& config, const std::string& file) {
  std::map<std::string, const StageConfig*> first;
  for (const StageConfig& stage : config.stages) {
    if (!stage.is_python() && (!stage.python.empty() || !stage.env.empty())) {
      return Bad(file, stage, "is no stage of Python and takes neither `python` nor `env`");
    }
    if (stage.process.empty()) continue;
    if (stage.factory_path == "portico.engine" || stage.factory_path == "portico.http") {
      return Bad(file, stage, "works in the server's own process; drop `process`");
    }
    const StageConfig& other = *first.emplace(stage.process, &stage).first->second;
    if (stage.is_python() != other.is_python() || stage.python != other.python) {
      return Bad(
          file, stage,
          fmt::format("cannot share the process `{}` with `{}`: they need different programs",
                      stage.process, other.name));
    }
  }
  for (const ProcessConfig& process : config.processes) {
    if (first.contains(process.name)) continue;
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{}: no stage runs in the process `{}`", file, process.name));
  }
  return OkStatus();
}

// What comes to a stage: from the stages that it waits for, by `next` from one, or streamed.
Status CheckSources(const PipelineConfig& config, const std::string& file, StageConfig* checked) {
  const StageConfig& stage = *checked;
  for (const StageConfig& source : config.stages) {
    const bool streams = HasName(source.stream_to, stage.name);
    const bool sends = HasName(source.next, stage.name);
    checked->gets_payload = stage.gets_payload || sends;
    if (streams && !HasName(stage.fed_by, source.name)) checked->streamed_by.push_back(source.name);
    if (streams && !sends && !HasName(stage.wait_for, source.name)) {
      checked->beside.push_back(source.name);
    }
    if (HasName(stage.wait_for, source.name)) {
      if (!streams && !sends) {
        return Bad(file, stage,
                   fmt::format("waits for `{}`, which does not lead to it", source.name));
      }
      checked->gets_payload = true;
      if (HasName(source.feeds_back, stage.name)) {
        return Bad(file, stage,
                   fmt::format("waits for `{}`, which only begins behind it", source.name));
      }
    } else if (!stage.wait_for.empty() && sends) {
      return Bad(file, stage,
                 fmt::format("gets by `next` what `{}` sends, which is not in its `wait_for`",
                             source.name));
    }
  }
  if (stage.accepts_early && stage.streamed_by.empty() && stage.fed_by.empty()) {
    return Bad(file, stage,
               "has can_accept_stream_before_payload, and no stage has it in its `stream_to`");
  }
  return OkStatus();
}

// Several sources of one request need a rule. Sources between which a route_fn chooses are not
// several; one of which all comes by `next`, and others that stream, are told apart.
Status CheckFanIn(const PipelineConfig& config, const std::string& file) {
  for (const Task task : {Task::kSpeech, Task::kTranscription, Task::kChat}) {
    for (const bool hears : {false, true}) {
      Request request;
      request.task = task;
      request.wants_text = request.wants_audio = true;
      if (hears) request.inputs.emplace_back(FilePart{});
      std::map<std::string, std::vector<std::string>> sources;
      std::set<std::string> seen{config.entry_stage};
      std::vector<std::string> open{config.entry_stage};
      while (!open.empty()) {
        const StageConfig& stage = *config.Find(open.back());
        open.pop_back();
        for (const std::string& next : RoutesOf(stage, request)) {
          sources[next].push_back(stage.name);
          if (seen.insert(next).second) open.push_back(next);
        }
      }
      for (const auto& [name, from] : sources) {
        const StageConfig& stage = *config.Find(name);
        const auto payloads =
            std::count_if(from.begin(), from.end(), [&](const std::string& source) {
              return HasName(config.Find(source)->next, stage.name);
            });
        if (from.size() > 1 && payloads != 1 && stage.merge_fn.empty()) {
          return Bad(file, stage,
                     fmt::format("gets parts from {} and has no `wait_for` with "
                                 "`merge_fn`",
                                 fmt::join(from, " and ")));
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace

bool HasName(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> StagesBehind(const StageConfig& stage) {
  std::vector<std::string> behind = stage.next;
  for (const std::string& name : stage.stream_to) {
    if (!HasName(behind, name)) behind.push_back(name);
  }
  return behind;
}

Status CheckGraph(const std::string& file, PipelineConfig* checked) {
  const PipelineConfig& config = *checked;
  std::set<std::string> names;
  for (const StageConfig& stage : config.stages) {
    if (!names.insert(stage.name).second) return Bad(file, stage, "exists twice");
  }
  if (config.Find(config.entry_stage) == nullptr) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{}: entry_stage `{}` does not exist", file, config.entry_stage));
  }
  for (const StageConfig& stage : config.stages) {
    PORTICO_RETURN_IF_ERROR(CheckStage(config, stage, file));
  }
  std::vector<std::string> way;
  std::set<std::string> reached;
  StageConfig& entry = Named(checked, config.entry_stage);
  PORTICO_RETURN_IF_ERROR(FindFeedback(entry, file, checked, &way, &reached));
  entry.gets_payload = true;
  for (const StageConfig& stage : config.stages) {
    if (!reached.contains(stage.name)) {
      return Bad(file, stage, fmt::format("cannot be reached from `{}`", config.entry_stage));
    }
  }
  for (StageConfig& stage : checked->stages) {
    PORTICO_RETURN_IF_ERROR(CheckSources(config, file, &stage));
  }
  PORTICO_RETURN_IF_ERROR(CheckProcesses(config, file));
  return CheckFanIn(config, file);
}

}  // namespace portico::pipeline
