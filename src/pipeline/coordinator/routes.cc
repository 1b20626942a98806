#include "pipeline/coordinator/routes.h"

#include <algorithm>

#include "pipeline/config/config_graph.h"

namespace portico::pipeline {
namespace {

bool HasFiles(const Request& request) {
  return std::any_of(request.inputs.begin(), request.inputs.end(),
                     [](const Part& part) { return std::holds_alternative<FilePart>(part); });
}

// For graphs of the form decode → hear → think → sentences → say → encode with terminals
// `transcript` and `reply`: speech enters at sentences, a chat without sound at think; what is not
// wanted is not made.
bool ByTask(const Request& request, std::string_view target) {
  const bool chat = request.task == Task::kChat;
  if (target == "hear") return request.task == Task::kTranscription || (chat && HasFiles(request));
  if (target == "think") return chat;
  if (target == "transcript") return request.task == Task::kTranscription;
  if (target == "reply") return chat;
  if (target == "sentences" || target == "say") {
    return request.task == Task::kSpeech || (chat && request.wants_audio);
  }
  return true;
}

// From the entry there is one way for each request: hear before think, think before sentences.
bool FirstByTask(const Request& request, std::string_view target) {
  const bool chat = request.task == Task::kChat;
  if (target == "think") return chat && !HasFiles(request);
  if (target == "sentences" || target == "say") return request.task == Task::kSpeech;
  return ByTask(request, target);
}

}  // namespace

RouteFunction FindRoute(std::string_view name) {
  if (name == "portico.by_task") return ByTask;
  if (name == "portico.first_by_task") return FirstByTask;
  return nullptr;
}

std::string RouteNames() { return "portico.by_task, portico.first_by_task"; }

std::vector<std::string> RoutesOf(const StageConfig& stage, const Request& request) {
  std::vector<std::string> behind = StagesBehind(stage);
  const RouteFunction route = FindRoute(stage.route_fn);
  std::erase_if(behind, [&](const std::string& target) {
    return (route != nullptr && !route(request, target)) || HasName(stage.feeds_back, target);
  });
  return behind;
}

std::vector<std::string> FeedbackOf(const StageConfig& stage, const Request& request) {
  std::vector<std::string> targets = stage.feeds_back;
  const RouteFunction route = FindRoute(stage.route_fn);
  if (route == nullptr) return targets;
  std::erase_if(targets, [&](const std::string& target) { return !route(request, target); });
  return targets;
}

}  // namespace portico::pipeline
