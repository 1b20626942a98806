// What a GrpcEngine has on one shard.
#pragma once

#include <list>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/grpc/grpc_engine.h"
#include "engine/grpc/grpc_pooling.h"
#include "engine/grpc/grpc_stream.h"
#include "engine/grpc/tokenizer_fetch.h"
#include "engine/grpc/unary.h"

namespace portico {

struct GrpcEngine::Lane {
  Lane(net::Shard& at, const net::GrpcChannelOptions& options)
      : shard(at), channel(at, options), unary(channel) {}

  net::Shard& shard;
  net::GrpcChannel channel;
  UnaryCalls unary;
  std::list<std::unique_ptr<TokenizerFetch>> fetches;
  std::unique_ptr<KvSubscription> kv_events;
  absl::flat_hash_map<StreamId, std::unique_ptr<Stream>> streams;
  std::list<std::unique_ptr<GrpcPooling>> poolings;
};

// A GrpcStream that knows its place.
class GrpcEngine::Stream final : public GrpcStream {
 public:
  Stream(GrpcEngine& engine, Lane& lane, GrpcStreamOptions options)
      : GrpcStream(std::move(options)), engine_(engine), lane_(lane) {}

 private:
  void OnMalformed(std::string_view why) override {
    if (engine_.options_.on_malformed) engine_.options_.on_malformed(why);
  }
  void OnTerminal(const TokenUsage& usage, const Status& error) override {
    if (error.code() == StatusCode::kUnavailable && engine_.options_.on_lost) {
      engine_.options_.on_lost(reached());
    }
    engine_.running_.fetch_sub(1, std::memory_order_relaxed);
    engine_.prompt_tokens_.fetch_add(static_cast<uint64_t>(usage.prompt_tokens),
                                     std::memory_order_relaxed);
    engine_.cached_tokens_.fetch_add(static_cast<uint64_t>(usage.cached_tokens),
                                     std::memory_order_relaxed);
    engine_.generated_tokens_.fetch_add(static_cast<uint64_t>(usage.completion_tokens),
                                        std::memory_order_relaxed);
  }
  void OnOver() override { lane_.streams.erase(id()); }

  GrpcEngine& engine_;
  Lane& lane_;
};

}  // namespace portico
