// One stream of tokens from a worker: a gRPC call whose messages become TokenDeltas. On its shard.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/grpc/token_wire.h"
#include "net/grpc/grpc_channel.h"
#include "net/loop/shard.h"

namespace portico {

// A worker's failure in words that a client may see. Words of a worker that refuses are passed on;
// those of a lost connection name an address.
Status WorkerErrorForClient(const Status& status);

struct GrpcStreamOptions {
  const TokenWire* wire = nullptr;
  TokenSink* sink = nullptr;
  StreamId id = 0;
  int32_t prompt_tokens = 0;
  int32_t prompt_logprobs_start = -1;
  // Tokens that may end the answer. One at the end of a chunk waits for what comes after it: whether it
  // is an end is said with the last message, and its text must not have left by then.
  std::vector<TokenId> stop_tokens;
  int32_t max_new_tokens = 0;  // what a worker sends beyond it is cut off; 0: not known
  int32_t vocab_size = 0;      // ids at or above it end the stream with INTERNAL; 0: not known
  // An abort that was not asked for ends the stream with INTERNAL.
  bool abort_fails = false;
};

class GrpcStream : public net::GrpcCallEvents {
 public:
  explicit GrpcStream(GrpcStreamOptions options);

  StreamId id() const { return options_.id; }
  // The worker may have seen the request.
  bool reached() const { return call_ != nullptr && call_->begun(); }
  void Start(net::GrpcChannel& channel, net::Shard& shard, net::GrpcCallOptions call,
             std::string_view request, Duration first_message_timeout);
  // The terminal delta follows, not from within this call.
  void Abort();
  // Delivers the terminal delta, unless it has been, and lets the call go.
  void EndNow(FinishReason finish, Status error);

 private:
  // A message of the worker makes no sense; the terminal delta follows.
  virtual void OnMalformed(std::string_view why) = 0;
  // The terminal delta is about to be delivered.
  virtual void OnTerminal(const TokenUsage& usage, const Status& error) = 0;
  // The call has ended too. Destroys this.
  virtual void OnOver() = 0;

  void OnMessage(std::string_view message) override;
  void OnEnd(Status status, net::Headers trailers) override;
  void HoldStopToken(TokenDelta* delta);
  void TakeHeld(TokenDelta* delta);
  bool StopsAt(TokenId token) const;
  bool InVocabulary(const TokenDelta& delta) const;
  // Ends the answer where it would be longer than what was asked for.
  void CutAtMaximum(TokenDelta* delta);
  void Deliver(TokenDelta delta);
  void OnSilence();

  const GrpcStreamOptions options_;
  StreamProgress progress_;
  TokenUsage usage_;
  std::unique_ptr<net::GrpcClientCall> call_;
  std::unique_ptr<net::Shard::Timer> silence_;
  size_t tokens_ = 0;  // come so far
  TokenDelta held_;    // a stop token with its log-probabilities, or nothing
  bool aborted_ = false;
  bool timed_out_ = false;
  bool terminal_ = false;  // has been delivered
};

}  // namespace portico
