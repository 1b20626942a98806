// What a GrpcEngine asks a worker beside streams: health, facts, loads, controls, its tokenizer, vectors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "engine/grpc/grpc_lane.h"

namespace portico {
namespace {

// A vector counts as made for length 1 if it is this near.
constexpr double kUnitLength = 1e-3;

bool HasUnitLength(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::abs(std::sqrt(sum) - 1) < kUnitLength;
}

}  // namespace

struct GrpcEngine::FactsVisit {
  const TokenWire& wire;
  Duration timeout;
  absl::AnyInvocable<void(StatusOr<TokenWorkerFacts>)> done;
  TokenWorkerFacts facts = {};
};

void GrpcEngine::Ask(const TokenWire& wire, std::string_view method, std::string request,
                     Duration timeout, absl::AnyInvocable<void(StatusOr<std::string>)> done,
                     bool streams) {
  net::Shard& shard = *options_.shards.front();
  shard.Post([this, &shard, path = fmt::format("/{}/{}", wire.service(), method),
              request = std::move(request), timeout, done = std::move(done), streams]() mutable {
    if (stopped_.load(std::memory_order_acquire)) {
      return done(Error(StatusCode::kUnavailable, "the engine has stopped"));
    }
    LaneOf(shard).unary.Start(std::move(path), Metadata(), request, timeout, std::move(done),
                              streams);
  });
}

void GrpcEngine::AskHealth(size_t first, size_t tried, Duration timeout, HealthDone done) {
  constexpr size_t kCount = std::size(kTokenProtocols);
  if (tried == kCount) {
    return done(Error(StatusCode::kFailedPrecondition,
                      "it speaks none of the protocols of workers that take tokens"));
  }
  const size_t asked = (first + tried) % kCount;
  const TokenWire& wire = WireOf(kTokenProtocols[asked]);
  Ask(wire, "HealthCheck", "", timeout,
      [this, &wire, first, tried, asked, timeout,
       done = std::move(done)](StatusOr<std::string> bytes) mutable {
        if (bytes.status().code() == StatusCode::kUnimplemented) {
          return AskHealth(first, tried + 1, timeout, std::move(done));
        }
        if (!bytes.ok()) return done(bytes.status());
        spoken_.store(asked, std::memory_order_relaxed);
        done(wire.DecodeHealth(*bytes));
      });
}

void GrpcEngine::CheckHealth(Duration timeout, absl::AnyInvocable<void(Status)> done) {
  AskHealth(spoken_.load(std::memory_order_relaxed), 0, timeout, std::move(done));
}

void GrpcEngine::FetchFacts(Duration timeout,
                            absl::AnyInvocable<void(StatusOr<TokenWorkerFacts>)> done) {
  auto visit = std::make_shared<FactsVisit>(FactsVisit{this->wire(), timeout, std::move(done)});
  const TokenWire& wire = visit->wire;
  Ask(wire, "GetModelInfo", "", timeout,
      [this, visit = std::move(visit)](const StatusOr<std::string>& bytes) mutable {
        if (!bytes.ok()) return visit->done(bytes.status());
        auto facts = visit->wire.DecodeModelInfo(*bytes);
        if (!facts.ok()) return visit->done(facts.status());
        visit->facts = *std::move(facts);
        AskServerInfo(std::move(visit));
      });
}

void GrpcEngine::AskServerInfo(std::shared_ptr<FactsVisit> visit) {
  const TokenWire& wire = visit->wire;
  const Duration timeout = visit->timeout;
  Ask(wire, "GetServerInfo", "", timeout,
      [this, visit = std::move(visit)](const StatusOr<std::string>& bytes) mutable {
        if (!bytes.ok()) return visit->done(bytes.status());
        Status status = visit->wire.DecodeServerInfo(*bytes, &visit->facts);
        if (!status.ok()) return visit->done(std::move(status));
        if (!visit->wire.models_method().empty()) return AskModels(std::move(visit));
        AskVector(std::move(visit));
      });
}

void GrpcEngine::AskModels(std::shared_ptr<FactsVisit> visit) {
  const TokenWire& wire = visit->wire;
  const Duration timeout = visit->timeout;
  Ask(wire, wire.models_method(), "", timeout,
      [this, visit = std::move(visit)](const StatusOr<std::string>& bytes) mutable {
        if (!bytes.ok()) return visit->done(bytes.status());
        Status status = visit->wire.DecodeModels(*bytes, &visit->facts);
        if (!status.ok()) return visit->done(std::move(status));
        AskVector(std::move(visit));
      });
}

void GrpcEngine::AskVector(std::shared_ptr<FactsVisit> visit) {
  EngineInfo& info = visit->facts.info;
  if (Status status = CheckFacts(visit->facts); !status.ok()) return visit->done(std::move(status));
  if (info.task != ModelTask::kEmbed) return visit->done(std::move(visit->facts));
  PoolingRequest request;
  request.tokens = std::make_shared<const std::vector<TokenId>>(1, TokenId{0});
  auto call = visit->wire.EncodePooling(request, info.task, instance_ + "-probe");
  if (!call.ok()) return visit->done(call.status());
  const TokenWire& wire = visit->wire;
  const Duration timeout = visit->timeout;
  Ask(wire, call->method, std::move(call->request), timeout,
      [visit = std::move(visit)](const StatusOr<std::string>& bytes) mutable {
        if (!bytes.ok()) return visit->done(bytes.status());
        const auto output = visit->wire.DecodePooling(*bytes);
        if (!output.ok()) return visit->done(output.status());
        visit->facts.info.embedding_size = static_cast<int32_t>(output->values.size());
        visit->facts.info.normalized = HasUnitLength(output->values);
        visit->done(std::move(visit->facts));
      });
}

void GrpcEngine::FetchLoad(Duration timeout,
                           absl::AnyInvocable<void(StatusOr<TokenWorkerLoad>)> done) {
  const TokenWire& wire = this->wire();
  Ask(wire, wire.loads_method(), "", timeout,
      [&wire, rank = options_.data_parallel_rank,
       done = std::move(done)](const StatusOr<std::string>& bytes) mutable {
        done(bytes.ok() ? wire.DecodeLoads(*bytes, rank) : bytes.status());
      });
}

void GrpcEngine::FetchPaused(Duration timeout, absl::AnyInvocable<void(StatusOr<bool>)> done) {
  const TokenWire& wire = this->wire();
  const std::string_view method = wire.state_method();
  if (method.empty()) {
    return done(Error(StatusCode::kUnimplemented, "the protocol has no state of the engine"));
  }
  Ask(
      wire, method, "", timeout,
      [&wire, done = std::move(done)](const StatusOr<std::string>& bytes) mutable {
        done(bytes.ok() ? wire.DecodePaused(*bytes) : bytes.status());
      },
      true);
}

void GrpcEngine::FetchTokenizer(Duration timeout,
                                absl::AnyInvocable<void(StatusOr<std::string>)> done) {
  net::Shard& shard = *options_.shards.front();
  shard.Post([this, &shard, timeout, done = std::move(done)]() mutable {
    if (stopped_.load(std::memory_order_acquire)) {
      return done(Error(StatusCode::kUnavailable, "the engine has stopped"));
    }
    Lane& lane = LaneOf(shard);
    lane.fetches.push_front(nullptr);
    const auto place = lane.fetches.begin();
    *place = std::make_unique<TokenizerFetch>(
        [&lane, place, done = std::move(done)](StatusOr<std::string> archive) mutable {
          auto owned = std::move(*place);
          auto tell = std::move(done);
          lane.fetches.erase(place);
          lane.shard.AtEndOfTurn([gone = std::move(owned)] {});
          tell(std::move(archive));
        });
    (*place)->Start(lane.channel, {.path = fmt::format("/{}/GetTokenizer", wire().service()),
                                   .metadata = Metadata(),
                                   .timeout = timeout});
  });
}

void GrpcEngine::FollowKvEvents(KvListener listener) {
  net::Shard& shard = *options_.shards.front();
  shard.Post([this, &shard, listener = std::move(listener)]() mutable {
    if (stopped_.load(std::memory_order_acquire)) return;
    Lane& lane = LaneOf(shard);
    lane.kv_events = std::make_unique<KvSubscription>(
        shard, lane.channel,
        net::GrpcCallOptions{.path = fmt::format("/{}/SubscribeKvEvents", wire().service()),
                             .metadata = Metadata()},
        std::move(listener));
  });
}

void GrpcEngine::Control(EngineControl control, TimePoint deadline, ControlDone done) {
  const TokenWire& wire = this->wire();
  auto call = wire.EncodeControl(control);
  if (!call.ok()) return done(call.status());
  const Duration timeout =
      std::max<Duration>(deadline - Clock::now(), std::chrono::milliseconds(1));
  Ask(wire, call->method, std::move(call->request), timeout,
      [&wire, control = std::move(control),
       done = std::move(done)](const StatusOr<std::string>& bytes) mutable {
        // What this version of the protocol has not.
        if (bytes.status().code() == StatusCode::kUnimplemented) {
          return done(CannotControl("of this model's workers", control));
        }
        done(bytes.ok() ? wire.DecodeControl(control, *bytes) : bytes.status());
      });
}

Status GrpcEngine::SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) {
  if (stopped_.load(std::memory_order_acquire)) {
    return Error(StatusCode::kUnavailable, "the engine has stopped");
  }
  if (info_.task == ModelTask::kGenerate) return Engine::SubmitPooling(std::move(requests), sink);
  const TokenWire& wire = this->wire();
  std::deque<GrpcPooling::Text> texts;
  for (PoolingRequest& request : requests) {
    if (options_.data_parallel_rank >= 0) request.data_parallel_rank = options_.data_parallel_rank;
    const std::string id = fmt::format(
        "{}-{}", request.rid.empty() ? std::string_view(instance_) : request.rid, request.stream);
    PORTICO_ASSIGN_OR_RETURN(TokenWireCall call, wire.EncodePooling(request, info_.task, id));
    texts.push_back({.stream = request.stream, .call = std::move(call)});
  }
  if (texts.empty()) return OkStatus();
  if (sink->shard() != kNoShard) {
    net::Shard& shard = *options_.shards[static_cast<size_t>(sink->shard())];
    BeginPooling(wire, std::move(texts), sink, shard);
    return OkStatus();
  }
  net::Shard& shard = *options_.shards.front();
  shard.Post([this, &wire, texts = std::move(texts), sink, &shard]() mutable {
    BeginPooling(wire, std::move(texts), sink, shard);
  });
  return OkStatus();
}

void GrpcEngine::BeginPooling(const TokenWire& wire, std::deque<GrpcPooling::Text> texts,
                              PoolingSink* sink, net::Shard& shard) {
  Lane& lane = LaneOf(shard);
  const auto count = static_cast<int64_t>(texts.size());
  running_.fetch_add(count, std::memory_order_relaxed);
  lane.poolings.push_front(nullptr);
  const auto place = lane.poolings.begin();
  GrpcPoolingOptions options;
  options.wire = &wire;
  options.sink = sink;
  options.metadata = Metadata();
  options.timeout = options_.request_timeout;
  options.embedding_size = info_.task == ModelTask::kEmbed ? info_.embedding_size : 0;
  options.on_lost = options_.on_lost;
  options.on_malformed = options_.on_malformed;
  *place = std::make_unique<GrpcPooling>(std::move(options), std::move(texts),
                                         [this, &lane, place, count] {
                                           running_.fetch_sub(count, std::memory_order_relaxed);
                                           lane.shard.AtEndOfTurn([gone = std::move(*place)] {});
                                           lane.poolings.erase(place);
                                         });
  (*place)->Start(lane.channel);
}

}  // namespace portico
