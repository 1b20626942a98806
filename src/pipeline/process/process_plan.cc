#include "pipeline/process/process_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "pipeline/config/config_graph.h"
#include "pipeline/process/unix_channel.h"

namespace portico::pipeline {

std::vector<ProcessPlan> PlanProcesses(const PipelineConfig& config) {
  std::map<std::string, ProcessPlan> plans;
  for (const StageConfig& stage : config.stages) {
    if (stage.process.empty()) continue;
    ProcessPlan& plan = plans[stage.process];
    plan.name = stage.process;
    plan.stages.push_back(&stage);
    plan.restart = plan.restart && stage.restart;
    if (stage.stall_timeout_s > 0 && (plan.stall_s == 0 || stage.stall_timeout_s < plan.stall_s)) {
      plan.stall_s = stage.stall_timeout_s;
    }
  }
  std::vector<ProcessPlan> list;
  for (auto& [name, plan] : plans) list.push_back(std::move(plan));
  return list;
}

SpawnOptions SpawnOptionsOf(const ProcessPlan& plan, const StagePrograms& programs) {
  SpawnOptions options;
  for (const StageConfig* stage : plan.stages) {
    options.environment.insert(options.environment.end(), stage->env.begin(), stage->env.end());
  }
  options.words = {programs.program, "omni-stage", fmt::format("{}", getpid())};
  const StageConfig& first = *plan.stages.front();
  if (first.is_python()) {
    options.words.push_back(first.python.empty() ? "python3" : first.python);
    options.words.push_back("-u");
    options.words.push_back(programs.python_script);
  }
  return options;
}

StageOpener OpenBySpawning(SpawnOptions options) {
  return [options = std::move(options)](
             int /*index*/, const std::function<bool()>& /*stopping*/) -> StatusOr<StageLink> {
    PORTICO_ASSIGN_OR_RETURN(Spawned spawned, SpawnStage(options));
    return StageLink{MakeUnixChannel(std::move(spawned.socket)), spawned.pid,
                     std::move(spawned.exit)};
  };
}

namespace {

// The functions of Python of the edges around a stage.
void AddFunctions(const StageConfig& stage, Json* one) {
  const auto names = [one](std::string_view key, const std::vector<std::string>& list) {
    Json array(JsonArray{});
    for (const std::string& name : list) array.as_array().emplace_back(name);
    one->Set(key, std::move(array));
  };
  const bool merges = StageConfig::IsPythonPath(stage.merge_fn);
  if (merges) one->Set("merge_fn", stage.merge_fn);
  if (!stage.wait_for_fn.empty()) one->Set("wait_for_fn", stage.wait_for_fn);
  if (merges || !stage.wait_for_fn.empty()) names("wait_for", stage.wait_for);
  if (StageConfig::IsPythonPath(stage.route_fn)) {
    one->Set("route_fn", stage.route_fn);
    names("routes", stage.next);
  }
  if (!stage.stream_done_to_fn.empty()) {
    one->Set("stream_done_to_fn", stage.stream_done_to_fn);
    names("streams", stage.stream_to);
  }
  if (!stage.fed_by.empty()) names("fed_by", stage.fed_by);
  if (!stage.streamed_by.empty()) names("streamed_by", stage.streamed_by);
  if (stage.gets_payload) one->Set("gets_payload", true);
  if (stage.gets_payload && !stage.beside.empty()) names("beside", stage.beside);
  if (stage.accepts_early) one->Set("accepts_early", true);
  if (stage.project_payload.empty()) return;
  Json project(JsonObject{});
  for (const auto& [target, function] : stage.project_payload) project.Set(target, function);
  one->Set("project_payload", std::move(project));
}

}  // namespace

Json StagesJson(const ProcessPlan& plan) {
  Json list(JsonArray{});
  for (const StageConfig* stage : plan.stages) {
    Json one(JsonObject{});
    one.Set("name", stage->name);
    one.Set("factory_path", stage->factory_path);
    one.Set("factory", stage->factory);
    Json next(JsonArray{});
    for (const std::string& target : StagesBehind(*stage)) next.as_array().emplace_back(target);
    if (stage->terminal) next.as_array().emplace_back("coordinator");
    one.Set("next", std::move(next));
    one.Set("python_behind", stage->python_behind);
    if (stage->is_python()) AddFunctions(*stage, &one);
    list.as_array().push_back(std::move(one));
  }
  return list;
}

std::string InitText(const ProcessPlan& plan, const PipelineConfig& config,
                     const std::string& file) {
  Json init(JsonObject{});
  init.Set("stages", StagesJson(plan));
  init.Set("folder", file.substr(0, file.find_last_of('/') + 1));
  init.Set("model_path", config.model_path);
  return init.Dump();
}

}  // namespace portico::pipeline
