#include "api/gateway/gateway_routes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/authorization.h"
#include "api/browser_rules.h"
#include "api/gateway/cors.h"
#include "api/gateway/gateway_reply.h"
#include "api/gateway/load_routes.h"
#include "api/gateway/merge_metrics.h"
#include "api/gateway/profile_routes.h"
#include "api/gateway/server_info.h"
#include "api/gateway/united_answers.h"
#include "api/gateway/worker_paths.h"
#include "api/gateway/worker_routes.h"
#include "api/route_table.h"
#include "api/unknown_path.h"
#include "base/log.h"
#include "router/fleet/model_cards.h"
#include "router/proxy/error_body.h"
#include "router/proxy/fan_out.h"
#include "router/proxy/forward_head.h"
#include "router/proxy/hide_addresses.h"
#include "router/proxy/proxy_call.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

template <size_t N>
bool IsOneOf(std::string_view path, const std::string_view (&paths)[N]) {
  return std::find(std::begin(paths), std::end(paths), path) != std::end(paths);
}

bool PassesOn(std::string_view path) { return RecipientsOf(path) == Recipients::kOne; }

void Readiness(net::Exchange& exchange, GatewayContext& context) {
  const Status ready = context.draining.load()
                           ? Error(StatusCode::kUnavailable, "the gateway is draining")
                           : context.gateway->Ready();
  const auto set = context.gateway->workers().set();
  const auto healthy = std::count_if(
      set->workers().begin(), set->workers().end(),
      [](const auto& worker) { return worker->health() == router::Health::kHealthy; });
  std::string body;
  JsonWriter writer(&body);
  writer.BeginObject().Key("status").String(ready.ok() ? "ready" : "not ready");
  if (!ready.ok()) writer.Key("reason").String(MessageOf(ready));
  writer.Key("healthy_workers").Int(healthy);
  writer.Key("total_workers").Int(static_cast<int64_t>(set->workers().size())).EndObject();
  GatewayReply(exchange, ready.ok() ? 200 : 503, std::move(body));
}

void WriteCard(std::string_view id, const router::ModelCard& card, JsonWriter* writer) {
  writer->BeginObject().Key("id").String(id).Key("object").String("model");
  writer->Key("created").Int(card.created).Key("owned_by").String("portico");
  writer->Key("root").String(card.root.empty() ? card.id : card.root);
  writer->Key("max_model_len");
  card.max_model_len > 0 ? writer->Int(card.max_model_len) : writer->Null();
  writer->EndObject();
}

// The union of what the workers serve.
void Models(net::Exchange& exchange, GatewayContext& context) {
  std::string body;
  JsonWriter writer(&body);
  writer.BeginObject().Key("object").String("list").Key("data").BeginArray();
  const router::WorkerSetPtr set = context.gateway->workers().set();
  const std::vector<router::ModelCard> cards = router::UnitedCards(*set);
  for (const router::ModelCard& card : cards) WriteCard(card.id, card, &writer);
  for (const auto& [alias, model] : set->aliases()) {
    const auto found = std::lower_bound(
        cards.begin(), cards.end(), model,
        [](const router::ModelCard& card, const std::string& name) { return card.id < name; });
    // Of a model that no worker names nothing is promised.
    if (found == cards.end() || found->id != model) continue;
    router::ModelCard card = *found;
    card.root = model;
    WriteCard(alias, card, &writer);
  }
  writer.EndArray().EndObject();
  GatewayReply(exchange, 200, std::move(body));
}

// Clients may ask for it; who may see GET /workers sees URLs here, too.
void Loads(net::Exchange& exchange, GatewayContext& context) {
  const bool urls = CheckControl(exchange.request, context.control_keys, context.api_key).ok();
  const router::WorkerSetPtr set = context.gateway->workers().set();  // a reload may replace it
  GatewayReply(exchange, 200, LoadsJson(*set, urls));
}

void Metrics(net::Exchange& exchange, GatewayContext& context) {
  std::string body;
  context.registry->Render(&body);
  AppendWorkerMetrics(*context.gateway, &body);
  GatewayReply(exchange, 200, std::move(body), "text/plain; version=0.0.4; charset=utf-8");
}

