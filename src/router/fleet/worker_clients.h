// A shard's connections to workers: one HTTP client for each.
#pragma once

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "net/http/http1_client.h"
#include "net/tls/tls_client.h"
#include "router/fleet/worker_set.h"

namespace portico::router {

class WorkerClients {
 public:
  // `tls` is for workers with https; may be null if there are none, and must outlive this. `http2`: they speak HTTP/2, as
  // must `tls`.
  WorkerClients(net::Shard& shard, const net::Http1ClientOptions& options,
                const net::TlsClientContext* tls, bool http2)
      : shard_(shard), options_(options), tls_(tls), http2_(http2) {}

  // Valid until Keep().
  net::HttpClient& Of(const Worker& worker);
  // Drops the clients of workers that are not in `set`; calls in flight go on.
  void Keep(const WorkerSet& set);

 private:
  net::Shard& shard_;
  const net::Http1ClientOptions options_;
  const net::TlsClientContext* const tls_;
  const bool http2_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<net::HttpClient>> clients_;  // by number
};

}  // namespace portico::router
