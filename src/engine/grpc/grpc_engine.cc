#include "engine/grpc/grpc_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <latch>
#include <random>
#include <utility>

#include "engine/grpc/grpc_lane.h"

namespace portico {
namespace {

std::string RandomInstance() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

GrpcEngine::GrpcEngine(GrpcEngineOptions options)
    : options_(std::move(options)), instance_(RandomInstance()) {
  info_.name = "grpc";
  lanes_.resize(options_.shards.size());
}

GrpcEngine::~GrpcEngine() { Stop(); }

GrpcEngine::Lane& GrpcEngine::LaneOf(net::Shard& shard) {
  std::unique_ptr<Lane>& lane = lanes_[static_cast<size_t>(shard.index())];
  if (lane == nullptr) lane = std::make_unique<Lane>(shard, options_.channel);
  return *lane;
}

net::Headers GrpcEngine::Metadata(const TraceContext& trace) const {
  net::Headers metadata;
  const std::string key = options_.api_key_now ? options_.api_key_now() : options_.api_key;
  if (!key.empty()) metadata.emplace_back("authorization", "Bearer " + key);
  if (trace.valid()) metadata.emplace_back("traceparent", FormatTraceparent(trace));
  return metadata;
}

Status GrpcEngine::Submit(GenerateRequest request, TokenSink* sink) {
  if (stopped_.load(std::memory_order_acquire)) {
    return Error(StatusCode::kUnavailable, "the engine has stopped");
  }
  const std::string request_id = fmt::format(
      "{}-{}", request.rid.empty() ? std::string_view(instance_) : request.rid, request.stream);
  if (options_.data_parallel_rank >= 0) {
    auto extras = request.extras == nullptr ? std::make_shared<RequestExtras>()
                                            : std::make_shared<RequestExtras>(*request.extras);
    extras->data_parallel_rank = options_.data_parallel_rank;
    request.extras = std::move(extras);
  }
  const TokenWire& wire = this->wire();
  std::string bytes;
  PORTICO_RETURN_IF_ERROR(wire.EncodeGenerate(request, request_id, &bytes));
  running_.fetch_add(1, std::memory_order_relaxed);
  if (sink->shard() != kNoShard) {
    net::Shard& shard = *options_.shards[static_cast<size_t>(sink->shard())];
    Begin(wire, std::move(request), std::move(bytes), sink, shard);
    return OkStatus();
  }
  net::Shard& shard = *options_.shards.front();
  shard.Post(
      [this, &wire, request = std::move(request), bytes = std::move(bytes), sink,
       &shard]() mutable { Begin(wire, std::move(request), std::move(bytes), sink, shard); });
  return OkStatus();
}

void GrpcEngine::Begin(const TokenWire& wire, GenerateRequest request, std::string bytes,
                       TokenSink* sink, net::Shard& shard) {
  Lane& lane = LaneOf(shard);
  const StreamId id = request.stream;
  GrpcStreamOptions stream;
  stream.wire = &wire;
  stream.sink = sink;
  stream.id = id;
  stream.prompt_tokens = static_cast<int32_t>(request.prompt->size());
  stream.prompt_logprobs_start = request.prompt_logprobs_start;
  stream.stop_tokens = request.sampling->stop_token_ids;
  if (!request.sampling->ignore_eos) {
    stream.stop_tokens.insert(stream.stop_tokens.end(), info_.eos_token_ids.begin(),
                              info_.eos_token_ids.end());
  }
  stream.max_new_tokens = request.max_new_tokens;
  stream.vocab_size = info_.vocab_size;
  stream.abort_fails = options_.half_of_pair;
  auto& made = lane.streams[id];
  made = std::make_unique<Stream>(*this, lane, std::move(stream));
  made->Start(lane.channel, shard,
              {.path = fmt::format("/{}/Generate", wire.service()),
               .metadata = Metadata(request.trace),
               .timeout = options_.request_timeout},
              bytes, options_.first_message_timeout);
}

void GrpcEngine::Abort(StreamId stream, ShardIndex shard) {
  auto abort = [this, stream](size_t index) {
    Lane* lane = lanes_[index].get();
    if (lane == nullptr) return;
    const auto found = lane->streams.find(stream);
    if (found != lane->streams.end()) return found->second->Abort();
    for (const auto& pooling : lane->poolings) {
      if (pooling->Abort(stream)) return;
    }
  };
  if (shard != kNoShard) return abort(static_cast<size_t>(shard));
  if (stopped_.load(std::memory_order_acquire)) return;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    options_.shards[i]->Post([abort, i] { abort(i); });
  }
}

EngineLoad GrpcEngine::load() const {
  EngineLoad load;
  load.running = running_.load(std::memory_order_relaxed);
  load.kv_cells_total = info_.max_total_tokens;
  load.prompt_tokens = prompt_tokens_.load(std::memory_order_relaxed);
  load.cached_tokens = cached_tokens_.load(std::memory_order_relaxed);
  load.generated_tokens = generated_tokens_.load(std::memory_order_relaxed);
  load.healthy = !stopped_.load(std::memory_order_relaxed);
  return load;
}

void GrpcEngine::Stop() {
  if (stopped_.exchange(true)) return;
  std::latch done(static_cast<std::ptrdiff_t>(lanes_.size()));
  for (size_t i = 0; i < lanes_.size(); ++i) {
    options_.shards[i]->Post([this, i, &done] {
      if (Lane* lane = lanes_[i].get()) {
        // A sink may abort streams when it is told of an end, but adds none.
        while (!lane->streams.empty()) {
          std::unique_ptr<Stream> stream = std::move(lane->streams.begin()->second);
          lane->streams.erase(lane->streams.begin());
          stream->EndNow(FinishReason::kAbort, OkStatus());
        }
        while (!lane->poolings.empty()) {
          const std::unique_ptr<GrpcPooling> pooling = std::move(lane->poolings.front());
          lane->poolings.pop_front();
          pooling->EndNow();
        }
        lanes_[i].reset();
      }
      done.count_down();
    });
  }
  done.wait();
}

}  // namespace portico
