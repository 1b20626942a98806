#include "net/grpc/grpc_client_call.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/cord.h"
#include "net/grpc/grpc_call.h"
#include "net/grpc/grpc_channel.h"
#include "net/grpc/grpc_connection.h"

namespace portico::net {
namespace {

// What has been sent is kept up to here, for another connection if the server refuses the call.
constexpr size_t kMaxReplay = 256 << 10;
// gRPC's own clients try once more; servers that leave one after another refuse more often.
constexpr int kMaxRefusals = 3;
// What HTTP/2 adds to each field when it counts a head (RFC 9113, 6.5.2).
constexpr size_t kFieldOverhead = 32;
constexpr size_t kDropStep = 64 << 10;

std::string_view Find(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string_view ResetName(uint32_t error) {
  static constexpr std::string_view kNames[] = {
      "NO_ERROR",
      "PROTOCOL_ERROR",
      "INTERNAL_ERROR",
      "FLOW_CONTROL_ERROR",
      "SETTINGS_TIMEOUT",
      "STREAM_CLOSED",
      "FRAME_SIZE_ERROR",
      "REFUSED_STREAM",
      "CANCEL",
      "COMPRESSION_ERROR",
      "CONNECT_ERROR",
      "ENHANCE_YOUR_CALM",
      "INADEQUATE_SECURITY",
      "HTTP_1_1_REQUIRED",
  };
  return error < std::size(kNames) ? kNames[error] : "an unknown error";
}

Status DeadlineExceeded() {
  return Error(StatusCode::kDeadlineExceeded, "the deadline has passed");
}

constexpr uint32_t kNoError = 0;
constexpr uint32_t kCancel = 8;

}  // namespace

// Tells a function whether the call has been destroyed by what it has told.
struct GrpcClientCall::Watch {
  explicit Watch(GrpcClientCall& call) : call_(&call), outer_(std::exchange(call.watch_, this)) {}
  ~Watch() {
    if (call_ != nullptr) call_->watch_ = outer_;
  }
  bool gone() const { return call_ == nullptr; }

