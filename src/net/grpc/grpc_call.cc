#include "net/grpc/grpc_call.h"

#include <array>
#include <utility>

#include "base/touched_objects.h"
#include "net/grpc/grpc_methods.h"
#include "net/grpc/grpc_wire.h"
#include "net/loop/out_of_memory.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

constexpr FixedField kHead[] = {
    {"content-type", "application/grpc"},
    {"grpc-accept-encoding", kGrpcAcceptEncoding},
    {"grpc-encoding", "gzip"},
};
constexpr FixedFields kPlainHead(kHead, 2);
constexpr FixedFields kGzipHead(kHead, 3);

constexpr std::string_view kCodes[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                       "9", "10", "11", "12", "13", "14", "15", "16"};
constexpr size_t kCodeCount = std::size(kCodes);
constexpr size_t kUnknown = 2;

// How a call ends with each code: the head of a trailers-only answer, whose last field is all that
// trailers behind a head need.
constexpr auto kEnds = [] {
  std::array<std::array<FixedField, 3>, kCodeCount> ends{};
  for (size_t i = 0; i < kCodeCount; ++i) {
    ends[i] = {kHead[0], kHead[1], {"grpc-status", kCodes[i]}};
  }
  return ends;
}();

FixedFields EndOf(StatusCode code, bool head_sent) {
  const auto number = static_cast<size_t>(code);
  const auto& fields = kEnds[number < kCodeCount ? number : kUnknown];
  return head_sent ? FixedFields(&fields.back(), 1) : FixedFields(fields);
}

// Clients refuse heads of more than 8 or 16 KiB, as they are configured.
constexpr size_t kMaxShownMessage = 2048;
constexpr size_t kMaxDetails = 4096;
// nghttp2 sends no head beyond 64 KiB, and says so only when it is too late for another.
constexpr size_t kMaxMetadata = 32 << 10;

// The first bytes of a text, without a part of a character.
std::string_view Shown(std::string_view text) {
  if (text.size() <= kMaxShownMessage) return text;
  size_t end = kMaxShownMessage;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

void AddTexts(const Status& status, const std::string& details, Headers* trailers) {
  if (!status.message().empty()) {
    trailers->emplace_back("grpc-message", EncodeGrpcMessage(Shown(MessageOf(status))));
  }
  if (!details.empty() && details.size() <= kMaxDetails) {
    trailers->emplace_back("grpc-status-details-bin", EncodeBinaryValue(details));
  }
}

// Appends nothing where it fails.
Status AddMetadata(const GrpcMetadata& metadata, Headers* headers) {
  if (metadata.empty()) return OkStatus();
  const size_t before = headers->size();
  Status encoded = EncodeMetadata(metadata, headers);
  size_t bytes = 0;
  for (size_t i = before; i < headers->size(); ++i) {
    bytes += (*headers)[i].first.size() + (*headers)[i].second.size();
  }
  if (encoded.ok() && bytes > kMaxMetadata) {
    encoded = Error(StatusCode::kInternal, "the metadata of the answer is larger than " +
                                               std::to_string(kMaxMetadata) + " bytes");
  }
  if (!encoded.ok()) headers->resize(before);
  return encoded;
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
      client_(stream.connection().client()),
      deframer_(stream.connection().shard().options.grpc.max_message_bytes) {}

GrpcCall::~GrpcCall() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  Finish(IsOutOfMemory() ? Error(StatusCode::kUnavailable, std::string(kOutOfMemory))
                         : Error(StatusCode::kInternal, "the call was dropped without an answer"));
}

const GrpcOptions& GrpcCall::options() const { return stream_->connection().shard().options.grpc; }

std::string_view GrpcCall::Metadata(std::string_view name) const {
  for (const auto& [key, value] : metadata_) {
    if (key == name) return value;
  }
  return {};
}

size_t GrpcCall::unsent_bytes() const { return stream_ == nullptr ? 0 : stream_->unsent(); }

void GrpcCall::CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) {
  if (stream_ != nullptr) stream_->CallWhenBelow(bytes, std::move(call));
}

void GrpcCall::SendInitialMetadata() {
  if (stream_ == nullptr || std::exchange(head_sent_, true)) return;
  LimitUnsent(0);
  Headers metadata;
  bad_metadata_ = AddMetadata(initial_, &metadata);
  stream_->SendBareHead(compresses_ ? kGzipHead : kPlainHead, metadata, /*end=*/false);
}

void GrpcCall::Write(std::string_view message) {
  if (stream_ == nullptr) return;
  NoteTouched(this, sizeof(*this));
  NoteTouched(stream_, sizeof(*stream_));
  SendInitialMetadata();
  std::string compressed;
  if (compresses_) compressed = Gzip(message);
  const bool compress = !compressed.empty() && compressed.size() < message.size();
  if (compress) message = compressed;
  char prefix[kGrpcPrefix];
  WriteGrpcPrefix(message.size(), compress, prefix);
  stream_->Write({prefix, kGrpcPrefix}, message);
  sent_bytes_ += kGrpcPrefix + message.size();
  if (message.size() > largest_) LimitUnsent(message.size());
}

// A message that is larger than the bound is not a slow reader's fault.
void GrpcCall::LimitUnsent(size_t message) {
  largest_ = message;
  const size_t bound = stream_->connection().shard().options.max_unsent_bytes;
  if (bound != 0) stream_->LimitUnsent(bound + largest_);
}

void GrpcCall::Reply(std::string_view message, const GrpcMetadata& trailing) {
  Write(message);
  Finish(OkStatus(), trailing);
}

void GrpcCall::Finish(const Status& status, const GrpcMetadata& trailing,
                      const std::string& details) {
  if (stream_ == nullptr) return;
  // Trailers alone say everything, unless there is initial metadata.
  if (!head_sent_ && !initial_.empty()) SendInitialMetadata();
  Headers texts;
  if (bad_metadata_.ok()) bad_metadata_ = AddMetadata(trailing, &texts);
  const Status& sent = bad_metadata_.ok() ? status : bad_metadata_;
  AddTexts(sent, bad_metadata_.ok() ? details : std::string(), &texts);
  const FixedFields end = EndOf(sent.code(), head_sent_);
  if (head_sent_) {
    stream_->End(end, std::move(texts));
  } else {
    stream_->SendBareHead(end, texts, /*end=*/true);
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
