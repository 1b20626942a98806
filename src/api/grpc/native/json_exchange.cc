#include "api/grpc/native/json_exchange.h"

#include <utility>

#include "api/grpc/wire.h"

namespace portico::api::rpc {
namespace {

// Numbers of OpenAIResponse.
constexpr int kBody = 1;
constexpr int kBodyStatus = 2;
// And of OpenAIStreamChunk.
constexpr int kChunk = 1;
constexpr int kFinished = 2;
constexpr int kChunkStatus = 3;

constexpr std::string_view kEventStart = "data: ";
constexpr std::string_view kEventEnd = "\n\n";

}  // namespace

JsonExchange::JsonExchange(std::unique_ptr<net::GrpcCall> call, Envelope envelope)
    : call_(std::move(call)), envelope_(envelope) {
  call_->set_on_closed([this](const Status&) {
    auto on_closed = std::move(on_closed_);
    on_closed_ = nullptr;
    if (on_closed) on_closed();
  });
}

void JsonExchange::Respond(net::HttpResponse response) {
  if (aborted_) return Cut();
  const auto status = static_cast<uint64_t>(response.status);
  message_.clear();
  if (envelope_ == Envelope::kResponse) {
    AppendBytesField(kBody, response.body, &message_);
    AppendVarintField(kBodyStatus, status, &message_);
  } else {
    AppendBytesField(kChunk, response.body, &message_);
    AppendVarintField(kFinished, 1, &message_);
    AppendVarintField(kChunkStatus, status, &message_);
  }
  call_->Reply(message_);
}

void JsonExchange::Write(std::string_view events) {
  while (!events.empty()) {
    const size_t end = events.find(kEventEnd);
    std::string_view event = events.substr(0, end);
    events.remove_prefix(end == events.npos ? events.size() : end + kEventEnd.size());
    if (!event.starts_with(kEventStart)) continue;
    event.remove_prefix(kEventStart.size());
    if (event == "[DONE]") continue;
    message_.clear();
    AppendBytesField(kChunk, event, &message_);
    call_->Write(message_);
  }
}

void JsonExchange::End() {
  if (aborted_) return Cut();
  message_.clear();
  AppendVarintField(kFinished, 1, &message_);
  call_->Reply(message_);
}

void JsonExchange::Cut() {
  call_->Finish(aborted_ ? Error(StatusCode::kCancelled, "Request aborted")
                         : Error(StatusCode::kInternal, "the answer was cut off"));
}

}  // namespace portico::api::rpc
