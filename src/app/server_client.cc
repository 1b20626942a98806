#include "app/server_client.h"

#include <utility>

#include "base/mutex.h"

namespace portico {

ServerClient::ServerClient(router::WorkerSpec spec, std::string key,
                           const net::TlsClientContext* tls)
    : key_(std::move(key)),
      worker_(std::move(spec)),
      clients_(shard_, net::Http1ClientOptions(), tls, /*http2=*/false) {
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
