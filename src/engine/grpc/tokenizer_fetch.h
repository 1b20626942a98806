// GetTokenizer: a worker's tokenizer files as a zip archive that comes in chunks, whose hash is in the last.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "base/status.h"
#include "net/grpc/grpc_channel.h"

namespace portico {

// Lives on the channel's shard.
class TokenizerFetch final : private net::GrpcCallEvents {
 public:
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  // `done` gets the archive, once, and may give this object away, but not destroy it yet.
  using Done = absl::AnyInvocable<void(StatusOr<std::string>)>;
  explicit TokenizerFetch(Done done) : done_(std::move(done)) {}

  void Start(net::GrpcChannel& channel, net::GrpcCallOptions options);

 private:
  void OnMessage(std::string_view message) override;
  void OnEnd(Status status, net::Headers trailers) override;
  void Finish(StatusOr<std::string> archive);

  Done done_;
  std::unique_ptr<net::GrpcClientCall> call_;
  std::string bytes_;
  std::string sha256_;
};

}  // namespace portico
