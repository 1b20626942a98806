// A server that answers over HTTP, for a command that may wait.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "net/loop/shard.h"
#include "net/tls/tls_client.h"
#include "router/fleet/small_call.h"
#include "router/fleet/worker_clients.h"
#include "router/worker.h"

namespace portico {

class ServerClient {
 public:
  // `key`: sent as a bearer token; empty: none. `tls` outlives this; null: of no use.
  ServerClient(router::WorkerSpec spec, std::string key, const net::TlsClientContext* tls);
  ~ServerClient();

  const std::string& url() const { return worker_.url(); }

  // Waits for the answer; the key is added.
  StatusOr<router::SmallAnswer> Ask(router::SmallRequest request);

 private:
  const std::string key_;
  const router::Worker worker_;
  net::Shard shard_{0};
  router::WorkerClients clients_;            // on the shard
  std::unique_ptr<router::SmallCall> call_;  // on the shard
  Mutex mutex_;
  CondVar changed_;
  std::optional<StatusOr<router::SmallAnswer>> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico
