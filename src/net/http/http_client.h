// What clients of HTTP have in common, whatever the version.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/http/response_parser.h"

namespace portico::net {

enum class CallFailure {
  kConnect,    // no connection came about: the server has seen nothing
  kStale,      // a connection that had been used before was closed before it answered a byte
  kLost,       // the connection was lost
  kMalformed,  // the answer breaks the protocol
};

// What becomes of a call, on the shard, never from within a call of it. Each may destroy the call.
class HttpCallEvents {
 public:
  virtual ~HttpCallEvents() = default;
  virtual void OnHead(ResponseHead& head) = 0;
  // Of a call that this process answers itself (Exchange::NotePrompt()). May not destroy the call.
  virtual void OnPrompt(std::span<const int32_t> tokens) { static_cast<void>(tokens); }
  // Likewise (Exchange::NoteFailure()): the stream's events that follow are those of a failure.
  virtual void OnStreamFailure(HttpResponse& instead) { static_cast<void>(instead); }
  // Not empty; valid during the call.
  virtual void OnBody(std::string_view bytes) = 0;
  // The last call: the answer is whole, or there will be no more of it. `why` may name the server's
  // address.
  virtual void OnDone() = 0;
  virtual void OnFailed(CallFailure failure, const std::string& why) = 0;
  // Of a request whose body is open: a connection has taken all that there was of it, and more may be
  // written. What is written without this waits in memory.
  virtual void OnBodyWanted() {}
};

struct HttpCallRequest {
  std::string head;                         // request line and headers with the empty line
  std::shared_ptr<const std::string> body;  // null: none; its length is in the head
  bool head_request = false;                // HEAD: the answer has no body
  // `body`, not null then, is only its beginning: the rest follows by HttpCall::WriteBody() and
  // EndBody(). A head without content-length says `transfer-encoding: chunked`, which HTTP/2 leaves out.
  bool body_open = false;
  bool chunked = false;
};

// A call that is under way, wherever it is answered. Dropping it before its end tells the other side.
class HttpCall {
 public:
  virtual ~HttpCall() = default;
  // While it is paused no more of the answer is read. A few buffers may still come.
  virtual void Pause() = 0;
  virtual void Resume() = 0;
  // Of a request whose body is open.
  virtual void WriteBody(std::string_view bytes) { static_cast<void>(bytes); }
  virtual void EndBody() {}
};

// The way to one server, on one shard.
class HttpClient {
 public:
  // Calls in flight go on.
  virtual ~HttpClient() = default;
  // `events` must outlive the call. `fresh`: not on a connection that a former call has found closed.
  virtual std::unique_ptr<HttpCall> StartCall(HttpCallRequest request, HttpCallEvents& events,
                                              bool fresh) = 0;
};

}  // namespace portico::net
