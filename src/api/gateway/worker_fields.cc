#include "api/gateway/worker_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "text/json.h"

namespace portico::api {
namespace {

using router::WorkerChange;
using router::WorkerSpec;

constexpr std::string_view kSpecFields[] = {
    "url",    "api_key",         "model_id", "models",       "worker_type",
    "labels", "bootstrap_port",  "priority", "max_requests", "kv_events",
    "cost",   "connection_mode", "runtime",  "runtime_type"};
constexpr std::string_view kChangeFields[] = {"draining", "api_key", "max_requests",
                                              "priority", "cost",    "labels"};

// Fields of the peers' workers that one worker cannot have here.
struct ElsewhereField {
  std::string_view name;
  std::string_view where;
};
constexpr std::string_view kProbeFlags =
    "probes are the same for all workers: the gateway's --health-… flags";
constexpr std::string_view kTextFlags =
    "it is set in the gateway's file, below `models`, or by the flag of this name";
constexpr std::string_view kRankFlag = "ranks are found by --dp-aware";
constexpr std::string_view kPoolFlags =
    "connections are the same for all workers: the gateway's --upstream-… and --worker-… flags";
constexpr std::string_view kNotHere = "the gateway has no equivalent";
constexpr ElsewhereField kElsewhere[] = {
    {"health", kProbeFlags},
    {"disable_health_check", kProbeFlags},
    {"health_check_timeout_secs", kProbeFlags},
    {"health_check_interval_secs", kProbeFlags},
    {"health_success_threshold", kProbeFlags},
    {"health_failure_threshold", kProbeFlags},
    {"tokenizer_path", kTextFlags},
    {"chat_template", kTextFlags},
    {"reasoning_parser", kTextFlags},
    {"tool_parser", "it is set in the gateway's file, below `models`, or by --tool-call-parser"},
    {"dp_aware", kRankFlag},
    {"dp_base_url", kRankFlag},
    {"dp_rank", kRankFlag},
    {"dp_size", kRankFlag},
    {"http_pool", kPoolFlags},
    {"max_connection_attempts", kPoolFlags},
    {"resilience", "it is the same for all workers: the gateway's --retry-… and --cb-… flags"},
    {"load_monitor_interval_secs", "it is the same for all workers: --load-monitor-interval"},
    {"kv_block_size", "KV events report their block size"},
    {"kv_connector", kNotHere},
    {"kv_role", kNotHere},
    {"kv_engine_id", kNotHere},
    {"provider", "workers are engines, not services of providers"},
    {"zmq_handshake_address", kNotHere},
    {"multimodal_tensor_transport", kNotHere},
    {"multimodal_shm_min_bytes", kNotHere}};

template <size_t N>
bool HasField(const std::string_view (&fields)[N], std::string_view name) {
  return std::find(std::begin(fields), std::end(fields), name) != std::end(fields);
}

template <size_t N>
Status CheckFieldName(std::string_view name, const std::string_view (&fields)[N]) {
  if (HasField(fields, name)) return OkStatus();
  const auto there = std::find_if(std::begin(kElsewhere), std::end(kElsewhere),
                                  [&](const ElsewhereField& one) { return one.name == name; });
  if (there != std::end(kElsewhere)) {
    return InvalidArgument(std::string(name),
                           fmt::format("{} cannot be set here: {}", name, there->where));
  }
  return InvalidArgument(
      std::string(name),
      fmt::format("there is no field `{:.64}`; the fields are {}", name, fmt::join(fields, ", ")));
}

// An object of which all members that are not null are among `fields`; the others are dropped.
template <size_t N>
StatusOr<Json> ReadObject(std::string_view body, const std::string_view (&fields)[N]) {
  PORTICO_ASSIGN_OR_RETURN(Json json, Json::Parse(body));
  if (!json.is_object()) return InvalidArgument("", "the body is not a JSON object");
  std::erase_if(json.as_object(), [](const auto& member) { return member.second.is_null(); });
  for (const auto& [name, value] : json.as_object()) {
    PORTICO_RETURN_IF_ERROR(CheckFieldName(name, fields));
  }
  return json;
}

// A whole number in 0..`most`, if it is there.
StatusOr<std::optional<int64_t>> WorkerCount(const Json& json, std::string_view name,
                                             int64_t most) {
  const Json* value = json.Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_int() || value->as_int() < 0 || value->as_int() > most) {
    return InvalidArgument(std::string(name),
                           fmt::format("{} must be an integer from 0 to {}", name, most));
  }
  return value->as_int();
}

StatusOr<std::optional<double>> WorkerCost(const Json& json) {
  const Json* value = json.Find("cost");
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->as_double()) || value->as_double() < 0) {
    return InvalidArgument("cost", "cost must be a number of at least 0");
  }
  return value->as_double();
}

