#include "app/http_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <latch>
#include <thread>
#include <utility>

#include "base/log.h"

namespace portico {
namespace {

// Long requests that wait for the CPU pool; beyond it they are planned on their shard.
constexpr size_t kMaxPooledTasks = 256;

int ShardCount(const ServeOptions& options) {
  if (options.shards > 0) return options.shards;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 4);
}

std::vector<std::string> ModelIds(const ServeOptions& options) {
  std::vector<std::string> ids;
  for (const ModelOptions& model : options.models) ids.push_back(ModelId(model));
  return ids;
}

size_t PoolThreads() { return std::max(1u, std::thread::hardware_concurrency() / 2); }

// For the access log: the address, and the subject of the client's certificate where it shows one.
std::string WhoAsks(const std::string& peer, const std::string& client) {
  return client.empty() ? peer : fmt::format("{} ({})", peer, client);
}

// For the access log: the trace that the request is part of (W3C Trace Context,
// 00-<trace id>-<parent id>-<flags>), or nothing.
std::string TraceOf(std::string_view traceparent) {
  constexpr size_t kVersion = 3;
  constexpr size_t kId = 32;
  constexpr size_t kWhole = 55;
  if (traceparent.size() < kWhole || traceparent[kVersion - 1] != '-' ||
      traceparent[kVersion + kId] != '-') {
    return "";
  }
  const std::string_view id = traceparent.substr(kVersion, kId);
  if (id.find_first_not_of("0123456789abcdef") != std::string_view::npos) return "";
  return fmt::format(" trace {}", id);
}

net::ServerOptions ListenerOptions(const ServeOptions& options) {
  net::ServerOptions listener;
  listener.host = options.host;
  listener.port = options.port;
  listener.max_connections = options.max_connections;
  listener.max_head_bytes = options.max_head_bytes;
  listener.max_body_bytes = options.max_body_bytes;
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
  if (options.access_log) {
    listener.on_complete = [](const net::HttpRequest& request, int status, size_t bytes,
                              Duration took) {
      LogInfo("{} {} {} {} {} bytes {:.1f} ms{}", WhoAsks(request.peer, request.client),
              request.method, request.path, status, bytes, Seconds(took) * 1e3,
              TraceOf(request.Header("traceparent")));
    };
  }
  return listener;
}

net::GrpcOptions GrpcListenerOptions(const ServeOptions& options, api::rpc::GrpcService& service) {
  net::GrpcOptions grpc = service.Options();
  grpc.max_message_bytes = static_cast<size_t>(options.grpc_max_message_size);
  if (!options.access_log) return grpc;
  grpc.on_complete = [count = std::move(grpc.on_complete)](
                         const net::GrpcCall& call, StatusCode code, size_t bytes, Duration took) {
    count(call, code, bytes, took);
    LogInfo("{} gRPC {} {} {} bytes {:.1f} ms{}", WhoAsks(call.peer(), call.client()),
            call.method(), absl::StatusCodeToString(code), bytes, Seconds(took) * 1e3,
            TraceOf(call.Metadata("traceparent")));
  };
  return grpc;
}

}  // namespace

HttpService::HttpService(const ServeOptions& options)
    : metrics_(registry_, models_, ModelIds(options)),
      pool_(std::in_place, PoolThreads(), kMaxPooledTasks) {
  api_.models = &models_;
  api_.registry = &registry_;
  api_.metrics = &metrics_;
  api_.pool = &*pool_;
  api_.api_key = options.api_key;
  api_.cors_origin = options.cors_origin;
  api_.max_client_batch_size = static_cast<size_t>(options.max_client_batch_size);
  api_.log_requests = options.log_requests;
  api_.incremental_streaming = options.incremental_streaming_output.value_or(false);
  api_.grpc_cumulative = !options.incremental_streaming_output.value_or(true);
  api_.server_info = OptionsAsJson(options);
  router_ = api::MakeRouter();
}

StatusOr<std::unique_ptr<HttpService>> HttpService::Start(const ServeOptions& options) {
  std::unique_ptr<HttpService> service(new HttpService(options));
  std::vector<net::Shard*> shards;
  for (int i = 0; i < ShardCount(options); ++i) {
    auto shard = std::make_unique<net::Shard>(i);
    auto context = std::make_unique<api::ShardContext>(*shard, service->api_);
    service->api_.shards.push_back(context.get());
    shards.push_back(shard.get());
    service->contexts_.push_back(std::move(context));
    service->shards_.push_back(std::move(shard));
  }
  for (net::Shard* shard : shards) shard->Start();
  auto handle = [self = service.get()](std::unique_ptr<net::Exchange> exchange) {
    api::ShardContext& context = *self->contexts_[exchange->shard().index()];
    self->router_.Dispatch(std::move(exchange), context);
  };
  net::ServerOptions listener = ListenerOptions(options);
  if (!options.disable_grpc) {
    service->grpc_.emplace(service->api_, service->router_);
    listener.grpc = GrpcListenerOptions(options, *service->grpc_);
  }
  PORTICO_ASSIGN_OR_RETURN(service->server_,
                           net::Server::Start(std::move(listener), shards, handle));
  return service;
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
  if (server_) {
    server_->Stop();
    OnEveryShard([](api::ShardContext& context) { context.calls.Clear(); });
    server_.reset();
  }
  pool_.reset();
  for (auto& context : contexts_) {
    context->hub.Close();
    context->pooling_hub.Close();
  }
  for (const ServingModel* model : models_.models()) model->engine->Stop();
  for (auto& shard : shards_) shard->Stop();
}

}  // namespace portico
