// The messages of a call's client, on their way to the handler.
#include <utility>

#include "net/grpc/grpc_call.h"
#include "net/grpc/grpc_methods.h"
#include "net/http/exchange_events.h"
#include "net/loop/out_of_memory.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

Status WrongCount() {
  return Error(StatusCode::kUnimplemented, "the method takes exactly one message");
}

}  // namespace

void GrpcCall::Read(OnMessage on_message, OnEndOfMessages on_end) {
  on_message_ = std::move(on_message);
  on_end_ = std::move(on_end);
  ResumeReading();
}

void GrpcCall::ResumeReading() {
  // Within Deliver(), the loop around it goes on.
  if (!std::exchange(paused_, false) || destroyed_ != nullptr || stream_ == nullptr) return;
  std::string bytes = std::exchange(backlog_, {});
  stream_->Consume(bytes.size());
  TakeMessages(bytes);
}

void GrpcCall::OnBody(std::string_view bytes) {
  if (paused_) {
    backlog_.append(bytes);
    HoldWhatIsKept();
    return;
  }
  stream_->Consume(bytes.size());
  TakeMessages(bytes);
}

void GrpcCall::TakeMessages(std::string_view bytes) {
  while (stream_ != nullptr && !paused_) {
    std::string_view message;
    GrpcDeframer::Result result = deframer_.Next(&bytes, &message);
    if (result == GrpcDeframer::Result::kFailed) return Fail(Status(deframer_.status()));
    if (result == GrpcDeframer::Result::kMore) break;
    if (registered_->on_streams != nullptr) {
      if (!Deliver(message)) return;
    } else if (std::exchange(has_message_, true)) {
      return Fail(WrongCount());
    } else {
      message_.assign(message);
    }
  }
  if (stream_ == nullptr) return;
  backlog_.append(bytes);
  if (HoldWhatIsKept() && messages_ended_ && !paused_) DeliverEnd();
}

bool GrpcCall::HoldWhatIsKept() {
  const size_t held = backlog_.size() + message_.size() + deframer_.held();
  if (!stream_->Hold(held)) {
    Fail(Error(StatusCode::kResourceExhausted,
               "the messages of this connection are too large together"));
    return false;
  }
  if (lease_.Hold(stream_->connection().shard().load.bodies, held)) return true;
  Fail(Error(StatusCode::kUnavailable, "too many large messages at once; try again"));
  return false;
}

bool GrpcCall::Deliver(std::string_view message) {
  bool destroyed = false;
  destroyed_ = &destroyed;
  OnMessage on_message = std::exchange(on_message_, nullptr);
  on_message(std::string(message));
  if (destroyed) return false;
  destroyed_ = nullptr;
  if (!on_message_) on_message_ = std::move(on_message);
  return true;
}

void GrpcCall::OnRequestEnd() {
  messages_ended_ = true;
  if (!paused_) DeliverEnd();
}

void GrpcCall::DeliverEnd() {
  if (deframer_.mid_message()) {
    Fail(Error(StatusCode::kInternal, "the last message is incomplete"));
    return;
  }
  if (registered_->on_streams != nullptr) {
    if (auto on_end = std::exchange(on_end_, nullptr)) on_end();
    return;
  }
  if (!has_message_) return Fail(WrongCount());
  stream_->Hold(0);
  const events::Scope scope(BeginRequest(Metadata("x-request-id"), message_.size()));
  bool destroyed = false;
  destroyed_ = &destroyed;
  HandleInMemory([&] { registered_->handler(std::move(self_), std::move(message_)); });
  if (destroyed) return;
  destroyed_ = nullptr;
  lease_.Release();  // what it holds on to has been taken along
}

}  // namespace portico::net
