// Where the API server of the Kubernetes cluster is in which this process runs, and who it is there.
#pragma once

#include <string>

#include "base/status.h"

namespace portico::router {

struct ClusterOptions {
  std::string host;
  int port = 443;
  std::string token_file;  // read again for each request: the kubelet replaces it
  std::string ca_file;
};

// From KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and the service account's folder, which
// PORTICO_SERVICE_ACCOUNT_DIR may name. FAILED_PRECONDITION outside of a cluster.
StatusOr<ClusterOptions> InCluster();

// The token without the line's end, or what is wrong.
StatusOr<std::string> ReadToken(const ClusterOptions& cluster);

}  // namespace portico::router
