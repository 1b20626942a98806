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
  // `url`: http or https. `key`: sent as a bearer token; empty: none. `ca_file`: trusted for https beside the system's; empty:
  // none. Fails for what is wrong with these; nothing is sent yet.
  static StatusOr<std::unique_ptr<ServerClient>> Open(const std::string& url, std::string key,
                                                      const std::string& ca_file);
  ~ServerClient();

  const std::string& url() const { return worker_.url(); }

  // Waits for the answer; the key is added.
  StatusOr<router::SmallAnswer> Ask(router::SmallRequest request);

 private:
  ServerClient(router::WorkerSpec spec, std::string key,
               std::unique_ptr<net::TlsClientContext> tls);

  const std::string key_;
  const std::unique_ptr<net::TlsClientContext> tls_;  // null: http
  const router::Worker worker_;
  net::Shard shard_{0};
  router::WorkerClients clients_;            // on the shard
  std::unique_ptr<router::SmallCall> call_;  // on the shard
  Mutex mutex_;
  CondVar changed_;
  std::optional<StatusOr<router::SmallAnswer>> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico
