#include "app/server_client.h"

#include <fmt/format.h>

#include <utility>

#include "base/mutex.h"

namespace portico {

StatusOr<std::unique_ptr<ServerClient>> ServerClient::Open(const std::string& url, std::string key,
                                                           const std::string& ca_file) {
  PORTICO_ASSIGN_OR_RETURN(router::WorkerSpec spec, router::ParseWorkerUrl(url));
  if (spec.protocol != router::Protocol::kHttp) {
    return InvalidArgument("URL", fmt::format("`{}` is not an http or https URL", url));
  }
  std::unique_ptr<net::TlsClientContext> tls;
  if (spec.tls) {
    PORTICO_ASSIGN_OR_RETURN(tls, net::TlsClientContext::Load(
                                      {.ca_file = ca_file, .protocol = net::TlsProtocol::kHttp1}));
  }
  return std::unique_ptr<ServerClient>(
      new ServerClient(std::move(spec), std::move(key), std::move(tls)));
}

ServerClient::ServerClient(router::WorkerSpec spec, std::string key,
                           std::unique_ptr<net::TlsClientContext> tls)
    : key_(std::move(key)),
      tls_(std::move(tls)),
      worker_(std::move(spec)),
      clients_(shard_, net::Http1ClientOptions(), tls_.get(), /*http2=*/false) {
  shard_.Start();
}

ServerClient::~ServerClient() { shard_.Stop(); }

StatusOr<router::SmallAnswer> ServerClient::Ask(router::SmallRequest request) {
  if (!key_.empty()) request.authorization = "Bearer " + key_;
  const MutexLock lock(&mutex_);
  answer_.reset();
  shard_.Post([this, request = std::move(request)]() mutable {
    call_ = std::make_unique<router::SmallCall>(
        shard_, clients_.Of(worker_), worker_, std::move(request),
        [this](StatusOr<router::SmallAnswer> answer) {
          shard_.AtEndOfTurn([call = std::shared_ptr<router::SmallCall>(std::move(call_))] {});
          const MutexLock inner(&mutex_);
          answer_ = std::move(answer);
          changed_.NotifyAll();
        });
  });
  while (!answer_.has_value()) changed_.Wait(&mutex_);
  return *std::move(answer_);
}

}  // namespace portico
