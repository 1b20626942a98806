// The HTTP/1.1 client of one shard for one server: a pool of connections, and calls on them, one
// after the other on each (no pipelining). Everything on the shard.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/http/http_client.h"
#include "net/loop/shard.h"
#include "net/socket/client_socket.h"

namespace portico::net {

struct Http1ClientOptions {
  size_t max_head_bytes = 64 << 10;  // of an answer
  Duration connect_timeout = std::chrono::seconds(5);
  // A connection that has been idle for so long is not used again: servers close theirs after a few
  // seconds (uvicorn after 5), and a request that meets the close is lost.
  Duration idle_life = std::chrono::seconds(3);
  size_t max_idle = 1024;  // connections; more are closed when their call ends
};

class Http1Connection;

// One call. Dropping it before its end closes the connection, which tells the server.
class Http1Call final : public HttpCall {
 public:
  ~Http1Call() override;
  Http1Call(const Http1Call&) = delete;
  Http1Call& operator=(const Http1Call&) = delete;

  void Pause() override;
  void Resume() override;
  void WriteBody(std::string_view bytes) override;
  void EndBody() override;
  // Of the request body, taken by the kernel or waiting for it.
  size_t body_sent() const;

 private:
  friend class Http1Connection;
  friend class Http1Client;
  explicit Http1Call(HttpCallEvents& events) : events_(events) {}

  HttpCallEvents& events_;
  std::shared_ptr<Http1Connection> connection_;  // null once the call has ended
};

class Http1Client final : public HttpClient {
 public:
  // `target.tls` must speak HTTP/1.1 and outlive the client and its calls.
  Http1Client(Shard& shard, ClientTarget target, const Http1ClientOptions& options);
  // Closes what is idle; calls in flight go on.
  ~Http1Client() override;
  Http1Client(const Http1Client&) = delete;
  Http1Client& operator=(const Http1Client&) = delete;

  // `events` must outlive the call. `fresh`: on a new connection.
  std::unique_ptr<Http1Call> Start(HttpCallRequest request, HttpCallEvents& events,
                                   bool fresh = false);
  std::unique_ptr<HttpCall> StartCall(HttpCallRequest request, HttpCallEvents& events,
                                      bool fresh) override {
    return Start(std::move(request), events, fresh);
  }
  size_t idle() const;

 private:
  friend class Http1Connection;
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace portico::net