// The id of the session that the body opens or closes; empty: none. All workers have to give a session the same id: one
// that its client has not named is named here.
std::string SessionOf(router::GatewayShard& shard, bool opens, std::string* body) {
  if (body->size() > kControlBody) return {};  // a worker refuses it
  StatusOr<Json> json = opens && body->empty() ? Json(JsonObject{}) : Json::Parse(*body);
  if (!json.ok() || !json->is_object()) return {};  // a worker says what is wrong
  const Json* given = json->Find("session_id");
  if (given != nullptr && given->is_string()) return given->as_string();
  if (!opens || (given != nullptr && !given->is_null())) return {};
  std::string named = shard.NewRequestId();
  std::erase_if(json->as_object(), [](const auto& member) { return member.first == "session_id"; });
  json->Set("session_id", named);
  *body = json->Dump();
  return named;
}

void NoteSession(router::Gateway& gateway, std::string_view path, std::string_view id) {
  if (id.empty()) return;
  if (path == "/open_session") gateway.sessions().Open(id, Clock::now());
  if (path == "/close_session") gateway.sessions().Close(id);
}

// 200 if all have done it, else what the first that has not said, or 502.
void AskAll(ExchangePtr exchange, router::GatewayShard& shard) {
  const net::HttpRequest& asked = exchange->request;
  router::SmallRequest request = {
      .method = asked.method,
      .target = asked.path,
      .body = asked.body,
      .content_type = std::string(asked.Header("content-type")),
      .authorization = KeyForWorkers(asked, shard.gateway().options().kept_keys),
      .timeout = std::chrono::seconds(600)};
  if (!asked.query.empty()) request.target += "?" + asked.query;
  const bool opens = asked.path == "/open_session";
  const bool adapters = asked.path.find("load_lora_adapter") != std::string::npos;
  const auto session = std::make_shared<const std::string>(
      opens || asked.path == "/close_session" ? SessionOf(shard, opens, &request.body)
                                              : std::string());
  auto shared = std::shared_ptr<net::Exchange>(std::move(exchange));
  // Operators may see more than clients.
  const bool hides =
      !IsControlPath(shared->request.path) && !shard.gateway().options().show_workers;
  router::FanOut::Start(shard, std::move(request), [=, &shard](auto answers) {
    if (answers.empty()) {
      return GatewayError(*shared, 503, "no worker is available", "no_available_workers");
    }
    int status = 200;
    int64_t done = 0;
    bool changed = false;
    std::vector<std::string_view> bodies;
    std::string body;
    JsonWriter writer(&body);
    writer.BeginObject().Key("workers").BeginArray();
    for (const auto& [worker, answer] : answers) {
      const int said = answer.ok() ? answer->status : 502;
      // A redirection is not followed: nothing has been done.
      if (status == 200 && said >= 300) status = said >= 400 ? said : 502;
      if (said < 300) ++done;
      changed = changed || (adapters && said < 300);
      if (answer.ok()) bodies.push_back(answer->body);
      writer.BeginObject().Key("worker").String(worker).Key("status").Int(said);
      std::string told(answer.ok() ? std::string_view(answer->body) : MessageOf(answer.status()));
      if (hides && said >= 500) told = router::HideAddresses(std::move(told), *shard.set());
      writer.Key("answer").String(told);
      writer.EndObject();
    }
    if (changed) shard.gateway().NoteModelsChanged();
    if (status == 200) NoteSession(shard.gateway(), shared->request.path, *session);
    if (opens && status == 200) return GatewayReply(*shared, 200, answers.front().answer->body);
    writer.EndArray();
    if (status == 200) WriteUnited(shared->request.path, bodies, &writer);
    if (shared->request.path == "/flush_cache") {
      WriteFlushed(done, static_cast<int64_t>(answers.size()), &writer);
    }
    writer.Key("success").Bool(status == 200).EndObject();
    GatewayReply(*shared, status, std::move(body));
  });
}

