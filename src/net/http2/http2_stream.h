// One HTTP/2 stream of the server: a request, and the bytes of its answer on their way through
// flow control. What the request means is its user's business: Http2Exchange for REST.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "net/http/exchange.h"
#include "net/socket/below_call.h"
#include "net/socket/output_queue.h"

namespace portico::net {

class Connection;
class Http2Session;

// Error codes of RFC 9113, 7, that we choose ourselves.
enum class Http2Error : uint32_t {
  kNone = 0,
  kProtocol = 1,
  kInternal = 2,
  kStreamClosed = 5,
  kCancel = 8,
  kEnhanceYourCalm = 11,
};

// A field of a head that is the same in all: well-formed text that lives for ever.
struct FixedField {
  std::string_view name;
  std::string_view value;
};
using FixedFields = std::span<const FixedField>;

// What is told about a stream. All on the shard, from within the session.
class Http2User {
 public:
  virtual ~Http2User() = default;
  // Bytes of the request's body. They count against the client's window until Consume().
  virtual void OnBody(std::string_view bytes) = 0;
  // The request is whole.
  virtual void OnRequestEnd() = 0;
  // In a whole period hardly anything of the body has come.
  virtual void OnSlowBody() = 0;
  // The client has reset the stream or left, or the stream was cut off at a bound. The last call;
  // it may destroy the user. `why`: kCancel for the client's doing, else what it was reset with.
  virtual void OnGone(Http2Error why) = 0;
};

// Lives in its session, on the shard; its user may outlive it and is then told by OnGone().
class Http2Stream {
 public:
  Http2Stream(Http2Session& session, int32_t id);
  ~Http2Stream();
  Http2Stream(const Http2Stream&) = delete;
  Http2Stream& operator=(const Http2Stream&) = delete;

  Http2Session& session() { return session_; }
  Connection& connection();
  int32_t id() const { return id_; }
  // The head; what a user moves out of it is gone.
  HttpRequest request;

  void SetUser(Http2User* user) { user_ = user; }
  // Once the answer is complete, what still comes of the request is dropped, up to Connection::kDroppedInput and for a second,
  // before the stream is reset: some clients take a reset in the middle of their body for a failure, whatever was answered.
  void LingerAfterAnswer() {
    lingers_ = true;
    dropped_ += unconsumed_;
    Consume(unconsumed_);  // or the client has no window for the rest
  }
  // The user has no more to say and keeps nothing; what it has written is still sent.
  void LetGo() {
    TakeUser();
    max_unsent_ = 0;
    Hold(0);
  }

  // 100, before the head: the client may send the body it has held back.
  void SendContinue();
  // The head of the answer, once. Values that HTTP does not allow are left out. `end`: there is
  // nothing behind it.
  void SendHead(int status, const Headers& headers, bool end);
  // The same with status 200, and without Server and Date.
  void SendBareHead(FixedFields fixed, const Headers& headers, bool end);
  // Before End(). The second piece follows the first.
  void Write(std::string_view bytes, std::string_view more = {});
  void WriteWhole(std::string body);
  // No more bytes; the trailers may be empty.
  void End(FixedFields fixed = {}, Headers trailers = {});
  // RST_STREAM. The user is not told.
  void Reset(Http2Error error);
  void Consume(size_t bytes);
  // What has come and is not consumed holds back this stream alone: the connection's window is given back.
  void SpareConnection();
  // How much of the request its user keeps now. False if the connection's streams together keep too
  // much: the user then refuses the request.
  bool Hold(size_t bytes);
  // The body may take its time: OnSlowBody() is not called.
  void LeaveBodyUntimed() { times_body_ = false; }
  // Cuts the stream off if more than this is unsent at the end of a turn; 0: no limit.
  void LimitUnsent(size_t bytes) { max_unsent_ = bytes; }
  // Bytes written that flow control or the kernel has not taken.
  size_t unsent() const { return output_.size(); }
  // As Exchange::CallWhenBelow(). Dropped with the user.
  void CallWhenBelow(size_t bytes, BelowCall::Call call);

 private:
  friend class Http2Session;

  template <typename FieldList>
  void SubmitHead(const FieldList& fields, bool end);
  void Resume();
  void DropOutput();
  // Who is told no more after what is told now, or null.
  Http2User* TakeUser() {
    below_.reset();
    return std::exchange(user_, nullptr);
  }
  void TakeTurns();
  // False if there are none.
  bool SubmitTrailers();
  bool over_bound() const;

  Http2Session& session_;
  const int32_t id_;
  Http2User* user_ = nullptr;
  OutputQueue output_;
  std::unique_ptr<BelowCall> below_;  // null: nobody waits for the client to read
  FixedFields fixed_trailers_;
  Headers trailers_;
  size_t max_unsent_ = 0;
  bool unwanted_ = false;  // the client reads too little of its answers to get this one
  size_t place_ = 0;       // in the session's table
  size_t head_bytes_ = 0;  // of the request, as HTTP/2 counts them
  size_t unconsumed_ = 0;
  size_t spared_ = 0;  // of it, what counts against the stream's window only
  size_t held_ = 0;
  size_t body_moved_ = 0;     // in this period
  size_t dropped_ = 0;        // of what nobody wants
  TimePoint linger_until_{};  // the rest is dropped until then
  TimePoint body_since_{};    // the period's beginning
  TimePoint stuck_since_{};   // when output last moved, while some waits
  bool lingers_ = false;
  bool head_done_ = false;      // of the request
  bool request_ended_ = false;  // no more of it comes
  bool times_body_ = true;      // its body must not come too slowly
  bool head_sent_ = false;
  bool ended_ = false;     // End(), or a head without a body
  bool deferred_ = false;  // nghttp2 waits for Resume()
  bool in_turns_ = false;  // frames of others are sent between its own
  bool reset_ = false;
};

}  // namespace portico::net
