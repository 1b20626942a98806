#include "app/gateway/gateway_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/processors.h"
#include "service/control/profiling.h"

namespace portico {
namespace {

int ShardCount(int wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, UsableProcessors() / 4);
}

// Takes what the options say of models.
TokenFrontsOptions FrontsOptionsOf(GatewayServiceOptions* options,
                                   const std::vector<net::Shard*>& shards,
                                   router::Gateway* gateway) {
  const router::GatewayOptions& told = gateway->options();
  TokenFrontsOptions fronts;
  fronts.model = std::move(options->model);
  fronts.named_models = std::move(options->named_models);
  fronts.request_timeout = told.request_timeout;
  fronts.connect_timeout = told.connect_timeout;
  fronts.max_unsent_bytes = options->listener.max_unsent_bytes;
  fronts.api_key = told.api_key;
  fronts.tls = {
      .ca_files = told.ca_files, .certificate = told.client_certificate, .key = told.client_key};
  fronts.shards = shards;
  fronts.on_lost = [gateway](const router::WorkerPtr& worker, bool reached) {
    gateway->NoteLost(*worker, reached);
  };
  fronts.on_malformed = [gateway](const router::WorkerPtr& worker, std::string_view why) {
    gateway->NoteMalformed(*worker, why);
  };
  fronts.on_kv_events = [gateway](const router::WorkerPtr& worker, const KvEventBatch* batch,
                                  bool reset) {
    return gateway->NoteKvEvents(*worker, batch, reset);
  };
  return fronts;
}

// The listener for metrics alone. Null: none is wanted, or it cannot be had and need not be.
StatusOr<std::unique_ptr<net::Server>> StartMetrics(const GatewayServiceOptions& options,
                                                    const std::vector<net::Shard*>& shards,
                                                    net::Handler handler) {
  if (!options.prometheus_port.has_value()) return nullptr;
  net::ServerOptions listener;
  listener.write_error = api::WriteGatewayError;
  listener.host = options.prometheus_host;
  listener.port = *options.prometheus_port;
  auto server = net::Server::Start(std::move(listener), shards, std::move(handler));
  if (server.ok()) return server;
  if (options.prometheus_required) {
    return Error(server.status().code(),
                 fmt::format("--prometheus-port: {}", MessageOf(server.status())));
  }
  LogWarning("no listener for metrics: {}; they are on the main port", MessageOf(server.status()));
  return nullptr;
}

}  // namespace

StatusOr<std::unique_ptr<GatewayService>> GatewayService::Start(GatewayServiceOptions options) {
  std::unique_ptr<GatewayService> service(new GatewayService());
  PORTICO_ASSIGN_OR_RETURN(service->gateway_,
                           router::Gateway::Make(std::move(options.gateway), service->registry_));
  options.profile.stage = "gateway";
  PORTICO_RETURN_IF_ERROR(SetProfileOptions(std::move(options.profile), &service->registry_));
  service->context_.gateway = service->gateway_.get();
  service->context_.registry = &service->registry_;
  service->context_.api_key = options.api_key;
  service->context_.browser = api::MakeBrowserRules(options.listener.host, options.allowed_host);
  service->context_.server_note = options.server_note;
  service->context_.control_keys = options.control_keys;
  service->context_.audit = options.audit;
  service->context_.cors_origins = options.cors_origins;
  std::vector<net::Shard*> shards;
  for (int i = 0; i < ShardCount(options.shards); ++i) {
    service->shards_.push_back(std::make_unique<net::Shard>(i));
    service->shards_.back()->CountTurns(service->registry_);
    shards.push_back(service->shards_.back().get());
    service->gateway_shards_.push_back(
        std::make_unique<router::GatewayShard>(*shards.back(), *service->gateway_));
    service->gateway_->Attach(service->gateway_shards_.back().get());
  }
  service->fronts_ =
      std::make_unique<TokenFronts>(FrontsOptionsOf(&options, shards, service->gateway_.get()));
  service->gateway_->UseTokens(service->fronts_.get());
  for (net::Shard* shard : shards) shard->Start();
  service->gateway_->StartWatching();
  if (options.discovery.has_value()) {
    PORTICO_ASSIGN_OR_RETURN(
        service->discovery_,
        router::Discovery::Start(*service->gateway_, *std::move(options.discovery)));
  }
  // Metrics and probes only.
  const auto watch = [self = service.get()](std::unique_ptr<net::Exchange> exchange) {
    api::DispatchWatch(std::move(exchange), self->context_);
  };
  const auto handle = [self = service.get()](std::unique_ptr<net::Exchange> exchange) {
    router::GatewayShard& shard = *self->gateway_shards_[exchange->shard().index()];
    api::DispatchGateway(std::move(exchange), self->context_, shard);
  };
  options.listener.check_head = [self = service.get()](net::HttpRequest& head) {
    return api::AdmitGateway(head, self->context_);
  };
  options.listener.write_error = api::WriteGatewayError;
  options.listener.answers_while_draining = true;  // /readiness says so
  PORTICO_ASSIGN_OR_RETURN(service->server_,
                           net::Server::Start(std::move(options.listener), shards, handle));
  PORTICO_ASSIGN_OR_RETURN(service->metrics_server_, StartMetrics(options, shards, watch));
  return service;
}

GatewayService::~GatewayService() {
  if (server_ != nullptr) server_->Stop();
  if (metrics_server_ != nullptr) metrics_server_->Stop();
  if (gateway_ == nullptr) return;
  discovery_.reset();
  // The gateway's thread posts to the shards, and the shards to it.
  gateway_->StopWatching();
  if (fronts_ != nullptr) fronts_->Stop();
  for (auto& shard : shards_) shard->Stop();
  gateway_shards_.clear();
  shards_.clear();
}

bool GatewayService::Drain(Duration patience) {
  context_.draining = true;
  return server_->Drain(Clock::now() + patience);
}

}  // namespace portico
