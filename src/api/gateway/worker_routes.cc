#include "api/gateway/worker_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/str_replace.h"
#include "api/gateway/gateway_reply.h"
#include "api/gateway/worker_fields.h"
#include "api/query.h"
#include "base/log.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace portico::api {
namespace {

using router::Worker;
using router::WorkerSpec;

constexpr std::string_view kBelow = "/workers/";

// What the worker has last said of itself; null before it has.
void WriteReport(const router::ReportedLoad& report, JsonWriter* writer) {
  writer->Key("reported_load");
  if (report.at == TimePoint{}) {
    writer->Null();
    return;
  }
  const auto figure = [&](std::string_view name, double value) {
    writer->Key(name);
    value < 0 ? writer->Null() : writer->Double(value);
  };
  writer->BeginObject();
  figure("running_requests", report.running_requests);
  figure("waiting_requests", report.waiting_requests);
  figure("used_tokens", report.used_tokens);
  figure("total_tokens", report.total_tokens);
  figure("token_usage", report.token_usage);
  figure("throughput", report.throughput);
  figure("cache_hit_rate", report.hit_rate);
  figure("age_secs", Seconds(Clock::now() - report.at));
  writer->EndObject();
}

// `added`: smg's clients find the id of one that they add by another name.
void WriteWorker(const Worker& worker, const router::Gateway& gateway, JsonWriter* writer,
                 bool added = false) {
  writer->BeginObject();
  if (added) writer->Key("worker_id").String(worker.id());
  writer->Key("id").String(worker.id()).Key("url").String(worker.url());
  const WorkerSpec& spec = worker.spec();
  writer->Key("worker_type").String(RoleName(spec.role));
  if (spec.role == router::Role::kPrefill) {
    writer->Key("bootstrap_port");
    spec.bootstrap_port > 0 ? writer->Int(spec.bootstrap_port) : writer->Null();
  }
  if (spec.dp_rank >= 0) {
    writer->Key("base_url").String(ServerUrl(spec));
    writer->Key("dp_rank").Int(spec.dp_rank).Key("dp_size").Int(spec.dp_size);
  }
  writer->Key("connection_mode").String(router::ProtocolName(worker.protocol()));
  const std::vector<std::string> models = worker.models();
  writer->Key("model_id");
  models.empty() ? writer->Null() : writer->String(models.front());
  writer->Key("models").BeginArray();
  for (const std::string& model : models) writer->String(model);
  writer->EndArray();
  const router::Health health = worker.health();
  writer->Key("is_healthy").Bool(health == router::Health::kHealthy);
  writer->Key("status").String(router::HealthName(health));
  const std::string trouble = health == router::Health::kHealthy ? std::string() : worker.trouble();
  writer->Key("reason");
  trouble.empty() ? writer->Null() : writer->String(trouble);
  writer->Key("draining").Bool(worker.draining());
  writer->Key("paused").Bool(worker.paused());
  writer->Key("circuit_breaker").String(router::BreakerStateName(worker.breaker().state()));
  writer->Key("load").Int(worker.requests());
  writer->Key("prefill_tokens").Int(worker.tokens());
  writer->Key("requests_total").Int(static_cast<int64_t>(worker.total_requests()));
  uint64_t malformed = 0;
  for (const router::Malformed kind : router::kMalformedKinds) malformed += worker.malformed(kind);
  writer->Key("malformed_answers").Int(static_cast<int64_t>(malformed));
  writer->Key("kv_events")
      .Bool(worker.tells_cache() && worker.health() == router::Health::kHealthy);
  WriteReport(worker.report(), writer);
  writer->Key("max_requests");
  worker.max_requests() > 0 ? writer->Int(worker.max_requests()) : writer->Null();
  writer->Key("priority").Int(worker.priority()).Key("cost").Double(worker.cost());
  writer->Key("runtime_type");
  spec.runtime.empty() ? writer->Null() : writer->String(spec.runtime);
  // smg's name for them and sglang-router's.
  for (const char* key : {"labels", "metadata"}) {
    writer->Key(key).BeginObject();
    for (const auto& [name, value] : worker.labels()) writer->Key(name).String(value);
    writer->EndObject();
  }
  writer->Key("disable_health_check").Bool(!gateway.options().health.enabled);
  writer->EndObject();
}

std::string WorkerJson(const Worker& worker, const router::Gateway& gateway, bool added = false) {
  std::string body;
  JsonWriter writer(&body);
  WriteWorker(worker, gateway, &writer, added);
  return body;
}

void AddWorker(net::Exchange& exchange, router::Gateway& gateway, StatusOr<WorkerSpec> spec,
               int status) {
  if (!spec.ok()) return GatewayError(exchange, spec.status());
  const auto added = gateway.AddWorker(*std::move(spec));
  if (added.status().code() == StatusCode::kInvalidArgument) {
    return GatewayError(exchange, added.status());
  }
  if (!added.ok()) {
    return GatewayError(exchange, 409, MessageOf(added.status()), "WORKER_ALREADY_EXISTS");
  }
  GatewayReply(exchange, status, WorkerJson(**added, gateway, true));
}

void RemoveWorker(net::Exchange& exchange, router::Gateway& gateway, std::string_view name) {
  if (!gateway.RemoveWorker(name)) {
    return GatewayError(exchange, 404, "there is no such worker", "WORKER_NOT_FOUND");
  }
  GatewayReply(exchange, 200, R"({"status":"removed"})");
}

void ChangeOne(net::Exchange& exchange, router::Gateway& gateway, Worker& worker) {
  const auto change = ReadWorkerChange(exchange.request.body);
  if (!change.ok()) return GatewayError(exchange, change.status());
  const bool drained = worker.draining();
  worker.Change(*change);
  if (worker.draining() != drained) {
    LogInfo("worker {} {} {}", worker.id(), worker.url(),
            drained ? "takes requests again" : "drains: it gets no new requests");
  }
  if (change->api_key.has_value()) gateway.NoteModelsChanged();  // it may have refused the old key
  GatewayReply(exchange, 200, WorkerJson(worker, gateway));
}

void HandleOne(net::Exchange& exchange, router::Gateway& gateway, std::string_view id) {
  const router::WorkerPtr worker = gateway.workers().set()->FindWorker(id);
  if (worker == nullptr) {
    return GatewayError(exchange, 404, "there is no such worker", "WORKER_NOT_FOUND");
  }
  const std::string& method = exchange.request.method;
  if (method == "GET" || method == "HEAD") {
    return GatewayReply(exchange, 200, WorkerJson(*worker, gateway));
  }
  if (method == "DELETE") return RemoveWorker(exchange, gateway, worker->id());
  if (method == "PUT" || method == "PATCH") return ChangeOne(exchange, gateway, *worker);
  GatewayNotAllowed(exchange, "GET, PUT, PATCH, DELETE");
}

// ?url=
StatusOr<std::string> UrlInQuery(const net::HttpRequest& request) {
  PORTICO_ASSIGN_OR_RETURN(const auto url, QueryValue(request.query, "url"));
  if (!url.has_value() || url->empty()) return InvalidArgument("url", "the query names no url");
  return *url;
}

void HandleOld(net::Exchange& exchange, router::Gateway& gateway) {
  const std::string& path = exchange.request.path;
  if (path == "/list_workers") {
    std::string body;
    JsonWriter writer(&body);
    writer.BeginObject().Key("urls").BeginArray();
    const router::WorkerSetPtr set = gateway.workers().set();  // a reload may replace it
    for (const auto& worker : set->workers()) writer.String(worker->url());
    writer.EndArray().EndObject();
    return GatewayReply(exchange, 200, std::move(body));
  }
  if (exchange.request.method != "POST") return GatewayNotAllowed(exchange, "POST");
  const auto url = UrlInQuery(exchange.request);
  if (!url.ok()) return GatewayError(exchange, url.status());
  if (path == "/remove_worker") return RemoveWorker(exchange, gateway, *url);
  auto spec = router::ParseWorkerUrl(*url);
  if (spec.ok()) spec->source = router::Source::kAdmin;
  AddWorker(exchange, gateway, std::move(spec), 200);
}

}  // namespace

