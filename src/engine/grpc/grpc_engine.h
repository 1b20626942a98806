// A token worker as an engine: a server elsewhere that takes token ids and streams token ids over gRPC.
//
// Which protocol it speaks is found by CheckHealth(), which asks in the one that was spoken last and then in the
// others; until then it is the first of kTokenProtocols.
//
// Each shard has a channel of its own to the worker, so a request never changes its thread: Submit()
// starts a call on the shard of its sink, and what comes is delivered there without a post
// (TokenSink::DeliverHere). Each stream is one call; dropping the call is how a worker learns of an
// abort. A reader that falls behind is held back by its call's window, no other call is.
//
// Errors of a stream come in its terminal delta: UNAVAILABLE, the worker cannot be reached or was lost;
// DEADLINE_EXCEEDED, no first message in time, or the whole took too long; RESOURCE_EXHAUSTED, it is
// busy; INVALID_ARGUMENT with the worker's own words. None names the worker's address.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "engine/engine.h"
#include "engine/grpc/grpc_pooling.h"
#include "engine/grpc/kv_subscription.h"
#include "engine/grpc/token_wire.h"
#include "net/grpc/grpc_channel.h"
#include "net/loop/shard.h"

namespace portico {

struct GrpcEngineOptions {
  net::GrpcChannelOptions channel;
  std::string api_key;                                        // sent as a bearer's; empty: none
  std::function<std::string()> api_key_now;                   // for each call; null: always api_key
  Duration first_message_timeout = std::chrono::seconds(60);  // zero: none
  Duration request_timeout = std::chrono::seconds(1800);      // zero: none
  std::vector<net::Shard*> shards;                            // by index; outlive Stop()
  // The data-parallel rank of the worker to which all requests go; -1: it chooses.
  int32_t data_parallel_rank = -1;
  // The worker is half of a prefill/decode pair: a stream that it ends by itself with an abort has failed, as the
  // other half would wait for it in vain.
  bool half_of_pair = false;
  // A stream has ended with UNAVAILABLE; whether the worker may have seen its request. On any of the shards, as what
  // follows; null: nobody wants to know.
  std::function<void(bool reached)> on_lost;
  // The worker has sent what makes no sense, in place of tokens or of a vector.
  std::function<void(std::string_view why)> on_malformed;
};

class GrpcEngine final : public Engine {
 public:
  explicit GrpcEngine(GrpcEngineOptions options);
  ~GrpcEngine() override;

  // Before the first Submit(). info() is of no worker until then.
  void SetInfo(EngineInfo info) { info_ = std::move(info); }

  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override;
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override;
  void Abort(StreamId stream, ShardIndex shard) override;
  EngineLoad load() const override;
  void Control(EngineControl control, TimePoint deadline, ControlDone done) override;
  void Stop() override;

  const TokenWire& wire() const {
    return WireOf(kTokenProtocols[spoken_.load(std::memory_order_relaxed)]);
  }

  // Any thread; `done` is called on the first shard, unless Stop() comes first. Facts of a worker that gives vectors
  // come with their length, which is that of a vector it is asked for.
  void FetchFacts(Duration timeout, absl::AnyInvocable<void(StatusOr<TokenWorkerFacts>)> done);
  void FetchLoad(Duration timeout, absl::AnyInvocable<void(StatusOr<TokenWorkerLoad>)> done);
  // Whether the worker's engine is paused. UNIMPLEMENTED: it cannot say it.
  void FetchPaused(Duration timeout, absl::AnyInvocable<void(StatusOr<bool>)> done);
  void CheckHealth(Duration timeout, absl::AnyInvocable<void(Status)> done);
  // Follows what the worker's cache takes in and lets go, until Stop(). Once. `listener` is called on the first shard.
  void FollowKvEvents(KvListener listener);
  // The zip archive of the tokenizer's files, whose hash has been checked. FAILED_PRECONDITION and
  // UNIMPLEMENTED where the worker has none to give.
  void FetchTokenizer(Duration timeout, absl::AnyInvocable<void(StatusOr<std::string>)> done);

 private:
  class Stream;
  struct Lane;

  Lane& LaneOf(net::Shard& shard);
  struct FactsVisit;
  using HealthDone = absl::AnyInvocable<void(Status)>;

  void Begin(const TokenWire& wire, GenerateRequest request, std::string bytes, TokenSink* sink,
             net::Shard& shard);
  void BeginPooling(const TokenWire& wire, std::deque<GrpcPooling::Text> texts, PoolingSink* sink,
                    net::Shard& shard);
  net::Headers Metadata(const TraceContext& trace = {}) const;
  // Starts a unary call from any thread.
  void Ask(const TokenWire& wire, std::string_view method, std::string request, Duration timeout,
           absl::AnyInvocable<void(StatusOr<std::string>)> done, bool streams = false);
  // Asks in the protocol that is `tried` behind `first`.
  void AskHealth(size_t first, size_t tried, Duration timeout, HealthDone done);
  void AskServerInfo(std::shared_ptr<FactsVisit> visit);
  void AskModels(std::shared_ptr<FactsVisit> visit);
  void AskVector(std::shared_ptr<FactsVisit> visit);

  const GrpcEngineOptions options_;
  std::atomic<size_t> spoken_{0};  // its place in kTokenProtocols
  const std::string instance_;     // keeps request ids of several gateways apart
  EngineInfo info_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by shard; each its shard's own
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> running_{0};
  std::atomic<uint64_t> prompt_tokens_{0};
  std::atomic<uint64_t> cached_tokens_{0};
  std::atomic<uint64_t> generated_tokens_{0};
};

}  // namespace portico
