// One gRPC call of a client and its answer (grpc.io, "gRPC over HTTP/2"). Messages are serialized
// bytes: this room knows no protobuf.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_options.h"
#include "net/http/exchange.h"
#include "net/http2/http2_stream.h"
#include "net/loop/shard.h"

namespace portico::net {

// Names in lower case, several values of one name in order. Values of names that end in "-bin" are
// any bytes and base64 only on the wire; the others are printable ASCII.
using GrpcMetadata = Headers;

struct GrpcMethod;

// Whether a request with this content-type is gRPC's.
bool IsGrpcContentType(std::string_view type);

// Lives on its connection's shard: created, used and destroyed there. The handler owns it; the
// client may leave first, then on_closed is called and what is said later does nothing. Destroying
// it before Finish() answers INTERNAL.
//
// Nothing here blocks or fails: what one turn of the loop writes leaves in one send, and what the
// client does not take waits. A client that lets too much wait is cut off (RESOURCE_EXHAUSTED).
class GrpcCall final : private Http2User {
 public:
  using OnMessage = absl::AnyInvocable<void(std::string message)>;
  using OnEndOfMessages = absl::AnyInvocable<void()>;
  using OnClosed = absl::AnyInvocable<void(Status why)>;

  ~GrpcCall() override;
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

  // "/package.Service/Method", as the client wrote it.
  const std::string& method() const { return method_; }
  // The registry's entry; null where the client asked for what there is not.
  const GrpcMethod* registered() const { return registered_; }
  // What the client sent, without what the protocol itself uses (grpc-timeout, te, …).
  const GrpcMetadata& metadata() const { return metadata_; }
  // The first value of a name (in lower case), or "".
  std::string_view Metadata(std::string_view name) const;
  const std::string& peer() const { return peer_; }  // "127.0.0.1:51234"
  // The subject of the certificate that the client has shown, or "".
  const std::string& client() const { return client_; }
  // TimePoint::max() if the client set none. When it passes the call is answered
  // DEADLINE_EXCEEDED, then on_closed is called.
  TimePoint deadline() const { return deadline_; }
  Shard& shard() { return shard_; }

  // Messages of a streaming method, from within the handler. They come one by one, in order; then
  // `on_end` once, if the client ends its messages orderly and the call is not finished. Both may
  // destroy the call. Nothing comes after Finish().
  void Read(OnMessage on_message, OnEndOfMessages on_end);
  // No more messages for now: at most a flow-control window of them is kept, then the client waits.
  void PauseReading() { paused_ = true; }
  // What has been kept comes from within this call.
  void ResumeReading();

  // Before the first message. Sent with it, or by SendInitialMetadata(). Metadata that cannot be
  // sent (a bad name, a value that is not ASCII, more than 32 KiB) makes the call end INTERNAL.
  void SetInitialMetadata(GrpcMetadata metadata) { initial_ = std::move(metadata); }
  void SendInitialMetadata();
  // Messages are compressed if the client takes that and they get smaller by it; so they are without
  // being told to where the client compresses its own. Before the initial metadata is sent.
  void CompressMessages() { compresses_ = accepts_gzip_; }
  // One message.
  void Write(std::string_view message);
  // The end. The status' code and message go into the trailers; `details` is a serialized
  // google.rpc.Status for grpc-status-details-bin, or empty. Clients bound what they read: of a
  // message the first 2,048 bytes are sent, and of details nothing if they have more than 4,096.
  void Finish(const Status& status, const GrpcMetadata& trailing = {},
              const std::string& details = {});
  // Write(message) and Finish(OK): the answer of a unary method.
  void Reply(std::string_view message, const GrpcMetadata& trailing = {});

  // What the message of a unary method has taken of the server's budget. Given back when the handler returns, unless it is
  // taken along.
  BodyLease& lease() { return lease_; }

  // Bytes written that flow control or the kernel has not taken: a slow reader's backlog.
  size_t unsent_bytes() const;
  // Runs `call` once, on the shard, when the client has read again: when no more than `bytes` are unsent, also where so
  // few are now. As Exchange::CallWhenBelow(): in a later turn, the next one replaces it, and it is dropped once the call
  // is finished, closed or destroyed, which `call` itself may do.
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call);

  // Called once, on the shard, when the call has ended without Finish(): CANCELLED (the client has
  // cancelled or left), DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (a slow reader), or what was wrong
  // with the client's messages. It may destroy the call.
  void set_on_closed(OnClosed on_closed) { on_closed_ = std::move(on_closed); }

 private:
  friend class Http2Session;

  explicit GrpcCall(Http2Stream& stream);

  // The head has come. `too_large`: it was over its limit and is refused.
  static void Begin(Http2Stream& stream, bool too_large);
  // What is wrong with the head.
  Status ReadHead(HttpRequest& request);
  // Why the call is not served.
  Status Admit(const GrpcOptions& options) const;
  void StartClock(Duration timeout);

  void OnBody(std::string_view bytes) override;
  void OnRequestEnd() override;
  void OnSlowBody() override;
  void OnGone(Http2Error why) override;

  void TakeMessages(std::string_view bytes);
  // False if that has destroyed the call.
  bool Deliver(std::string_view message);
  void DeliverEnd();
  // False if the connection's calls together keep too much; the call is over then.
  bool HoldWhatIsKept();

  // Answers, then closes.
  void Fail(const Status& why);
  // The handler, if there is one yet, is told. May destroy the call.
  void Close(const Status& why);
  void LimitUnsent(size_t message);
  void Complete(StatusCode code);
  const GrpcOptions& options() const;

  Http2Stream* stream_;  // null once the answer is complete or the client gone
  Shard& shard_;
  const GrpcMethod* registered_ = nullptr;
  std::unique_ptr<GrpcCall> self_;  // until the handler has it
  std::string method_;
  std::string peer_;
  std::string client_;
  GrpcMetadata metadata_;
  TimePoint start_;  // only where someone asks
  TimePoint deadline_ = TimePoint::max();
  std::unique_ptr<Shard::Timer> deadline_timer_;
  OnClosed on_closed_;

  // What comes.
  GrpcDeframer deframer_;
  OnMessage on_message_;
  OnEndOfMessages on_end_;
  std::string backlog_;        // come while reading was paused; not consumed
  std::string message_;        // the one of a whole-request method
  BodyLease lease_;            // of both, and of what the deframer holds
  bool* destroyed_ = nullptr;  // of the handler that runs
  bool has_message_ = false;   // message_
  bool paused_ = false;
  bool messages_ended_ = false;

  // What goes.
  GrpcMetadata initial_;
  Status bad_metadata_;  // found when it was too late to fail
  size_t sent_bytes_ = 0;
  size_t largest_ = 0;  // message
  bool accepts_gzip_ = false;
  bool compresses_ = false;
  bool head_sent_ = false;
};

}  // namespace portico::net
