// How a call begins: from the head of an HTTP/2 request to its handler, or to a refusal.
#include <utility>

#include "net/grpc/grpc_call.h"
#include "net/grpc/grpc_methods.h"
#include "net/grpc/grpc_wire.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

constexpr std::string_view kGrpc = "application/grpc";
// Of a client's text in a message.
constexpr size_t kMaxShown = 200;

Status Unimplemented(std::string message) {
  return Error(StatusCode::kUnimplemented, std::move(message));
}

}  // namespace

bool IsGrpcContentType(std::string_view type) {
  // Not application/grpc-web, which is another protocol.
  return type.starts_with(kGrpc) &&
         (type.size() == kGrpc.size() || type[kGrpc.size()] == '+' || type[kGrpc.size()] == ';');
}

void GrpcCall::Begin(Http2Stream& stream, bool too_large) {
  const ServerOptions& options = stream.connection().shard().options;
  if (options.grpc.methods == nullptr) {
    stream.SendHead(415, {}, /*end=*/true);
    return;
  }
  if (stream.request.method != "POST") {
    stream.SendHead(405, {{"allow", "POST"}}, /*end=*/true);
    return;
  }
  std::unique_ptr<GrpcCall> made(new GrpcCall(stream));
  GrpcCall& call = *made;
  call.self_ = std::move(made);
  stream.SetUser(&call);
  if (options.grpc.on_complete != nullptr) call.start_ = Clock::now();
  Status wrong = too_large ? Error(StatusCode::kResourceExhausted,
                                   "the metadata is larger than " +
                                       std::to_string(options.max_head_bytes) + " bytes")
                           : call.ReadHead(stream.request);
  if (wrong.ok()) wrong = call.Admit(options.grpc);
  if (wrong.ok() && stream.request.late) {
    wrong = Error(StatusCode::kUnavailable, "the server is draining");
  }
  if (!wrong.ok()) {
    call.Fail(wrong);
    return;
  }
  if (call.registered_->on_streams == nullptr) return;
  stream.LeaveBodyUntimed();
  call.paused_ = true;
  call.registered_->on_streams(std::move(call.self_));
}

Status GrpcCall::ReadHead(HttpRequest& request) {
  method_ = std::move(request.path);
  registered_ = options().methods->Find(method_);
  if (registered_ != nullptr && registered_->max_message_bytes != 0) {
    deframer_.SetMaxMessageBytes(registered_->max_message_bytes);
  }
  PORTICO_ASSIGN_OR_RETURN(metadata_, DecodeMetadata(request.headers));
  GrpcEncoding encoding = GrpcEncoding::kIdentity;
  for (const auto& [name, value] : request.headers) {
    if (name == "grpc-timeout") {
      auto timeout = ParseGrpcTimeout(value);
      if (!timeout) return InvalidArgument(name, "grpc-timeout is malformed");
      StartClock(*timeout);
    } else if (name == "grpc-encoding") {
      PORTICO_ASSIGN_OR_RETURN(encoding, ParseGrpcEncoding(value));
      deframer_.SetEncoding(encoding);
    } else if (name == "grpc-accept-encoding") {
      accepts_gzip_ = GrpcAccepts(value, GrpcEncoding::kGzip);
    }
  }
  // Nearly all clients say that they take gzip; those that use it wish it.
  if (encoding == GrpcEncoding::kGzip) CompressMessages();
  if (deadline_ == TimePoint::min()) {
    return Error(StatusCode::kDeadlineExceeded, "the deadline had passed before the call arrived");
  }
  return OkStatus();
}

void GrpcCall::StartClock(Duration timeout) {
  if (timeout <= Duration::zero()) {
    deadline_ = TimePoint::min();
    return;
  }
  const TimePoint now = Clock::now();
  if (timeout > TimePoint::max() - now) return;
  deadline_ = now + timeout;
  deadline_timer_ = shard_.After(timeout, [this] {
    Fail(Error(StatusCode::kDeadlineExceeded, "the deadline of the call has passed"));
  });
}

Status GrpcCall::Admit(const GrpcOptions& options) const {
  if (registered_ != nullptr) return options.admit ? options.admit(*this) : OkStatus();
  std::string_view name = std::string_view(method_).substr(0, kMaxShown);
  const size_t slash = name.rfind('/');
  if (name.empty() || name.front() != '/' || slash == 0) {
    return Unimplemented("malformed method name \"" + std::string(name) + "\"");
  }
  std::string service(name.substr(1, slash - 1));
  if (!options.methods->HasService(service)) return Unimplemented("unknown service " + service);
  return Unimplemented("unknown method " + std::string(name.substr(slash + 1)) + " of service " +
                       service);
}

}  // namespace portico::net