bool IsWorkerPath(std::string_view path) {
  return path == "/workers" || path.starts_with(kBelow) || path == "/add_worker" ||
         path == "/remove_worker" || path == "/list_workers";
}

std::string WorkersJson(router::Gateway& gateway) {
  const auto set = gateway.workers().set();
  std::string body;
  JsonWriter writer(&body);
  int64_t healthy = 0;
  std::array<int64_t, std::size(router::kRoles)> roles{};
  writer.BeginObject().Key("workers").BeginArray();
  for (const auto& worker : set->workers()) {
    WriteWorker(*worker, gateway, &writer);
    healthy += worker->health() == router::Health::kHealthy ? 1 : 0;
    ++roles[static_cast<size_t>(worker->spec().role)];
  }
  writer.EndArray().Key("total").Int(static_cast<int64_t>(set->workers().size()));
  writer.Key("stats").BeginObject().Key("healthy_workers").Int(healthy);
  writer.Key("policy").String(set->all().policy->name());
  for (const router::Role role : router::kRoles) {
    writer.Key(fmt::format("{}_count", RoleName(role))).Int(roles[static_cast<size_t>(role)]);
  }
  for (const router::Role role : {router::Role::kPrefill, router::Role::kDecode}) {
    const auto& policy = set->all(role).policy;
    if (policy == nullptr) continue;
    writer.Key(fmt::format("{}_policy", RoleName(role))).String(policy->name());
  }
  writer.Key("queued").Int(gateway.queued()).EndObject().EndObject();
  return body;
}

void HandleWorkers(net::Exchange& exchange, GatewayContext& context) {
  router::Gateway& gateway = *context.gateway;
  const net::HttpRequest& request = exchange.request;
  const std::string_view path = request.path;
  if (path.starts_with(kBelow)) {
    // It may be a worker's URL, whose slashes are escaped.
    const std::string id(path.substr(kBelow.size()));
    return HandleOne(exchange, gateway, absl::StrReplaceAll(id, {{"%2F", "/"}}));
  }
  if (path != "/workers") return HandleOld(exchange, gateway);
  if (request.method == "GET" || request.method == "HEAD") {
    return GatewayReply(exchange, 200, WorkersJson(gateway));
  }
  if (request.method != "POST") return GatewayNotAllowed(exchange, "GET, POST");
  AddWorker(exchange, gateway, ReadWorkerSpec(request.body), 202);
}

}  // namespace portico::api
