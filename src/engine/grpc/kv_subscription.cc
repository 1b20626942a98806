#include "engine/grpc/kv_subscription.h"

#include <algorithm>
#include <utility>

#include "message/protobuf.h"
#include "smg/grpc/common/common.pb.h"

namespace portico {
namespace {

namespace pb = ::smg::grpc::common;

constexpr Duration kLook = std::chrono::seconds(1);
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kMaxPause = std::chrono::seconds(2);
// A server that publishes no events may be started anew with them.
constexpr Duration kPauseOfRefusal = std::chrono::seconds(30);

void ReadStored(const pb::KvBlocksStored& from, KvEvent* to) {
  to->kind = KvEvent::Kind::kStored;
  if (from.has_parent_block_hash()) to->parent = from.parent_block_hash();
  to->blocks.reserve(static_cast<size_t>(from.blocks_size()));
  for (const pb::KvBlock& block : from.blocks()) {
    KvBlock& made = to->blocks.emplace_back();
    made.hash = block.block_hash();
    made.tokens.assign(block.token_ids().begin(), block.token_ids().end());
    if (block.has_lora_id()) made.lora_id = block.lora_id();
    if (block.has_cache_level()) to->level = block.cache_level();
  }
}

KvEventBatch ReadBatch(const pb::KvEventBatch& from) {
  KvEventBatch batch;
  batch.sequence = from.sequence_number();
  batch.timestamp = from.timestamp();
  if (from.has_dp_rank()) batch.rank = from.dp_rank();
  if (from.has_snapshot()) {
    batch.chunk = from.snapshot().index();
    batch.chunks = from.snapshot().count();
  }
  for (const pb::KvCacheEvent& event : from.events()) {
    KvEvent made;
    if (event.has_stored()) {
      ReadStored(event.stored(), &made);
    } else if (event.has_removed()) {
      made.kind = KvEvent::Kind::kRemoved;
      made.removed.assign(event.removed().block_hashes().begin(),
                          event.removed().block_hashes().end());
      if (event.removed().has_cache_level()) made.level = event.removed().cache_level();
    } else if (!event.has_cleared()) {
      continue;  // of a later version of the protocol
    }
    batch.events.push_back(std::move(made));
  }
  return batch;
}

}  // namespace

KvSubscription::KvSubscription(net::Shard& shard, net::GrpcChannel& channel,
                               net::GrpcCallOptions options, KvListener listener)
    : shard_(shard),
      channel_(channel),
      options_(std::move(options)),
      listener_(std::move(listener)) {
  Look();
}

KvSubscription::~KvSubscription() = default;

void KvSubscription::Look() {
  look_ = shard_.After(kLook, [this] { Look(); });
  Follow(listener_(nullptr, false));
}

void KvSubscription::Follow(KvWish wish) {
  if (wish == KvWish::kNothing) {
    call_.reset();
    later_.reset();
    reset_due_ = true;
    return;
  }
  const bool idle = call_ == nullptr && later_ == nullptr;
  if (idle) return Subscribe(0);
  // Once it is asked for, the state is on its way.
  if (wish == KvWish::kState && call_ != nullptr && !reset_due_) SubscribeLater(kFirstPause);
}

void KvSubscription::Subscribe(uint64_t from) {
  later_.reset();
  asked_ = from;
  if (from == 0) {
    reset_due_ = true;
    last_ = 0;
  }
  pb::SubscribeKvEventsRequest request;
  request.set_start_sequence_number(from);
  call_ = channel_.Start(options_, *this);
  call_->Write(request.SerializeAsString());
  call_->End();
}

void KvSubscription::SubscribeLater(Duration pause) {
  call_.reset();
  reset_due_ = true;
  later_ = shard_.After(pause, [this] { Subscribe(0); });
}

void KvSubscription::OnHead(net::Headers) {
  pause_ = Duration::zero();
  if (asked_ != 0 || !std::exchange(reset_due_, false)) return;
  const KvEventBatch nothing;
  Follow(listener_(&nothing, true));
}

void KvSubscription::OnMessage(std::string_view message) {
  pb::KvEventBatch parsed;
  if (!ParseProtobuf(message, &parsed).ok()) return SubscribeLater(kMaxPause);
  const KvEventBatch batch = ReadBatch(parsed);
  const uint64_t number = batch.sequence;
  if (asked_ != 0) {
    // What was missing, or it cannot be had.
    if (number != asked_) return SubscribeLater(kFirstPause);
    asked_ = 0;
    last_ = number - 1;
  } else if (batch.chunks > 0) {
    // The state, whatever was before.
  } else if (last_ != 0 && number < last_) {
    return SubscribeLater(kFirstPause);  // another process, that counts anew
  } else if (last_ != 0 && number > last_ + 1) {
    return Subscribe(last_ + 1);
  }
  last_ = number;
  Follow(listener_(&batch, batch.chunks > 0 && batch.chunk == 0));
}

void KvSubscription::OnEnd(Status status, net::Headers) {
  const bool refused = status.code() == StatusCode::kUnimplemented ||
                       status.code() == StatusCode::kFailedPrecondition;
  pause_ = std::clamp(pause_ * 2, kFirstPause, kMaxPause);
  SubscribeLater(refused ? kPauseOfRefusal : pause_);
}

}  // namespace portico
