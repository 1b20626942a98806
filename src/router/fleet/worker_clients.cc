#include "router/fleet/worker_clients.h"

#include <algorithm>

#include "net/http2/http2_client.h"

namespace portico::router {

net::HttpClient& WorkerClients::Of(const Worker& worker) {
  std::unique_ptr<net::HttpClient>& client = clients_[worker.number()];
  if (client != nullptr) return *client;
  const WorkerSpec& spec = worker.spec();
  const net::ClientTarget target{.host = spec.host,
                                 .port = spec.port,
                                 .tls = spec.tls ? tls_ : nullptr,
                                 .tls_name = spec.host};
  if (http2_) {
    client = std::make_unique<net::Http2Client>(
        shard_, target,
        net::Http2ClientOptions{.max_head_bytes = options_.max_head_bytes,
                                .connect_timeout = options_.connect_timeout,
                                .idle_life = options_.idle_life});
  } else {
    client = std::make_unique<net::Http1Client>(shard_, target, options_);
  }
  return *client;
}

void WorkerClients::Keep(const WorkerSet& set) {
  absl::erase_if(clients_, [&](const auto& entry) {
    return std::none_of(set.workers().begin(), set.workers().end(),
                        [&](const WorkerPtr& worker) { return worker->number() == entry.first; });
  });
}

}  // namespace portico::router
