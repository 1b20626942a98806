// The HTTP/2 client of one shard for one server: calls share connections, as many on each as the server allows. With
// prior knowledge, or ALPN under TLS. Everything on the shard.
//
// A call that is paused is not read beyond its stream's window, and holds up no other: the connection's window is given
// back as bytes come. A call that the server has refused unread fails as kStale, so that it can be sent again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "net/http/http_client.h"
#include "net/loop/shard.h"
#include "net/socket/client_socket.h"

namespace portico::net {

struct Http2ClientOptions {
  size_t max_head_bytes = 64 << 10;  // of an answer
  Duration connect_timeout = std::chrono::seconds(5);
  // A connection without calls is closed after it.
  Duration idle_life = std::chrono::seconds(3);
  uint32_t stream_window = 256 << 10;  // what a server may send ahead of a paused call
  uint32_t connection_window = 16 << 20;
};

class Http2Connection;

// One call. Dropping it before its end resets its stream, which tells the server.
class Http2Call final : public HttpCall {
 public:
  ~Http2Call() override;
  Http2Call(const Http2Call&) = delete;
  Http2Call& operator=(const Http2Call&) = delete;

  void Pause() override { paused_ = true; }
  void Resume() override;
  void WriteBody(std::string_view bytes) override;
  void EndBody() override;

 private:
  friend class Http2Client;
  friend class Http2Connection;
  friend struct Http2ClientCallbacks;
  struct Waiting;

  Http2Call(HttpCallRequest request, HttpCallEvents& events)
      : request_(std::move(request)), events_(events), rest_open_(request_.body_open) {}

  // Of request_.body, what has not been sent.
  size_t first_left() const {
    return request_.body == nullptr ? 0 : request_.body->size() - body_sent_;
  }

  HttpCallRequest request_;
  HttpCallEvents& events_;
  std::shared_ptr<Waiting> waiting_;  // where it waits for a connection; null: it does not
  std::shared_ptr<Http2Connection> connection_;  // null once the call has ended
  int32_t stream_ = 0;
  size_t body_sent_ = 0;      // of request_.body
  std::string rest_;          // of an open body
  size_t rest_sent_ = 0;      // of rest_
  bool rest_open_;            // more of it comes
  bool body_wanted_ = false;  // all of it has been sent, and the events do not know yet
  bool deferred_ = false;     // nghttp2 waits for more of the body
  bool end_sent_ = false;
  bool paused_ = false;
  size_t unconsumed_ = 0;  // came while paused
  // The answer.
  ResponseHead head_;
  size_t head_bytes_ = 0;
  bool head_done_ = false;
  bool malformed_ = false;
};

class Http2Client final : public HttpClient {
 public:
  // `target.tls` must speak HTTP/2 and outlive the client and its calls.
  Http2Client(Shard& shard, ClientTarget target, const Http2ClientOptions& options);
  ~Http2Client() override;
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  std::unique_ptr<HttpCall> StartCall(HttpCallRequest request, HttpCallEvents& events,
                                      bool fresh) override;
  size_t connections() const;

 private:
  friend class Http2Call;
  friend class Http2Connection;
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace portico::net
