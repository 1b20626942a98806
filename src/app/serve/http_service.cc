#include "app/serve/http_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "api/common/error_body.h"
#include "app/omni/start_pipeline.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/processors.h"
#include "message/trace_context.h"
#include "service/control/profiling.h"
#include "service/plan/request_media.h"
#include "service/upstream/media_fetch.h"
#include "text/json.h"

namespace portico {
namespace {

// Long requests that wait for the CPU pool; beyond it they are refused.
constexpr size_t kMaxPooledTasks = 256;

int ShardCount(const ServeOptions& options) {
  if (options.shards > 0) return options.shards;
  return std::max(1, UsableProcessors() / 4);
}

std::vector<std::string> ModelIds(const ServeOptions& options) {
  std::vector<std::string> ids;
  for (const ModelOptions& model : options.models) ids.push_back(ModelId(model));
  return ids;
}

size_t PoolThreads() { return static_cast<size_t>(std::max(1, UsableProcessors() / 2)); }

// For the access log: the address, and the subject of the client's certificate where it shows one.
std::string WhoAsks(const std::string& peer, const std::string& client) {
  return client.empty() ? peer : fmt::format("{} ({})", peer, client);
}

// For the access log: the name that the client or a proxy gave the request, or nothing. What would break the line is
// left out.
std::string IdOf(std::string_view request_id) {
  constexpr size_t kMost = 128;
  std::string id;
  for (const char c : request_id.substr(0, kMost)) {
    if (c > ' ' && c < 0x7f) id.push_back(c);
  }
  return id.empty() ? "" : " id " + id;
}

// For the access log: the trace that the request is part of, or nothing.
std::string TraceOf(std::string_view traceparent) {
  const std::optional<TraceContext> trace = ParseTraceparent(traceparent);
  return trace ? fmt::format(" trace {:016x}{:016x}", trace->trace_high, trace->trace_low) : "";
}

// Answers by status, of what was refused or failed. Any thread.
class ErrorCounts {
 public:
  explicit ErrorCounts(Registry& registry) {
    for (const int status : kStatuses) {
      counters_.push_back(&registry.AddCounter(
          "portico_http_errors_total",
          "HTTP requests refused or failed, by status; 499: the client left or was cut off.",
          {{"status", status == kOther ? "other" : std::to_string(status)}}));
    }
  }
  void Count(int status) const {
    if (status < 400) return;
    const auto* known = std::find(std::begin(kStatuses), std::end(kStatuses) - 1, status);
    counters_[static_cast<size_t>(known - std::begin(kStatuses))]->Add();
  }