// The workers' metrics on their way to one text: a part in each turn of the shard, since a worker's may be long.
class MetricsUnion : public std::enable_shared_from_this<MetricsUnion> {
 public:
  MetricsUnion(ExchangePtr exchange, net::Shard& shard)
      : exchange_(std::move(exchange)), shard_(shard) {}

  void Begin(std::vector<router::FanOutAnswer> answers) {
    answers_ = std::move(answers);
    GoOn();
  }

 private:
  static constexpr size_t kPart = 32 << 10;

  void GoOn() {
    while (next_ < answers_.size()) {
      const auto& [worker, answer] = answers_[next_];
      std::string_view rest;
      if (answer.ok() && answer->status == 200) rest = answer->body;
      rest.remove_prefix(std::min(read_, rest.size()));
      const size_t before = rest.size();
      merged_.AddPart(worker, &rest, kPart);
      read_ += before - rest.size();
      if (rest.empty()) {
        merged_.EndAnswer();
        ++next_;
        read_ = 0;
      }
      if (before > 0) return shard_.Post([self = shared_from_this()] { self->GoOn(); });
    }
    GatewayReply(*exchange_, 200, merged_.Text(), "text/plain; version=0.0.4; charset=utf-8");
  }

  const ExchangePtr exchange_;
  net::Shard& shard_;
  std::vector<router::FanOutAnswer> answers_;
  size_t next_ = 0, read_ = 0;  // the answer, and how much of it
  MergedMetrics merged_;
};

// The workers' own metrics, labelled with their ids.
void EngineMetrics(ExchangePtr exchange, router::GatewayShard& shard) {
  const router::SmallRequest request = {.target = "/metrics",
                                        .timeout = std::chrono::seconds(10),
                                        .max_bytes = 1 << 20,
                                        .to_token_workers = false};  // gRPC has no such text
  auto made = std::make_shared<MetricsUnion>(std::move(exchange), shard.shard());
  router::FanOut::Start(shard, request, [made](auto answers) { made->Begin(std::move(answers)); });
}

// Probes and metrics are open to all.
bool IsProbe(std::string_view path) {
  constexpr std::string_view kProbes[] = {"/health",    "/liveness", "/ping",
                                          "/readiness", "/ready",    "/metrics"};
  return IsOneOf(path, kProbes);
}

bool IsOpen(const net::HttpRequest& request) {
  return (request.method == "GET" || request.method == "HEAD") && IsProbe(request.path);
}

// False if the path is none of them.
bool HandleOpen(net::Exchange& exchange, GatewayContext& context) {
  if (!IsOpen(exchange.request)) return false;
  const std::string& path = exchange.request.path;
  if (path == "/health" || path == "/liveness" || path == "/ping") {
    GatewayReply(exchange, 200, "ok\n", "text/plain");
  } else if (path == "/readiness" || path == "/ready") {
    Readiness(exchange, context);
  } else {
    Metrics(exchange, context);
  }
  return true;
}

// SGLang takes a storage backend only where operators have a key of their own, and vLLM /collective_rpc only in its
// development mode: with --api-key alone, any client would be an operator here.
bool NamesCode(const net::HttpRequest& head) {
  if (head.path == "/collective_rpc") return true;
  return head.path == "/hicache/storage-backend" && head.method != "GET" && head.method != "HEAD";
}

Status MayControl(const net::HttpRequest& request, const GatewayContext& context) {
  const auto who = CheckControl(request, context.control_keys, context.api_key);
  if (context.audit) {
    LogInfo("control: {} {} of {} from {}: {}", request.method, request.path,
            who.ok() && !who->empty() ? *who : "unknown", request.peer,
            who.ok() ? "allowed" : "refused");
  }
  return who.status();
}

