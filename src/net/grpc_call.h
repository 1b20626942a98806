// One gRPC call of a client and its answer (grpc.io, "gRPC over HTTP/2"). Messages are serialized
// bytes: this room knows no protobuf.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/exchange.h"
#include "net/http2_stream.h"
#include "net/shard.h"

namespace portico::net {

// Names in lower case, several values of one name in order. Values of names that end in "-bin" are
// any bytes and base64 only on the wire; the others are printable ASCII.
using GrpcMetadata = Headers;

struct GrpcMethod;

// Lives on its connection's shard: created, used and destroyed there. The handler owns it; the
// client may leave first, then on_closed is called and what is said later does nothing. Destroying
// it before Finish() answers INTERNAL, or resets the stream if it has begun to answer.
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
  // TimePoint::max() if the client set none. When it passes the call is answered
  // DEADLINE_EXCEEDED, then on_closed is called.
  TimePoint deadline() const { return deadline_; }
  Shard& shard() { return shard_; }

  // Messages of a streaming method, from within the handler. They come one by one, in order; then
  // `on_end` once, if the client ends its messages orderly and the call is not finished. Both may
  // destroy the call. Nothing comes after Finish().
  void Read(OnMessage on_message, OnEndOfMessages on_end);
  // No more messages for now: at most a flow-control window of them is kept, then the client waits.
  void PauseReading();
  // What has been kept comes from within this call.
  void ResumeReading();

  // Before the first message. Sent with it, or by SendInitialMetadata().
  void SetInitialMetadata(GrpcMetadata metadata);
  void SendInitialMetadata();
  // Messages written from now on are compressed if the client takes that and they get smaller by
  // it. Before the initial metadata is sent.
  void CompressMessages();
  // One message.
  void Write(std::string_view message);
  // The end. The status' code and message go into the trailers; `details` is a serialized
  // google.rpc.Status for grpc-status-details-bin, or empty.
  void Finish(const Status& status, GrpcMetadata trailing = {}, std::string details = {});
  // Write(message) and Finish(OK): the answer of a unary method.
  void Reply(std::string_view message, GrpcMetadata trailing = {});

  // Bytes written that flow control or the kernel has not taken: a slow reader's backlog.
  size_t unsent_bytes() const;

  // Called once, on the shard, when the call has ended without Finish(): CANCELLED (the client has
  // cancelled or left), DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (a slow reader), or what was wrong
  // with the client's messages. It may destroy the call.
  void set_on_closed(OnClosed on_closed) { on_closed_ = std::move(on_closed); }

 private:
  explicit GrpcCall(Http2Stream& stream);

  void OnBody(std::string_view bytes) override;
  void OnRequestEnd() override;
  void OnSlowBody() override;
  void OnGone() override;

  Http2Stream* stream_;  // null once the answer is complete or the client gone
  Shard& shard_;
  const GrpcMethod* registered_ = nullptr;
  std::string method_;
  std::string peer_;
  GrpcMetadata metadata_;
  TimePoint deadline_ = TimePoint::max();
  OnClosed on_closed_;
};

}  // namespace portico::net
