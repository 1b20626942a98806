#include "router/discovery/cluster.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace portico::router {
namespace {

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr size_t kMaxToken = 64 << 10;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

StatusOr<ClusterOptions> InCluster() {
  ClusterOptions cluster;
  cluster.host = Variable("KUBERNETES_SERVICE_HOST");
  const std::string port = Variable("KUBERNETES_SERVICE_PORT");
  if (cluster.host.empty() || !absl::SimpleAtoi(port, &cluster.port) || cluster.port < 1 ||
      cluster.port > 65535) {
    return Error(StatusCode::kFailedPrecondition,
                 "--service-discovery: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not "
                 "name an API server; this process does not run in a pod");
  }
  std::string folder = Variable("PORTICO_SERVICE_ACCOUNT_DIR");
  if (folder.empty()) folder = kServiceAccount;
  cluster.token_file = folder + "/token";
  cluster.ca_file = folder + "/ca.crt";
  const auto token = ReadToken(cluster);
  if (!token.ok()) return token.status();
  return cluster;
}

StatusOr<std::string> ReadToken(const ClusterOptions& cluster) {
  std::ifstream file(cluster.token_file, std::ios::binary);
  std::string token(kMaxToken, '\0');
  file.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<size_t>(file.gcount()));
  token = std::string(absl::StripAsciiWhitespace(token));
  const bool odd = token.find_first_of(std::string_view("\r\n\0 ", 4)) != std::string::npos;
  if (token.empty() || odd) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("--service-discovery: {} holds no token", cluster.token_file));
  }
  return token;
}

}  // namespace portico::router