 private:
  static constexpr int kOther = 0;
  static constexpr int kStatuses[] = {400, 401, 403, 404, 405, 408, 413,
                                      415, 429, 431, 499, 500, 503, kOther};
  std::vector<Counter*> counters_;  // in the order of kStatuses
};

std::string WriteError(const net::HttpError& error) {
  return api::ErrorBody(error.status, error.message);
}

net::ServerOptions ListenerOptions(const ServeOptions& options, Registry& registry) {
  net::ServerOptions listener;
  listener.host = options.host;
  listener.port = options.port;
  listener.max_connections = options.max_connections;
  listener.max_head_bytes = options.max_head_bytes;
  listener.max_body_bytes = options.max_body_bytes;
  listener.write_error = WriteError;
  listener.answers_while_draining = true;  // /readiness says so
  listener.max_unsent_bytes = options.max_unsent_bytes;
  auto seconds = [](double value) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  };
  listener.idle_timeout = seconds(options.idle_timeout);
  listener.head_timeout = seconds(options.read_timeout);
  listener.body_timeout = seconds(options.read_timeout);
  listener.http2.max_concurrent_streams =
      static_cast<uint32_t>(options.grpc_max_concurrent_streams);
  listener.http2.keepalive_time = seconds(options.grpc_keepalive_time);
  listener.http2.keepalive_timeout = seconds(options.grpc_keepalive_timeout);
  listener.http2.max_age = seconds(options.grpc_max_connection_age);
  listener.http2.max_age_grace = seconds(options.grpc_max_connection_age_grace);
  if (options.grpc_port != 0) listener.more_ports.push_back(options.grpc_port);
  listener.tls.certificate = options.ssl_certfile;
  listener.tls.key = options.ssl_keyfile;
  listener.tls.key_password = options.ssl_keyfile_password;
  listener.tls.client_ca = options.ssl_ca_certs;
  if (!options.enable_ssl_refresh) listener.tls.reload_period = Duration::zero();
  listener.notes_ids = options.access_log;
  listener.on_complete = [errors = ErrorCounts(registry), log = options.access_log](
                             const net::HttpRequest& request, int status, size_t bytes,
                             Duration took) {
    errors.Count(status);
    if (!log) return;
    LogInfo("{} {} {} {} {} bytes {:.1f} ms{}{}", WhoAsks(request.peer, request.client),
            request.method, request.path, status, bytes, Seconds(took) * 1e3,
            IdOf(request.Header("x-request-id")), TraceOf(request.Header("traceparent")));
  };
  return listener;
}

net::GrpcOptions GrpcListenerOptions(const ServeOptions& options, api::rpc::GrpcService& service) {
  net::GrpcOptions grpc = service.Options();
  grpc.max_message_bytes = static_cast<size_t>(options.grpc_max_message_size);
  if (!options.access_log) return grpc;
  grpc.on_complete = [count = std::move(grpc.on_complete)](
                         const net::GrpcCall& call, StatusCode code, size_t bytes, Duration took) {
    count(call, code, bytes, took);
    LogInfo("{} gRPC {} {} {} bytes {:.1f} ms{}{}", WhoAsks(call.peer(), call.client()),
            call.method(), absl::StatusCodeToString(code), bytes, Seconds(took) * 1e3,
            IdOf(call.Metadata("x-request-id")), TraceOf(call.Metadata("traceparent")));
  };
  return grpc;
}

MediaLimits MediaLimitsOf(const ServeOptions& options) {
  MediaLimits limits;
  for (const absl::string_view name :
       absl::StrSplit(options.allowed_media_domain, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    limits.rules.domains.push_back(absl::AsciiStrToLower(name));
  }
  if (!options.allowed_local_media_path.empty()) {
    limits.rules.local_folder =
        std::filesystem::absolute(options.allowed_local_media_path).string();
  }
  const auto most = Json::Parse(options.limit_mm_data_per_request);
  if (most.ok() && most->is_object()) {
    for (const MediaKind kind : kEachMediaKind) {
      size_t& count = limits.Of(kind).count;
      count = static_cast<size_t>(most->GetInt(NameOf(kind), static_cast<int64_t>(count)));
    }
  }
  return limits;
}

}  // namespace

HttpService::HttpService(const ServeOptions& options)
    : metrics_(registry_, models_, ModelIds(options)),
      load_(
          std::make_shared<net::ServerLoad>(static_cast<size_t>(options.max_inflight_body_bytes))),
      pool_(std::in_place, PoolThreads(), kMaxPooledTasks) {
  if (options.accept_any_model) models_.AcceptAnyName();
  Share(options, &api_);
  api_.server_info = OptionsAsJson(options);
  routes_ = api::MakeRouteTable();
}

void HttpService::Share(const ServeOptions& options, api::ApiContext* api) {
  api->models = &models_;
  api->registry = &registry_;
  api->metrics = &metrics_;
  api->pool = &*pool_;
  api->api_key = options.api_key;
  api->admin_api_key = options.admin_api_key;
  api->cors_origin = options.cors_origin;
  api->browser = api::MakeBrowserRules(options.host, options.allowed_host);
  api->media = MediaLimitsOf(options);
  api->max_client_batch_size = static_cast<size_t>(options.max_client_batch_size);
  api->log_requests = options.log_requests;
  if (options.reasoning_field == "reasoning") api->reasoning_field = "reasoning";
  api->incremental_streaming = options.incremental_streaming_output.value_or(false);
  api->grpc_cumulative = !options.incremental_streaming_output.value_or(true);
  api->pipeline = pipeline_.get();
}

StatusOr<std::unique_ptr<HttpService>> HttpService::Start(const ServeOptions& options) {
  PORTICO_ASSIGN_OR_RETURN(std::unique_ptr<HttpService> service, Make(options));
  PORTICO_RETURN_IF_ERROR(service->Listen(options));
  return service;
}

StatusOr<std::unique_ptr<HttpService>> HttpService::Make(const ServeOptions& options) {
  std::error_code no_folder;
  if (const std::string& media = options.allowed_local_media_path;
      !media.empty() && !std::filesystem::is_directory(media, no_folder)) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--allowed-local-media-path: {} is not a folder", media));
  }
  std::unique_ptr<HttpService> service(new HttpService(options));
  for (int i = 0; i < ShardCount(options); ++i) {
    auto shard = std::make_unique<net::Shard>(i);
    shard->CountTurns(service->registry_);
    auto context = std::make_unique<api::ShardContext>(*shard, service->api_);
    service->api_.shards.push_back(context.get());
    service->contexts_.push_back(std::move(context));
    service->shards_.push_back(std::move(shard));
  }
  service->AddGauges();
  PORTICO_RETURN_IF_ERROR(SetProfileOptions({.directory = options.profile_dir,
                                             .max_bytes = options.profile_max_bytes,
                                             .stage = options.speech ? "coordinator" : "frontend"},
                                            &service->registry_));
  for (const auto& shard : service->shards_) shard->Start();
  service->started_ = true;
  return service;
}