// Empty: it is not there.
StatusOr<std::string> WorkerText(const Json& json, std::string_view name) {
  const Json* value = json.Find(name);
  if (value == nullptr) return std::string();
  if (!value->is_string()) {
    return InvalidArgument(std::string(name), fmt::format("{} must be a string", name));
  }
  return value->as_string();
}

StatusOr<std::string> WorkerKey(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(std::string key, WorkerText(json, "api_key"));
  if (!router::IsHeaderKey(key)) {
    return InvalidArgument("api_key", "api_key must have printable ASCII characters only");
  }
  return key;
}

Status ReadRole(const Json& json, WorkerSpec* spec) {
  PORTICO_ASSIGN_OR_RETURN(const std::string type, WorkerText(json, "worker_type"));
  const auto role = std::find_if(
      std::begin(router::kRoles), std::end(router::kRoles),
      [&](router::Role one) { return (type.empty() ? "regular" : type) == RoleName(one); });
  if (role == std::end(router::kRoles)) {
    return InvalidArgument("worker_type", "worker_type must be regular, prefill or decode");
  }
  spec->role = *role;
  return OkStatus();
}

// The protocol of a bare host:port, which is probed otherwise.
Status ReadMode(const Json& json, WorkerSpec* spec) {
  PORTICO_ASSIGN_OR_RETURN(const std::string mode, WorkerText(json, "connection_mode"));
  if (mode.empty()) return OkStatus();
  const bool http = absl::EqualsIgnoreCase(mode, "http");
  if (!http && !absl::EqualsIgnoreCase(mode, "grpc")) {
    return InvalidArgument("connection_mode", "connection_mode must be http or grpc");
  }
  const auto protocol = http ? router::Protocol::kHttp : router::Protocol::kGrpc;
  if (spec->protocol != router::Protocol::kUnknown && spec->protocol != protocol) {
    return InvalidArgument("connection_mode",
                           fmt::format("connection_mode is {}, but the url's scheme is not", mode));
  }
  spec->protocol = protocol;
  return OkStatus();
}

// It is noted only: what a worker implements is found by probes.
Status ReadRuntime(const Json& json, WorkerSpec* spec) {
  for (const std::string_view name : {"runtime", "runtime_type"}) {
    PORTICO_ASSIGN_OR_RETURN(std::string runtime, WorkerText(json, name));
    if (runtime.empty()) continue;
    constexpr std::string_view kRuntimes[] = {"sglang", "vllm", "unspecified"};
    if (!HasField(kRuntimes, runtime)) {
      return InvalidArgument(std::string(name),
                             fmt::format("{} must be sglang, vllm or unspecified", name));
    }
    spec->runtime = std::move(runtime);
  }
  return OkStatus();
}

Status ReadKvEvents(const Json& json, WorkerSpec* spec) {
  const Json* events = json.Find("kv_events");
  if (events == nullptr) return OkStatus();
  auto address = router::ReadKvAddress(*events);
  if (!address.ok()) {
    return InvalidArgument("kv_events", fmt::format("kv_events: {}", MessageOf(address.status())));
  }
  if (spec->protocol == router::Protocol::kGrpc) {
    return InvalidArgument("kv_events", "kv_events: a grpc worker is asked for them by gRPC");
  }
  spec->kv_events = *std::move(address);
  return OkStatus();
}

// A name, or smg's card of a model, of which only the name can be told here.
StatusOr<std::string> ReadModelName(const Json& model) {
  if (model.is_string()) return model.as_string();
  const Json* id = model.is_object() ? model.Find("id") : nullptr;
  if (id == nullptr || !id->is_string()) {
    return InvalidArgument("models", "models must be a list of names, or of objects with an id");
  }
  for (const auto& [name, value] : model.as_object()) {
    if (name == "id" || value.is_null()) continue;
    return InvalidArgument(
        "models", fmt::format("{:.64} of a model cannot be set here: the worker reports it, or the "
                              "gateway's file has it below `models`",
                              name));
  }
  return id->as_string();
}

