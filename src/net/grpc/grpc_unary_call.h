// A gRPC call of one message and one answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "net/grpc/grpc_channel.h"
#include "net/grpc/grpc_client_call.h"

namespace portico::net {

class GrpcUnaryCall final : private GrpcCallEvents {
 public:
  // Told once, on the shard, never from within the constructor; it may destroy the call. Destroying
  // the call before cancels it and tells nothing.
  using Done = absl::AnyInvocable<void(StatusOr<std::string> reply)>;

  GrpcUnaryCall(GrpcChannel& channel, GrpcCallOptions options, std::string_view request, Done done);

  // Within `done` and after it.
  const Headers& head() const { return head_; }
  const Headers& trailers() const { return trailers_; }

 private:
  void OnHead(Headers metadata) override { head_ = std::move(metadata); }
  void OnMessage(std::string_view message) override;
  void OnEnd(Status status, Headers trailers) override;

  Done done_;
  Headers head_;
  Headers trailers_;
  std::optional<std::string> reply_;
  bool too_many_ = false;
  std::unique_ptr<GrpcClientCall> call_;
};

}  // namespace portico::net
