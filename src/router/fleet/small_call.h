// A call to a worker whose whole answer is wanted and small: probes, facts, controls. Bounded in
// time and bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/http/http1_client.h"
#include "router/fleet/token_workers.h"
#include "router/worker.h"

namespace portico::router {

struct SmallAnswer {
  int status = 0;
  std::string content_type;
  std::string body;
};

struct SmallRequest {
  std::string method = "GET";
  std::string target = {};  // path and query, without the worker's prefix
  std::string body = {};
  std::string content_type = {};   // of the body
  std::string authorization = {};  // the header's value; empty: none
  Duration timeout = std::chrono::seconds(5);
  size_t max_bytes = 4 << 20;
  bool to_token_workers = true;  // of what goes to all: they have it too
  // Gets the answer's body in parts as they come, in place of SmallAnswer::body.
  std::function<void(std::string_view)> on_body = {};
};

// Why there is no connection to a worker any more, in words. `why`: the system's or OpenSSL's reason, or nothing; where `address`,
// "host:port", is in front of it, that is left out. `reached`: there has been a connection.
std::string WhyLost(std::string_view address, bool reached, std::string_view why);

class SmallCall final : private net::HttpCallEvents {
 public:
  // `done` is called once, on the shard, and may destroy this. Its errors name no address:
  // UNAVAILABLE for connections, with the system's or OpenSSL's reason, DEADLINE_EXCEEDED, INTERNAL for answers that
  // cannot be read.
  using Done = absl::AnyInvocable<void(StatusOr<SmallAnswer>)>;

  SmallCall(net::Shard& shard, net::HttpClient& client, const Worker& worker, SmallRequest request,
            Done done);
  // The same of a worker that takes token ids, on a shard of the server.
  SmallCall(net::Shard& shard, TokenWorkers& workers, const Worker& worker, SmallRequest request,
            Done done);

 private:
  void OnHead(net::ResponseHead& head) override;
  void OnBody(std::string_view bytes) override;
  void OnDone() override;
  void OnFailed(net::CallFailure failure, const std::string& why) override;
  void SetDeadline(net::Shard& shard, Duration timeout);
  void Finish(StatusOr<SmallAnswer> answer);

  const size_t max_bytes_;
  const std::function<void(std::string_view)> on_body_;
  size_t body_bytes_ = 0;
  const std::string address_;  // "host:port", of a worker that is called over HTTP
  SmallAnswer answer_;
  Done done_;
  std::unique_ptr<net::Shard::Timer> timer_;
  std::unique_ptr<net::HttpCall> call_;
};

}  // namespace portico::router
