// One call of a gRPC client, unary or streaming either way, on its channel's shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_wire.h"
#include "net/loop/shard.h"

namespace portico::net {

class GrpcChannel;
class GrpcConnection;

struct GrpcCallOptions {
  std::string path = {};  // "/package.Service/Method"
  Headers metadata = {};
  Duration timeout = Duration::zero();  // zero: none
  // While the server cannot be reached: wait, as long as the timeout allows, instead of failing
  // with UNAVAILABLE.
  bool wait_for_ready = false;
  GrpcEncoding encoding = GrpcEncoding::kIdentity;  // of what we write
};

// The payload of a failed status with the bytes of grpc-status-details-bin.
inline constexpr char kGrpcStatusDetails[] = "grpc-status-details-bin";

// What is told about a call, on the shard, never from within a function of the call or channel.
// Each function may destroy the call.
class GrpcCallEvents {
 public:
  virtual ~GrpcCallEvents() = default;
  // The server's metadata; not called where a call ends without.
  virtual void OnHead(Headers metadata) { static_cast<void>(metadata); }
  virtual void OnMessage(std::string_view message) = 0;
  // Everything written has left through flow control (GrpcClientCall::TellWhenSent).
  virtual void OnSent() {}
  // The last, once, except that a call that is destroyed tells nothing more.
  virtual void OnEnd(Status status, Headers trailers) = 0;
};

class GrpcClientCall {
 public:
  // Cancels what has not ended. `events` of a call must live as long as it.
  ~GrpcClientCall();
  GrpcClientCall(const GrpcClientCall&) = delete;
  GrpcClientCall& operator=(const GrpcClientCall&) = delete;

  // Before End(). What flow control holds back is kept; over the channel's bound the call ends with
  // RESOURCE_EXHAUSTED.
  void Write(std::string_view message);
  // No more messages (half-close).
  void End();
  // OnEnd() follows, with CANCELLED.
  void Cancel();

  // Between these no message is told. What comes is kept up to the stream's window, then the server
  // has to wait; other calls do not.
  void PauseReading() { paused_ = true; }
  void ResumeReading();

  // A connection has taken it: the server may have seen it.
  bool begun() const { return stream_ != 0; }

  // Bytes written that flow control holds back.
  size_t unsent() const { return output_.size() - sent_; }
  // One call of OnSent().
  void TellWhenSent();

 private:
  friend class GrpcChannel;
  friend class GrpcConnection;
  friend struct GrpcConnectionCallbacks;
  struct Watch;

  GrpcClientCall(GrpcChannel& channel, GrpcCallOptions options, GrpcCallEvents& events);

  // From the connection.
  void OnHeader(std::string_view name, std::string_view value);
  void OnHeaders(bool end_stream);
  void OnData(std::string_view bytes);
  void OnEndStream();
  // The stream is over without an answer's end. `unprocessed`: the server has not looked at it.
  void OnReset(uint32_t error, bool unprocessed);
  void OnLost(const Status& status);
  size_t Offer(size_t max, bool* end);
  std::string_view Take(size_t size);
  // From the channel.
  void RunSoon();

  void OnHead();
  void Deliver(std::string_view bytes);
  void EndWith(Status status);
  // The answer is complete; what is kept of it is told first.
  void Finish();
  void FinishBlock();
  Status StatusOfBlock() const;
  void Fail(Status status);
  void FailSoon(Status status);
  void DropSent();

  GrpcChannel* channel_;  // null once ended
  GrpcCallEvents& events_;
  GrpcCallOptions options_;
  TimePoint deadline_;  // never: TimePoint::max()
  std::unique_ptr<Shard::Timer> deadline_timer_;

  // The channel's.
  size_t channel_place_ = 0;
  std::list<GrpcClientCall*>::iterator queue_place_;
  bool queued_ = false;
  bool soon_ = false;  // RunSoon() will be called

  // The connection's.
  GrpcConnection* connection_ = nullptr;
  size_t place_ = 0;  // in its table
  int32_t stream_ = 0;
  bool deferred_ = false;  // nghttp2 waits for more output
  bool end_sent_ = false;

  // Output, from where it may have to be said again to another connection.
  std::string output_;
  size_t sent_ = 0;
  bool replayable_ = true;
  bool ended_ = false;  // End()
  bool wants_sent_ = false;
  int refusals_ = 0;

  // The answer.
  Headers block_;  // the head or trailers that come now
  int http_status_ = 0;
  size_t block_bytes_ = 0;
  bool head_done_ = false;
  bool finished_ = false;
  Status final_;
  Headers trailers_;
  GrpcDeframer deframer_;
  std::string kept_;  // came while paused
  bool paused_ = false;
  Watch* watch_ = nullptr;  // of the function that tells events
};

}  // namespace portico::net
