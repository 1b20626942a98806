#include "pipeline/config_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/routes.h"

namespace portico::pipeline {
namespace {

Status Bad(const std::string& file, const StageConfig& stage, std::string_view why) {
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{}:{}: stage `{}` {}", file, stage.line, stage.name, why));
}

// Depth first; the names on the way are the cycle that is found.
Status FindCycle(const PipelineConfig& config, const StageConfig& stage, const std::string& file,
                 std::vector<std::string>* way, std::set<std::string>* done) {
  if (done->contains(stage.name)) return OkStatus();
  if (std::find(way->begin(), way->end(), stage.name) != way->end()) {
    return Bad(file, stage,
               fmt::format("is in a cycle: {} → {}", fmt::join(*way, " → "), stage.name));
  }
  way->push_back(stage.name);
  for (const std::string& next : StagesBehind(stage)) {
    PORTICO_RETURN_IF_ERROR(FindCycle(config, *config.Find(next), file, way, done));
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
  const std::vector<std::string> behind = StagesBehind(stage);
  for (const auto& [target, path] : stage.project_payload) {
    if (!stage.is_python()) {
      return Bad(file, stage, "is no stage of Python and takes no `project_payload`");
    }
    if (std::find(behind.begin(), behind.end(), target) == behind.end()) {
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

// Several sources of one request need a rule. Sources between which a route_fn chooses are not
// several.
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
        if (from.size() > 1 && stage.merge_fn.empty()) {
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

std::vector<std::string> StagesBehind(const StageConfig& stage) {
  std::vector<std::string> behind = stage.next;
  for (const std::string& name : stage.stream_to) {
    if (std::find(behind.begin(), behind.end(), name) == behind.end()) behind.push_back(name);
  }
  return behind;
}

Status CheckGraph(const PipelineConfig& config, const std::string& file) {
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
  PORTICO_RETURN_IF_ERROR(
      FindCycle(config, *config.Find(config.entry_stage), file, &way, &reached));
  for (const StageConfig& stage : config.stages) {
    if (!reached.contains(stage.name)) {
      return Bad(file, stage, fmt::format("cannot be reached from `{}`", config.entry_stage));
    }
  }
  PORTICO_RETURN_IF_ERROR(CheckProcesses(config, file));
  return CheckFanIn(config, file);
}

}  // namespace portico::pipeline