void HttpService::Dispatch(std::unique_ptr<net::Exchange> exchange) {
  api::ShardContext& context = *contexts_[exchange->shard().index()];
  routes_.Dispatch(std::move(exchange), context);
}

void HttpService::Keep(std::shared_ptr<void> used) {
  const MutexLock lock(&keeping_);
  kept_.push_back(std::move(used));
}

Status HttpService::Listen(const ServeOptions& options) {
  net::ServerOptions listener = ListenerOptions(options, registry_);
  listener.load = load_;
  listener.check_head = [this](net::HttpRequest& head) { return routes_.Admit(head, api_); };
  if (!options.disable_grpc) {
    grpc_.emplace(api_, routes_);
    listener.grpc = GrpcListenerOptions(options, *grpc_);
  }
  auto handle = [this](std::unique_ptr<net::Exchange> exchange) { Dispatch(std::move(exchange)); };
  PORTICO_ASSIGN_OR_RETURN(server_, net::Server::Start(std::move(listener), shards(), handle));
  return OkStatus();
}

Status HttpService::StartPipeline(const ServeOptions& options) {
  EngineStageContext context;
  context.models = &models_;
  context.metrics = &metrics_;
  for (const auto& shard : contexts_) context.hubs.push_back(&shard->hub);
  PORTICO_ASSIGN_OR_RETURN(pipeline_,
                           ::portico::StartPipeline(options, std::move(context), &registry_));
  api_.pipeline = pipeline_.get();
  return OkStatus();
}