  GrpcClientCall* call_;
  Watch* outer_;
};

GrpcClientCall::GrpcClientCall(GrpcChannel& channel, GrpcCallOptions options,
                               GrpcCallEvents& events)
    : channel_(&channel),
      events_(events),
      options_(std::move(options)),
      deadline_(TimePoint::max()),
      deframer_(channel.options_.max_message_bytes) {
  if (options_.timeout <= Duration::zero()) return;
  const TimePoint now = Clock::now();
  if (options_.timeout >= TimePoint::max() - now) return;
  deadline_ = now + options_.timeout;
  deadline_timer_ = channel.shard_.After(options_.timeout, [this] { Fail(DeadlineExceeded()); });
}

GrpcClientCall::~GrpcClientCall() {
  for (Watch* watch = watch_; watch != nullptr; watch = watch->outer_) watch->call_ = nullptr;
  if (connection_ != nullptr) connection_->Release(*this, kCancel);
  if (channel_ != nullptr) channel_->Forget(*this);
}

void GrpcClientCall::Write(std::string_view message) {
  if (channel_ == nullptr || finished_ || ended_) return;
  AppendGrpcMessage(message, options_.encoding, &output_);
  if (unsent() > channel_->options_.max_unsent_bytes) {
    FailSoon(Error(StatusCode::kResourceExhausted, "too many bytes wait to be sent"));
  } else if (connection_ != nullptr) {
    connection_->Resume(*this);
  }
}

void GrpcClientCall::End() {
  if (channel_ == nullptr || std::exchange(ended_, true)) return;
  if (connection_ != nullptr) connection_->Resume(*this);
}

void GrpcClientCall::Cancel() { FailSoon(Error(StatusCode::kCancelled, "cancelled")); }

void GrpcClientCall::ResumeReading() {
  if (!std::exchange(paused_, false)) return;
  if (channel_ != nullptr && (!kept_.empty() || finished_)) channel_->RunSoon(*this);
}

void GrpcClientCall::TellWhenSent() {
  wants_sent_ = true;
  if (channel_ != nullptr && unsent() == 0) channel_->RunSoon(*this);
}

void GrpcClientCall::OnHeader(std::string_view name, std::string_view value) {
  block_bytes_ += name.size() + value.size() + kFieldOverhead;
  if (block_bytes_ > channel_->options_.max_head_bytes) return;
  if (name == ":status") {
    std::from_chars(value.data(), value.data() + value.size(), http_status_);
  } else if (!name.starts_with(':')) {
    block_.emplace_back(name, value);
  }
}

void GrpcClientCall::OnHeaders(bool end_stream) {
  if (block_bytes_ > channel_->options_.max_head_bytes) {
    Fail(Error(StatusCode::kResourceExhausted, "the server's metadata is larger than the limit"));
    return;
  }
  if (!head_done_ && http_status_ / 100 == 1) {
    block_.clear();
    return;
  }
  if (end_stream) {
    head_done_ = true;
    FinishBlock();
  } else if (!head_done_) {
    OnHead();
  }
}

void GrpcClientCall::OnHead() {
  head_done_ = true;
  replayable_ = false;
  DropSent();
  const std::string_view content_type = Find(block_, "content-type");
  if (http_status_ != 200 || !IsGrpcContentType(content_type)) {
    Status status = StatusOfBlock();
    if (status.ok()) status = Error(StatusCode::kUnknown, "the answer is not gRPC");
    return Fail(std::move(status));
  }
  const std::string_view encoding = Find(block_, "grpc-encoding");
  if (!encoding.empty()) {
    auto parsed = ParseGrpcEncoding(encoding);
    if (!parsed.ok())
      return Fail(Error(StatusCode::kInternal, std::string(MessageOf(parsed.status()))));
    deframer_.SetEncoding(*parsed);
  }
  auto metadata = DecodeMetadata(block_);
  block_.clear();
  if (!metadata.ok()) return Fail(metadata.status());
  events_.OnHead(*std::move(metadata));
}

Status GrpcClientCall::StatusOfBlock() const {
  const std::string_view number = Find(block_, "grpc-status");
  if (auto code = ParseGrpcStatus(number)) {
    if (*code == StatusCode::kOk) return OkStatus();
    Status status = Error(*code, DecodeGrpcMessage(Find(block_, "grpc-message")));
    auto details = DecodeBinaryValues(Find(block_, kGrpcStatusDetails));
    if (details && !details->front().empty()) {
      status.SetPayload(kGrpcStatusDetails, absl::Cord(details->front()));
    }
    return status;
  }
  std::string message = "answer without grpc-status";
  if (http_status_ != 200 || !head_done_) {
    message = "HTTP status " + std::to_string(http_status_);
  } else if (!number.empty()) {
    message = "answer with a malformed grpc-status";
  }
  const std::string_view content_type = Find(block_, "content-type");
  if (!content_type.empty() && !IsGrpcContentType(content_type)) {
    message.append(", content-type ").append(content_type);
  }
  return Error(GrpcCodeOfHttp(http_status_), std::move(message));
}

void GrpcClientCall::FinishBlock() {
  final_ = StatusOfBlock();
  auto trailers = DecodeMetadata(block_);
  if (trailers.ok()) {
    trailers_ = *std::move(trailers);
  } else if (final_.ok()) {
    final_ = trailers.status();
  }
  Finish();
}

void GrpcClientCall::OnEndStream() {
  final_ = Error(GrpcCodeOfHttp(http_status_), "the server ended the answer without trailers");
  Finish();
}

void GrpcClientCall::Finish() {
  finished_ = true;
  deadline_timer_.reset();
  connection_->Release(*this, kNoError);
  if (kept_.empty()) EndWith(std::move(final_));
}

void GrpcClientCall::OnReset(uint32_t error, bool unprocessed) {
  if (unprocessed && replayable_ && ++refusals_ <= kMaxRefusals) {
    sent_ = 0;
    deferred_ = end_sent_ = false;
    block_.clear();
    block_bytes_ = 0;
    http_status_ = 0;
    channel_->Queue(*this, true);
    return;
  }
  if (error == kCancel && Clock::now() >= deadline_) {
    EndWith(DeadlineExceeded());  // the server's clock was faster
    return;
  }
  std::string message = "the server reset the stream: ";
  EndWith(Error(GrpcCodeOfReset(error), message.append(ResetName(error))));
}

void GrpcClientCall::OnLost(const Status& status) { EndWith(status); }

void GrpcClientCall::OnData(std::string_view bytes) {
  if (!head_done_) return;  // nghttp2 resets such streams itself
  if (paused_ || !kept_.empty()) {
    kept_.append(bytes);
  } else {
    Deliver(bytes);
  }
}

void GrpcClientCall::Deliver(std::string_view bytes) {
  const size_t all = bytes.size();
  Watch watch(*this);
  while (!paused_) {
    std::string_view message;
    const GrpcDeframer::Result result = deframer_.Next(&bytes, &message);
    if (result == GrpcDeframer::Result::kMore) break;
    if (result == GrpcDeframer::Result::kFailed) return Fail(deframer_.status());
    events_.OnMessage(message);
    if (watch.gone() || channel_ == nullptr) return;
  }
  if (connection_ != nullptr) connection_->Consume(*this, all - bytes.size());
  kept_.append(bytes);
}

size_t GrpcClientCall::Offer(size_t max, bool* end) {
  const size_t size = std::min(unsent(), max);
  *end = ended_ && size == unsent();
  if (*end) end_sent_ = true;
  if (size == 0 && !*end) deferred_ = true;
  return size;
}

std::string_view GrpcClientCall::Take(size_t size) {
  const std::string_view taken = std::string_view(output_).substr(sent_, size);
  sent_ += size;
  return taken;
}

void GrpcClientCall::DropSent() {
  if (sent_ > kMaxReplay) replayable_ = false;
  // Not in small steps: each moves what is left.
  if (!replayable_ && sent_ >= std::min(output_.size(), std::max(kDropStep, output_.size() / 2))) {
    output_.erase(0, std::exchange(sent_, 0));
  }
  if (wants_sent_ && unsent() == 0) channel_->RunSoon(*this);
}

void GrpcClientCall::RunSoon() {
  if (channel_ == nullptr) return;
  Watch watch(*this);
  if (unsent() == 0 && std::exchange(wants_sent_, false)) {
    events_.OnSent();
    if (watch.gone() || channel_ == nullptr) return;
  }
  if (!paused_ && !kept_.empty()) {
    const std::string kept = std::exchange(kept_, {});
    Deliver(kept);
    if (watch.gone() || channel_ == nullptr) return;
  }
  if (finished_ && kept_.empty()) EndWith(std::move(final_));
}

void GrpcClientCall::Fail(Status status) {
  if (connection_ != nullptr) connection_->Release(*this, kCancel);
  EndWith(std::move(status));
}

void GrpcClientCall::FailSoon(Status status) {
  if (channel_ == nullptr) return;
  finished_ = true;
  final_ = std::move(status);
  kept_.clear();
  if (connection_ != nullptr) connection_->Release(*this, kCancel);
  channel_->Unqueue(*this);
  channel_->RunSoon(*this);
}

void GrpcClientCall::EndWith(Status status) {
  if (status.ok() && deframer_.mid_message()) {
    status = Error(StatusCode::kInternal, "the last message of the answer is incomplete");
  }
  deadline_timer_.reset();
  std::exchange(channel_, nullptr)->Forget(*this);
  events_.OnEnd(std::move(status), std::move(trailers_));
}

}  // namespace portico::net
