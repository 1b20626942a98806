// One HTTP request and its answer, whatever the protocol under it (HTTP/1.1 now, HTTP/2 beside it).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "net/http/body_budget.h"
#include "net/loop/shard.h"

namespace portico::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // upper case
  std::string path;    // percent-decoded but for "%2F", without the query
  std::string query;   // raw, without '?'
  Headers headers;     // names in lower case
  std::string body;    // whole; its capacity has room for simdjson's padding behind size()
  std::string peer;    // "127.0.0.1:51234"
  std::string client;  // the subject of the certificate that the client has shown, or ""
  bool late = false;   // its connection came while the server drains
  BodyLease lease;     // what the body has taken of the server's budget
  // What HeadCheck has found for it; null where nothing has looked.
  const void* route = nullptr;

  // Nobody needs the body any more; its memory and its share of the budget are given back.
  void DropBody() {
    std::string().swap(body);
    lease.Release();
  }
  // The first value of a header (name in lower case), or "".
  std::string_view Header(std::string_view name) const;
  // The first coding in which the body is said to be (Content-Encoding), as it is written; "" where there is none but
  // identity.
  std::string_view BodyCoding() const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers;  // beyond Content-Type, Content-Length, Connection and Date
  std::string body;
  // In a whole answer to HEAD, the Content-Length that GET would get; -1: that of `body`.
  int64_t head_length = -1;
};

// Gives the request the x-request-id of its answer, for logs.
void NoteId(const HttpResponse& response, HttpRequest* request);

// A refusal by the transport, before any handler sees the request.
struct HttpError {
  int status = 0;  // 0: none
  std::string message;
};

// The JSON body of an answer that the transport gives by itself. Null: its answers are plain text.
using ErrorWriter = std::function<std::string(const HttpError&)>;

// What is decided about a request when its head has come and nothing of its body is read.
struct HeadVerdict {
  std::optional<HttpResponse> refusal;  // the answer; the body is not wanted then
  size_t max_body_bytes = std::numeric_limits<size_t>::max();  // beside the server's own limit
  // A longer body need not be whole when its request comes to the handler: request.body has its first
  // part then, at least so many bytes, and the rest comes by Exchange::ReadBody().
  size_t whole_body_bytes = std::numeric_limits<size_t>::max();
};

// Called on the shard. It may leave something for the handler in `head.route`.
using HeadCheck = std::function<HeadVerdict(HttpRequest& head)>;

// Who takes the rest of a request's body (Exchange::ReadBody()). On the shard, never from within a call
// of the exchange; each may answer the request and destroy the exchange, and nothing is called after that.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // Not empty; valid during the call. They count against what the client may send until
  // Exchange::ConsumeBody().
  virtual void OnBodyBytes(std::string_view bytes) = 0;
  // The body is whole. The last call, like the next one.
  virtual void OnBodyEnd() = 0;
  // The rest breaks a limit or the protocol, and no more of it comes. `error` is what the client should
  // be answered, if its answer has not begun.
  virtual void OnBodyRefused(const HttpError& error) = 0;
};

// Lives on its connection's shard: created, used and destroyed there. The handler owns it; the
// connection may die first, then on_closed is called and later writes do nothing. Destroying it
// before the answer is complete answers 500 (503 when memory runs out), or cuts off a stream that has started.
class Exchange {
 public:
  virtual ~Exchange() = default;

  HttpRequest request;

  // What the request's body has taken of the server's budget.
  BodyLease& lease() { return request.lease; }
  virtual Shard& shard() = 0;
  // A whole answer. Exactly once, and not after StartStream().
  virtual void Respond(HttpResponse response) = 0;
  // Head of an answer whose length is not known (chunked, or DATA frames). `response.body` is
  // empty.
  virtual void StartStream(HttpResponse response) = 0;
  // Appends to the stream; what one turn of the loop writes leaves in one send.
  virtual void Write(std::string_view bytes) = 0;
  // Completes the stream.
  virtual void End() = 0;
  // Bytes written but not yet taken by the kernel (HTTP/2: by the stream's flow control): a slow reader's backlog.
  virtual size_t unsent_bytes() const = 0;
  // Runs `call` once, on the shard, when the client has read again: when no more than `bytes` are unsent, also where so
  // few are now. In a later turn of the loop, never from within a call of the exchange; what was written until then may
  // have added to them. The next call of this replaces `call`, and a null one drops it. Dropped too once the answer is
  // complete or cut, the client has left or the exchange is destroyed, which `call` itself may do.
  virtual void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) = 0;
  // The token ids of the request's only prompt, once they are known; valid during the call.
  virtual void NotePrompt(std::span<const int32_t> tokens) { static_cast<void>(tokens); }
  // What is answered from now on is the rest of something that was aborted on request. Protocols
  // that have a status for that end with it.
  virtual void NoteAbort() {}
  // A stream that has started fails: what follows in it says so. `instead` is what would have been answered had it not
  // started. For who can still answer otherwise.
  virtual void NoteFailure(HttpResponse instead) { static_cast<void>(instead); }
  // Drops the connection (or stream) without completing the answer.
  virtual void Cut() = 0;

  // The body has a rest that has not all come: request.body is its first part
  // (HeadVerdict::whole_body_bytes). An answer may be given all the same; nobody reads the rest then.
  virtual bool body_open() const { return false; }
  // Of the rest, the bytes that request.body does not have; -1: not known, it comes in chunks. While
  // body_open() and before ReadBody().
  virtual int64_t rest_bytes() const { return 0; }
  // Gives the rest to `reader`, which outlives the exchange or its answer. Until then little of it is
  // taken from the network. Once, while body_open().
  virtual void ReadBody(BodyReader& reader) { static_cast<void>(reader); }
  // So much of what the reader was given is done with. What it holds on to is bounded: about 256 KiB later the
  // client has to wait.
  virtual void ConsumeBody(size_t bytes) { static_cast<void>(bytes); }

  // Called once, on the shard, when the client has left before the answer was complete (end of
  // input counts, half-close too). It may destroy this exchange.
  void set_on_closed(absl::AnyInvocable<void()> on_closed) { on_closed_ = std::move(on_closed); }

 protected:
  // For the destructor of a protocol's exchange whose client still waits: cuts a stream that has
  // started, else answers 500.
  void EndDropped(bool streaming, const ErrorWriter& write_error);

  absl::AnyInvocable<void()> on_closed_;
};

// Called on the shard for every request that is not refused at its head, once its body is complete (but for
// HeadVerdict::whole_body_bytes).
using Handler = std::function<void(std::unique_ptr<Exchange>)>;

}  // namespace portico::net
