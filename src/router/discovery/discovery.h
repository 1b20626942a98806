// Workers that are the pods of a Kubernetes cluster: those that are selected and ready. A pod that is
// being deleted drains and goes with its deletion; one that is not ready any more is removed, and what
// runs on it ends well.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "net/http/http1_client.h"
#include "net/tls/tls_client.h"
#include "router/discovery/cluster.h"
#include "router/discovery/pod_watch.h"
#include "router/gateway.h"

namespace portico::router {

struct DiscoveryOptions {
  ClusterOptions cluster;
  std::string space;  // the namespace; empty: all
  int port = 80;      // where the workers listen
  struct Selected {
    Role role = Role::kRegular;
    std::string selector;
  };
  std::vector<Selected> selected;
};

class Discovery {
 public:
  // Fails if the cluster's certificate authority cannot be read. `gateway` outlives this and watches
  // its workers until after this is gone.
  static StatusOr<std::unique_ptr<Discovery>> Start(Gateway& gateway, DiscoveryOptions options);
  ~Discovery();

 private:
  struct Watched {
    Role role;
    std::unique_ptr<PodWatch> watch;
  };

  Discovery(Gateway& gateway, DiscoveryOptions options);
  // On the gateway's thread, like what follows.
  void Begin();
  void OnChange();
  std::optional<WorkerSpec> SpecOf(const Pod& pod, Role role) const;

  Gateway& gateway_;
  const DiscoveryOptions options_;
  std::unique_ptr<net::TlsClientContext> tls_;
  std::unique_ptr<net::Http1Client> client_;
  std::vector<Watched> watched_;
  Counter& failures_;
  Gauge& pods_;
};

}  // namespace portico::router