Status CheckGatewayHead(const net::HttpRequest& head, const GatewayContext& context) {
  PORTICO_RETURN_IF_ERROR(CheckHost(head, context.browser));
  if (IsOpen(head) || IsPreflight(head, context.cors_origins)) return OkStatus();
  const std::string& path = head.path;
  const bool control = IsWorkerPath(path) || IsControlPath(path);
  // Operators too may ask for the loads.
  const bool gets = head.method == "GET" || head.method == "HEAD";
  const bool operators =
      gets && IsLoadsPath(path) && CheckControl(head, context.control_keys, context.api_key).ok();
  if (!operators) {
    PORTICO_RETURN_IF_ERROR(control ? MayControl(head, context)
                                    : CheckApiKey(head, context.api_key));
  }
  if (NamesCode(head) && context.control_keys.empty()) {
    return Error(StatusCode::kPermissionDenied,
                 "this needs --control-plane-api-keys: its body can name code");
  }
  if (head.late) return Error(StatusCode::kUnavailable, "the gateway is draining");
  if (PassesOn(path) && router::HasDotSegment(path)) {
    return InvalidArgument("", "the path must not have segments of dots");
  }
  return CheckPage(head, context.cors_origins);
}

}  // namespace

net::HeadVerdict AdmitGateway(const net::HttpRequest& head, const GatewayContext& context) {
  net::HeadVerdict verdict;
  const Status status = CheckGatewayHead(head, context);
  if (status.ok()) {
    const size_t buffered = context.gateway->options().buffered_body_bytes;
    if (buffered > 0 && PassesOn(head.path)) verdict.whole_body_bytes = buffered;
    return verdict;
  }
  net::HttpResponse& refusal = verdict.refusal.emplace();
  refusal.status = HttpStatus(status.code());
  if (refusal.status == 401) refusal.headers.emplace_back("www-authenticate", "Bearer");
  if (refusal.status == 503) refusal.headers.emplace_back("retry-after", "1");
  for (auto& header : CorsHeaders(head, context.cors_origins)) {
    refusal.headers.push_back(std::move(header));
  }
  refusal.body = router::GatewayErrorBody(refusal.status, MessageOf(status), ReasonOf(status));
  return verdict;
}

std::string WriteGatewayError(const net::HttpError& error) {
  return router::GatewayErrorBody(error.status, error.message, {});
}

void DispatchWatch(ExchangePtr exchange, GatewayContext& context) {
  if (HandleOpen(*exchange, context)) return;
  GatewayError(*exchange, 404, "this port serves /metrics, /health and /readiness only");
}

void DispatchGateway(ExchangePtr exchange, GatewayContext& context, router::GatewayShard& shard) {
  if (!context.cors_origins.empty()) {
    exchange = HandleCors(std::move(exchange), context.cors_origins);
    if (exchange == nullptr) return;
  }
  if (HandleOpen(*exchange, context)) return;
  const net::HttpRequest& request = exchange->request;
  const std::string& path = request.path;
  if (IsWorkerPath(path)) return HandleWorkers(*exchange, context);
  if (IsProfilePath(path)) {
    bool passed_on = false;
    HandleGatewayProfile(&exchange, KeyForWorkers(request, shard.gateway().options().kept_keys),
                         shard, &passed_on);
    if (!passed_on) return;
  }
  const Recipients recipients = RecipientsOf(path);
  if (recipients == Recipients::kAll) return AskAll(std::move(exchange), shard);
  if (recipients == Recipients::kItself) {
    return GatewayError(*exchange, 501, path + " concerns one server: send it to that server",
                        "not_implemented");
  }
  if (request.method == "GET" || request.method == "HEAD") {
    if (IsServerInfo(request)) return HandleServerInfo(std::move(exchange), context, shard);
    if (path == "/v1/models") return Models(*exchange, context);
    if (path == "/engine_metrics") return EngineMetrics(std::move(exchange), shard);
    if (IsLoadsPath(path)) return Loads(*exchange, context);
  }
  if (IsProbe(path)) return GatewayNotAllowed(*exchange, "GET");
  if (PassesOn(path)) return router::ProxyCall::Start(shard, std::move(exchange));
  // Workers have these; a base URL that lacks /v1 is a common slip.
  const auto has = [](std::string_view known) {
    return known == "/v1/chat/completions" || known == "/v1/completions" ||
           known == "/v1/embeddings" || known == "/v1/responses" || known == "/v1/messages" ||
           known == "/v1/models";
  };
  GatewayError(*exchange, 404, UnknownPath(request.method, path, has));
}

}  // namespace portico::api
