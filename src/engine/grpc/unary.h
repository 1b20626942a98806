// Calls with one message each way, or of a stream's first message, on a channel's shard.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/grpc/grpc_channel.h"

namespace portico {

class UnaryCalls {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<std::string>)>;

  // `channel` outlives this.
  explicit UnaryCalls(net::GrpcChannel& channel);
  // Calls that have not ended are dropped; their `done` is not called.
  ~UnaryCalls();
  UnaryCalls(const UnaryCalls&) = delete;
  UnaryCalls& operator=(const UnaryCalls&) = delete;

  // `done` gets the answer's bytes, later, on the shard; it may destroy this object. `streams`: the answer is the first
  // message of a stream, which is cancelled then.
  void Start(std::string path, net::Headers metadata, std::string_view request, Duration timeout,
             Done done, bool streams = false);

 private:
  class Call;
  net::GrpcChannel& channel_;
  std::list<std::unique_ptr<Call>> calls_;
};

}  // namespace portico
