#include "api/grpc/scheduler/kv_events_rpc.h"

#include <deque>
#include <utility>

#include "engine/kv_events.h"
#include "smg/grpc/common/common.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::smg::grpc::common;

constexpr std::chrono::milliseconds kLook{200};
// A large state leaves as its reader takes it.
constexpr size_t kHighWater = 512 << 10;
constexpr size_t kLowWater = 256 << 10;
// Batches that wait for their reader; beyond them it is too slow.
constexpr size_t kMaxWaiting = 2 * KvEventHub::kMaxBatches;

void Fill(const KvEvent& from, uint64_t id, pb::KvCacheEvent* to) {
  to->set_event_id(id);
  switch (from.kind) {
    case KvEvent::Kind::kStored: {
      pb::KvBlocksStored& stored = *to->mutable_stored();
      if (from.parent) stored.set_parent_block_hash(*from.parent);
      for (const KvBlock& block : from.blocks) {
        pb::KvBlock& out = *stored.add_blocks();
        out.set_block_hash(block.hash);
        out.mutable_token_ids()->Add(block.tokens.begin(), block.tokens.end());
        out.set_block_size(static_cast<int32_t>(block.tokens.size()));
        if (block.lora_id) out.set_lora_id(*block.lora_id);
        if (from.level) out.set_cache_level(*from.level);
      }
      break;
    }
    case KvEvent::Kind::kRemoved: {
      pb::KvBlocksRemoved& removed = *to->mutable_removed();
      removed.mutable_block_hashes()->Add(from.removed.begin(), from.removed.end());
      if (from.level) removed.set_cache_level(*from.level);
      break;
    }
    case KvEvent::Kind::kCleared:
      to->mutable_cleared();
      break;
  }
}

std::string Serialize(const KvEventBatch& batch) {
  pb::KvEventBatch message;
  message.set_sequence_number(batch.sequence);
  message.set_timestamp(batch.timestamp);
  if (batch.rank >= 0) message.set_dp_rank(batch.rank);
  if (batch.chunks > 0) {
    pb::KvSnapshotChunk& chunk = *message.mutable_snapshot();
    chunk.set_index(batch.chunk);
    chunk.set_count(batch.chunks);
    chunk.set_blocks(batch.blocks);
  }
  uint64_t id = 0;
  for (const KvEvent& event : batch.events)
    Fill(event, batch.chunks > 0 ? 0 : id++, message.add_events());
  return message.SerializeAsString();
}

// One subscriber. The engine's thread posts batches to the shard, which finds the call by its number.
class KvEventsCall final : public Call {
 public:
  KvEventsCall(RpcContext& context, ShardContext& shard, CallPtr call, KvEventHub& hub)
      : context_(context), shard_(shard), call_(std::move(call)), hub_(hub) {
    call_->set_on_closed([this](const Status&) { shard_.calls.Remove(this); });
  }
  ~KvEventsCall() override {
    if (subscription_ > 0) hub_.Unsubscribe(subscription_);
  }

  void Abort() override {}

  // Once it is in the shard's table. It may be gone afterwards.
  void Start(uint64_t from) {
    const auto listener = [shard = &shard_, number = serial](const KvEventBatchPtr& batch) {
      shard->shard.Post([shard, number, batch] {
        if (Call* call = shard->calls.Find(number)) static_cast<KvEventsCall*>(call)->Send(batch);
      });
    };
    const StatusOr<uint64_t> subscription = hub_.Subscribe(from, listener);
    if (!subscription.ok()) return End(subscription.status());
    subscription_ = *subscription;
    call_->SendInitialMetadata();
    Look();
  }

 private:
  // It may be gone afterwards.
  void Send(const KvEventBatchPtr& batch) {
    if (waiting_.size() == kMaxWaiting) {
      return End(Error(StatusCode::kResourceExhausted, "the events are not read fast enough"));
    }
    waiting_.push_back(batch);
    if (!paused_) Pump();
  }

  void Pump() {
    paused_ = false;
    for (; !waiting_.empty(); waiting_.pop_front()) {
      if (call_->unsent_bytes() > kHighWater) {
        paused_ = true;
        return call_->CallWhenBelow(kLowWater, [this] { Pump(); });
      }
      call_->Write(Serialize(*waiting_.front()));
    }
  }

  // It would hold a drain up for ever.
  void Look() {
    if (context_.api.draining) {
      return End(Error(StatusCode::kUnavailable, "the server is shutting down"));
    }
    timer_ = shard_.shard.After(kLook, [this] { Look(); });
  }

  void End(const Status& why) {
    Refuse(*call_, why);
    shard_.calls.Remove(this);
  }

  RpcContext& context_;
  ShardContext& shard_;
  CallPtr call_;
  KvEventHub& hub_;
  uint64_t subscription_ = 0;
  std::deque<KvEventBatchPtr> waiting_;
  bool paused_ = false;  // until the client has read
  std::unique_ptr<net::Shard::Timer> timer_;
};

StatusOr<KvEventHub*> HubOf(const RpcContext& context) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  auto* source = dynamic_cast<KvEventSource*>(model->engine.get());
  KvEventHub* hub = source == nullptr ? nullptr : source->kv_events();
  if (hub != nullptr) return hub;
  return Error(StatusCode::kFailedPrecondition, "this engine publishes no KV cache events");
}

}  // namespace

void AddKvEventsRpc(RpcContext& context, const std::string& method) {
  context.methods.Add(method, [&context](CallPtr call, std::string bytes) {
    SmallArena memory;
    const auto request = memory.Parse<pb::SubscribeKvEventsRequest>(bytes);
    if (!request.ok()) return Refuse(*call, request.status());
    const StatusOr<KvEventHub*> hub = HubOf(context);
    if (!hub.ok()) return Refuse(*call, hub.status());
    ShardContext& shard = context.ShardOf(*call);
    auto made = std::make_unique<KvEventsCall>(context, shard, std::move(call), **hub);
    KvEventsCall& started = *made;
    shard.calls.Add(std::move(made));
    started.Start((*request)->start_sequence_number());
  });
}

}  // namespace portico::api::rpc
