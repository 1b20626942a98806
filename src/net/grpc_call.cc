#include "net/grpc_call.h"

#include <utility>

#include "net/grpc_methods.h"
#include "net/grpc_wire.h"
#include "net/server_shard.h"

namespace portico::net {
namespace {

const Headers& UsualHead() {
  static const Headers* const head =
      new Headers{{"content-type", "application/grpc"},
                  {"grpc-accept-encoding", std::string(kGrpcAcceptEncoding)}};
  return *head;
}

void AddStatus(const Status& status, std::string details, Headers* trailers) {
  trailers->emplace_back("grpc-status", std::to_string(static_cast<int>(status.code())));
  if (!status.message().empty()) {
    trailers->emplace_back("grpc-message", EncodeGrpcMessage(MessageOf(status)));
  }
  if (!details.empty()) {
    trailers->emplace_back("grpc-status-details-bin", EncodeBinaryValue(details));
  }
}

Status WhyGone(Http2Error error) {
  if (error == Http2Error::kEnhanceYourCalm) {
    return Error(StatusCode::kResourceExhausted, "the client reads too slowly");
  }
  return Error(StatusCode::kCancelled, "the client has cancelled the call or left");
}

}  // namespace

GrpcCall::GrpcCall(Http2Stream& stream)
    : stream_(&stream),
      shard_(stream.connection().shard().shard),
      peer_(stream.connection().peer()),
      deframer_(stream.connection().shard().options.grpc.max_message_bytes) {}

GrpcCall::~GrpcCall() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  Finish(Error(StatusCode::kInternal, "the call was dropped without an answer"));
}

const GrpcOptions& GrpcCall::options() const { return stream_->connection().shard().options.grpc; }

std::string_view GrpcCall::Metadata(std::string_view name) const {
  for (const auto& [key, value] : metadata_) {
    if (key == name) return value;
  }
  return {};
}

size_t GrpcCall::unsent_bytes() const { return stream_ == nullptr ? 0 : stream_->unsent(); }

void GrpcCall::SendInitialMetadata() {
  if (stream_ == nullptr || std::exchange(head_sent_, true)) return;
  LimitUnsent(0);
  if (!compresses_ && initial_.empty()) {
    stream_->SendHead(200, UsualHead(), /*end=*/false);
    return;
  }
  Headers head = UsualHead();
  if (compresses_) head.emplace_back("grpc-encoding", GrpcEncodingName(GrpcEncoding::kGzip));
  bad_metadata_ = EncodeMetadata(initial_, &head);
  stream_->SendHead(200, head, /*end=*/false);
}

void GrpcCall::Write(std::string_view message) {
  if (stream_ == nullptr) return;
  SendInitialMetadata();
  std::string compressed;
  if (compresses_) compressed = Gzip(message);
  const bool compress = compresses_ && compressed.size() < message.size();
  if (compress) message = compressed;
  char prefix[kGrpcPrefix];
  WriteGrpcPrefix(message.size(), compress, prefix);
  stream_->Write({prefix, kGrpcPrefix});
  stream_->Write(message);
  sent_bytes_ += kGrpcPrefix + message.size();
  if (message.size() > largest_) LimitUnsent(message.size());
}

// A message that is larger than the bound is not a slow reader's fault.
void GrpcCall::LimitUnsent(size_t message) {
  largest_ = message;
  const size_t bound = stream_->connection().shard().options.max_unsent_bytes;
  if (bound != 0) stream_->LimitUnsent(bound + largest_);
}

void GrpcCall::Reply(std::string_view message, GrpcMetadata trailing) {
  Write(message);
  Finish(OkStatus(), std::move(trailing));
}

void GrpcCall::Finish(const Status& status, GrpcMetadata trailing, std::string details) {
  if (stream_ == nullptr) return;
  Headers fields;
  // Trailers alone say everything, unless there is initial metadata.
  if (!head_sent_ && !initial_.empty()) SendInitialMetadata();
  if (!head_sent_) fields = UsualHead();
  const size_t before = fields.size();
  Status sent = status;
  if (bad_metadata_.ok()) bad_metadata_ = EncodeMetadata(trailing, &fields);
  if (!bad_metadata_.ok()) {
    fields.resize(before);
    sent = bad_metadata_;
    details.clear();
  }
  AddStatus(sent, std::move(details), &fields);
  if (head_sent_) {
    stream_->End(std::move(fields));
  } else {
    stream_->SendHead(200, fields, /*end=*/true);
  }
  Complete(sent.code());
}

void GrpcCall::Complete(StatusCode code) {
  deadline_timer_.reset();
  if (const auto& on_complete = options().on_complete) {
    on_complete(*this, code, sent_bytes_, Clock::now() - start_);
  }
  std::exchange(stream_, nullptr)->LetGo();
}

void GrpcCall::Fail(const Status& why) {
  Finish(why);
  Close(why);
}

void GrpcCall::Close(const Status& why) {
  std::unique_ptr<GrpcCall> dying = std::move(self_);
  auto on_closed = std::exchange(on_closed_, nullptr);
  if (on_closed) on_closed(why);
}

void GrpcCall::OnGone(Http2Error error) {
  Status why = WhyGone(error);
  Complete(why.code());
  Close(why);
}

void GrpcCall::OnSlowBody() {
  Fail(Error(StatusCode::kDeadlineExceeded, "the request message took too long"));
}

}  // namespace portico::net