Status ReadModels(const Json& json, WorkerSpec* spec) {
  PORTICO_ASSIGN_OR_RETURN(std::string model_id, WorkerText(json, "model_id"));
  if (!model_id.empty()) spec->models.push_back(std::move(model_id));
  const Json* models = json.Find("models");
  if (models == nullptr) return OkStatus();
  if (!models->is_array()) return InvalidArgument("models", "models must be a list");
  for (const Json& model : models->as_array()) {
    PORTICO_ASSIGN_OR_RETURN(std::string name, ReadModelName(model));
    spec->models.push_back(std::move(name));
  }
  return OkStatus();
}

// Texts by name; `removes`: null stands for a label that goes.
StatusOr<std::vector<std::pair<std::string, std::optional<std::string>>>> ReadLabels(
    const Json& json, bool removes) {
  std::vector<std::pair<std::string, std::optional<std::string>>> read;
  const Json* labels = json.Find("labels");
  if (labels == nullptr) return read;
  if (!labels->is_object()) return InvalidArgument("labels", "labels must be an object");
  for (const auto& [name, value] : labels->as_object()) {
    if (removes && value.is_null()) {
      read.emplace_back(name, std::nullopt);
    } else if (value.is_string()) {
      read.emplace_back(name, value.as_string());
    } else {
      return InvalidArgument("labels", "labels must be strings");
    }
  }
  return read;
}

}  // namespace

StatusOr<WorkerSpec> ReadWorkerSpec(std::string_view body) {
  PORTICO_ASSIGN_OR_RETURN(const Json json, ReadObject(body, kSpecFields));
  const Json* url = json.Find("url");
  if (url == nullptr || !url->is_string()) return InvalidArgument("url", "url must be a string");
  auto spec = router::ParseWorkerUrl(url->as_string());
  if (!spec.ok()) return InvalidArgument("url", std::string(MessageOf(spec.status())));
  spec->source = router::Source::kAdmin;
  PORTICO_ASSIGN_OR_RETURN(spec->api_key, WorkerKey(json));
  PORTICO_RETURN_IF_ERROR(ReadRole(json, &*spec));
  PORTICO_RETURN_IF_ERROR(ReadMode(json, &*spec));
  PORTICO_RETURN_IF_ERROR(ReadRuntime(json, &*spec));
  PORTICO_RETURN_IF_ERROR(ReadKvEvents(json, &*spec));
  PORTICO_RETURN_IF_ERROR(ReadModels(json, &*spec));
  PORTICO_ASSIGN_OR_RETURN(const auto port, WorkerCount(json, "bootstrap_port", 65535));
  spec->bootstrap_port = static_cast<int>(port.value_or(0));
  PORTICO_ASSIGN_OR_RETURN(const auto requests,
                           WorkerCount(json, "max_requests", router::kMaxWorkerRequests));
  spec->max_requests = requests.value_or(0);
  PORTICO_ASSIGN_OR_RETURN(const auto priority,
                           WorkerCount(json, "priority", router::kMaxWorkerPriority));
  spec->priority = priority.value_or(spec->priority);
  PORTICO_ASSIGN_OR_RETURN(const auto cost, WorkerCost(json));
  spec->cost = cost.value_or(spec->cost);
  PORTICO_ASSIGN_OR_RETURN(auto labels, ReadLabels(json, false));
  for (auto& [name, value] : labels) spec->labels.emplace_back(name, *std::move(value));
  return *std::move(spec);
}

StatusOr<WorkerChange> ReadWorkerChange(std::string_view body) {
  PORTICO_ASSIGN_OR_RETURN(const Json json, ReadObject(body, kChangeFields));
  if (json.as_object().empty()) {
    return InvalidArgument("", fmt::format("the body changes nothing: a worker's {} can be changed",
                                           fmt::join(kChangeFields, ", ")));
  }
  WorkerChange change;
  if (const Json* draining = json.Find("draining"); draining != nullptr) {
    if (!draining->is_bool()) return InvalidArgument("draining", "draining must be true or false");
    change.draining = draining->as_bool();
  }
  if (json.Find("api_key") != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(change.api_key, WorkerKey(json));
  }
  PORTICO_ASSIGN_OR_RETURN(change.max_requests,
                           WorkerCount(json, "max_requests", router::kMaxWorkerRequests));
  PORTICO_ASSIGN_OR_RETURN(change.priority,
                           WorkerCount(json, "priority", router::kMaxWorkerPriority));
  PORTICO_ASSIGN_OR_RETURN(change.cost, WorkerCost(json));
  PORTICO_ASSIGN_OR_RETURN(change.labels, ReadLabels(json, true));
  return change;
}

}  // namespace portico::api