// What has a bound (docs/architecture.md), beside what each model counts.
void HttpService::AddGauges() {
  registry_.AddCallbackGauge("portico_cpu_pool_threads", "Threads for work too long for a shard.",
                             [] { return static_cast<double>(PoolThreads()); });
  registry_.AddCallbackGauge("portico_cpu_pool_queued",
                             "Tasks that wait for such a thread, at most 256.",
                             [this] { return pool_ ? static_cast<double>(pool_->queued()) : 0.0; });
  const auto load = [this](const char* name, const char* help, auto value) {
    registry_.AddCallbackGauge(
        name, help, [&load = *load_, value] { return static_cast<double>(value(load)); });
  };
  load("portico_connections", "Open connections, at most --max-connections.",
       [](const net::ServerLoad& now) { return now.connections.load(); });
  load("portico_body_bytes", "Bodies of requests in flight, at most --max-inflight-body-bytes.",
       [](const net::ServerLoad& now) { return now.bodies->taken(); });
  const auto refusals = [this](const char* name, const char* help, auto value) {
    registry_.AddCallbackCounter(
        name, help, [&load = *load_, value] { return static_cast<double>(value(load)); });
  };
  refusals("portico_connections_refused_total", "Connections beyond --max-connections.",
           [](const net::ServerLoad& now) { return now.connections_refused.load(); });
  refusals("portico_bodies_refused_total", "Requests refused at --max-inflight-body-bytes.",
           [](const net::ServerLoad& now) { return now.bodies->refused(); });
  refusals("portico_slow_readers_cut_total",
           "Streams cut off at --max-unsent-bytes, and clients that have stopped reading.",
           [](const net::ServerLoad& now) { return now.readers_cut.load(); });
  registry_.AddCallbackGauge("portico_media_fetches",
                             "Media that are fetched by their addresses, at most 64.",
                             [] { return static_cast<double>(MediaFetch::Running()); });
  registry_.AddCallbackGauge("portico_media_bytes",
                             "Fetched media that requests still have, in bytes, at most 1 GiB.",
                             [] { return static_cast<double>(MediaFetch::Held()); });
  registry_.AddCallbackCounter(
      "portico_cpu_pool_tasks_total", "Tasks that the pool has taken.",
      [this] { return pool_ ? static_cast<double>(pool_->taken()) : 0.0; });
  registry_.AddCallbackCounter(
      "portico_cpu_pool_refused_total",
      "Tasks that found that queue full; requests among them get 503.",
      [this] { return pool_ ? static_cast<double>(pool_->refused()) : 0.0; });
  registry_.AddCallbackGauge("portico_hub_pending",
                             "What engines have delivered and shards have not handed on yet.",
                             [this] {
                               size_t pending = 0;
                               for (const auto& context : contexts_) {
                                 pending += context->hub.pending() + context->pooling_hub.pending();
                               }
                               return static_cast<double>(pending);
                             });
}

void HttpService::OnEveryShard(const std::function<void(api::ShardContext&)>& task) {
  std::latch done(static_cast<std::ptrdiff_t>(contexts_.size()));
  for (auto& context : contexts_) {
    context->shard.Post([&task, &done, at = context.get()] {
      task(*at);
      done.count_down();
    });
  }
  done.wait();
}

std::vector<net::Shard*> HttpService::shards() const {
  std::vector<net::Shard*> all;
  for (const auto& shard : shards_) all.push_back(shard.get());
  return all;
}

bool HttpService::Drain(Duration patience) {
  api_.draining = true;
  bool finished = server_->Drain(Clock::now() + patience);
  if (!finished) {
    LogWarning("requests are still running after {:.0f} s: aborting them", Seconds(patience));
    OnEveryShard([](api::ShardContext& context) { context.calls.Abort({}, /*all=*/true); });
    server_->Drain(Clock::now() + std::chrono::seconds(1));
  }
  return finished;
}

// The order matters: no new requests, then no calls, no plans, no deliveries, no threads.
HttpService::~HttpService() {
  if (server_) server_->Stop();
  if (started_) OnEveryShard([](api::ShardContext& context) { context.calls.Clear(); });
  server_.reset();
  pool_.reset();
  pipeline_.reset();
  for (auto& context : contexts_) {
    context->hub.Close();
    context->pooling_hub.Close();
  }
  for (const ServingModel* model : models_.models()) {
    if (model->grammar_compiler != nullptr) model->grammar_compiler->Stop();
    model->engine->Stop();
  }
  for (auto& shard : shards_) shard->Stop();
}

}  // namespace portico
