#include "router/discovery/pod.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "text/json.h"

namespace portico::router {
namespace {

constexpr std::string_view kBootstrapPort = "sglang.ai/bootstrap-port";
constexpr int64_t kGone = 410;  // the version is too old to go on from

Status Odd(std::string_view what) {
  return Error(StatusCode::kInternal,
               "the API server's answer has " + std::string(what) + " of another form");
}

const Json* Inside(const Json& object, std::string_view a, std::string_view b) {
  const Json* inner = object.Find(a);
  return inner == nullptr ? nullptr : inner->Find(b);
}

std::string TextInside(const Json& object, std::string_view a, std::string_view b) {
  const Json* inner = object.Find(a);
  return inner == nullptr ? "" : inner->GetString(b);
}

bool IsReady(const Json& object) {
  if (TextInside(object, "status", "phase") != "Running") return false;
  const Json* conditions = Inside(object, "status", "conditions");
  if (conditions == nullptr || !conditions->is_array()) return false;
  for (const Json& condition : conditions->as_array()) {
    if (condition.GetString("type") == "Ready") return condition.GetString("status") == "True";
  }
  return false;
}

StatusOr<Pod> ReadPod(const Json& object) {
  Pod pod;
  pod.uid = TextInside(object, "metadata", "uid");
  pod.name = TextInside(object, "metadata", "name");
  pod.space = TextInside(object, "metadata", "namespace");
  if (pod.uid.empty()) return Odd("a pod");
  pod.ip = TextInside(object, "status", "podIP");
  pod.ready = IsReady(object);
  pod.leaving = !TextInside(object, "metadata", "deletionTimestamp").empty();
  const Json* annotations = Inside(object, "metadata", "annotations");
  int port = 0;
  if (annotations != nullptr && absl::SimpleAtoi(annotations->GetString(kBootstrapPort), &port) &&
      port > 0 && port <= 65535) {
    pod.bootstrap_port = port;
  }
  return pod;
}

}  // namespace

StatusOr<PodPage> ReadPodPage(std::string_view body) {
  const auto json = Json::Parse(body);
  const Json* items = json.ok() ? json->Find("items") : nullptr;
  if (items == nullptr || !items->is_array()) return Odd("a list");
  PodPage page;
  page.version = TextInside(*json, "metadata", "resourceVersion");
  page.more = TextInside(*json, "metadata", "continue");
  for (const Json& item : items->as_array()) {
    PORTICO_ASSIGN_OR_RETURN(Pod pod, ReadPod(item));
    page.pods.push_back(std::move(pod));
  }
  return page;
}

StatusOr<PodEvent> ReadPodEvent(std::string_view line) {
  const auto json = Json::Parse(line);
  const Json* object = json.ok() ? json->Find("object") : nullptr;
  if (object == nullptr || !object->is_object()) return Odd("an event");
  PodEvent event;
  const std::string type = json->GetString("type");
  if (type == "ERROR") {
    event.kind =
        object->GetInt("code", 0) == kGone ? PodEvent::Kind::kExpired : PodEvent::Kind::kError;
    event.message = object->GetString("message");
    return event;
  }
  event.version = TextInside(*object, "metadata", "resourceVersion");
  if (type == "BOOKMARK") {
    event.kind = PodEvent::Kind::kBookmark;
    return event;
  }
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") return Odd("an event");
  event.kind = type == "DELETED" ? PodEvent::Kind::kGone : PodEvent::Kind::kThere;
  PORTICO_ASSIGN_OR_RETURN(event.pod, ReadPod(*object));
  return event;
}

}  // namespace portico::router
