#include "app/gateway_service.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/processors.h"
#include "service/profiling.h"

namespace portico {
namespace {

int ShardCount(int wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, UsableProcessors() / 4);
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
  const size_t max_unsent = options.listener.max_unsent_bytes;
  std::vector<net::Shard*> shards;
  for (int i = 0; i < ShardCount(options.shards); ++i) {
    service->shards_.push_back(std::make_unique<net::Shard>(i));
    shards.push_back(service->shards_.back().get());
    service->gateway_shards_.push_back(
        std::make_unique<router::GatewayShard>(*shards.back(), *service->gateway_));
    service->gateway_->Attach(service->gateway_shards_.back().get());
  }
  const router::GatewayOptions& gateway = service->gateway_->options();
  TokenFrontsOptions tokens;
  tokens.model = std::move(options.model);
  tokens.named_models = std::move(options.named_models);
  tokens.request_timeout = gateway.request_timeout;
  tokens.connect_timeout = gateway.connect_timeout;
  tokens.max_unsent_bytes = max_unsent;
  tokens.api_key = gateway.api_key;
  tokens.tls = {.ca_files = gateway.ca_files,
                .certificate = gateway.client_certificate,
                .key = gateway.client_key};
  tokens.shards = shards;
  tokens.on_lost = [self = service->gateway_.get()](const router::WorkerPtr& worker) {
    self->NoteLost(*worker);
  };
  tokens.on_kv_events = [self = service->gateway_.get()](const router::WorkerPtr& worker,
                                                         const KvEventBatch* batch, bool reset) {
    return self->NoteKvEvents(*worker, batch, reset);
  };
  service->fronts_ = std::make_unique<TokenFronts>(std::move(tokens));
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
  if (options.prometheus_port.has_value()) {
    net::ServerOptions listener;
    listener.write_error = api::WriteGatewayError;
    listener.host = options.prometheus_host;
    listener.port = *options.prometheus_port;
    auto metrics = net::Server::Start(std::move(listener), shards, watch);
    if (!metrics.ok() && options.prometheus_required) return metrics.status();
    if (metrics.ok()) {
      service->metrics_server_ = *std::move(metrics);
    } else {
      LogWarning("no listener for metrics: {}; they are on the main port",
                 MessageOf(metrics.status()));
    }
  }
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
