// A gRPC call as the exchange of an HTTP route: SGLang's JSON methods (ChatComplete, Score, …) are
// the HTTP routes with another envelope.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/grpc/grpc_call.h"
#include "net/http/exchange.h"

namespace portico::api::rpc {

class JsonExchange final : public net::Exchange {
 public:
  // What the answer is put into: OpenAIResponse, or OpenAIStreamChunk of a streaming method.
  enum class Envelope { kResponse, kChunks };

  JsonExchange(std::unique_ptr<net::GrpcCall> call, Envelope envelope);

  net::Shard& shard() override { return call_->shard(); }
  // One message with the status; of a streaming method it is also the last.
  void Respond(net::HttpResponse response) override;
  void StartStream(net::HttpResponse) override {}
  // Whole server-sent events; each gives a message, [DONE] none.
  void Write(std::string_view events) override;
  // An empty message that says so.
  void End() override;
  size_t unsent_bytes() const override { return call_->unsent_bytes(); }
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) override {
    call_->CallWhenBelow(bytes, std::move(call));
  }
  void NoteAbort() override { aborted_ = true; }
  void Cut() override;

 private:
  std::unique_ptr<net::GrpcCall> call_;
  const Envelope envelope_;
  bool aborted_ = false;
  std::string message_;  // kept for its capacity
};

}  // namespace portico::api::rpc
