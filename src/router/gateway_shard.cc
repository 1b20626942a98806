// What the gateway has on one shard: its calls and their connections.
#include <fmt/format.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "router/gateway.h"
#include "router/proxy/proxy_call.h"
#include "router/proxy/worker_call.h"

namespace portico::router {
namespace {

net::Http1ClientOptions ClientOptions(const GatewayOptions& options) {
  return {.connect_timeout = options.connect_timeout, .idle_life = options.pool_idle};
}

}  // namespace

GatewayShard::GatewayShard(net::Shard& shard, Gateway& gateway)
    : shard_(shard),
      gateway_(gateway),
      reader_(gateway.workers()),
      clients_(shard, ClientOptions(gateway.options()), gateway.tls(),
               gateway.options().upstream_http2),
      random_(std::random_device{}()) {}

GatewayShard::~GatewayShard() = default;

const WorkerSetPtr& GatewayShard::set() {
  const WorkerSetPtr& set = reader_.Get();
  const uint64_t version = gateway_.workers().version();
  if (version != version_) {
    version_ = version;
    clients_.Keep(*set);
  }
  return set;
}

std::string GatewayShard::NewRequestId() { return fmt::format("{:016x}", random_()); }

void GatewayShard::Adopt(std::unique_ptr<ProxyCall> call) {
  ProxyCall* key = call.get();
  calls_.emplace(key, std::move(call));
}

size_t GatewayShard::calls() const { return calls_.size(); }

void GatewayShard::Retire(ProxyCall* call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  shard_.AtEndOfTurn([gone = std::move(found->second)] {});
  calls_.erase(found);
}

void GatewayShard::AdoptRest(std::unique_ptr<WorkerCall> call) {
  WorkerCall* key = call.get();
  rests_.emplace(key, std::move(call));
}

void GatewayShard::RetireRest(WorkerCall* call) {
  const auto found = rests_.find(call);
  if (found == rests_.end()) return;
  shard_.AtEndOfTurn([gone = std::move(found->second)] {});
  rests_.erase(found);
}

void GatewayShard::OnStalled(uint64_t number) {
  std::vector<ProxyCall*> there;
  for (const auto& [call, owned] : calls_) {
    if (call->IsOn(number)) there.push_back(call);
  }
  for (ProxyCall* call : there) {
    if (calls_.contains(call)) call->OnWorkerStalled(number);
  }
}

}  // namespace portico::router
