#include "engine/kv_events.h"

#include <gtest/gtest.h>

#include <optional>

namespace portico {
namespace {

KvEventBatch Cleared(size_t events = 1) {
  KvEventBatch batch;
  batch.events.resize(events);
  return batch;
}

TEST(KvEventHub, GivesWhatIsKeptAndWhatComesInItsOrder) {
  KvEventHub hub;
  hub.Publish(Cleared());
  hub.Publish(Cleared());
  std::vector<uint64_t> from_two;
  std::vector<uint64_t> from_now;
  ASSERT_TRUE(
      hub.Subscribe(2, [&](const KvEventBatchPtr& b) { from_two.push_back(b->sequence); }).ok());
  const auto now =
      hub.Subscribe(0, [&](const KvEventBatchPtr& b) { from_now.push_back(b->sequence); });
  hub.Publish(Cleared());
  hub.Unsubscribe(*now);
  hub.Publish(Cleared());
  EXPECT_EQ(from_two, (std::vector<uint64_t>{2, 3, 4}));
  EXPECT_EQ(from_now, (std::vector<uint64_t>{2, 3})) << "the state before is the second's";
  EXPECT_EQ(hub.Subscribe(6, [](const KvEventBatchPtr&) {}).status().code(),
            StatusCode::kOutOfRange);
}

KvEventBatch Stored(std::vector<int64_t> hashes, std::optional<int64_t> parent, int32_t rank = -1) {
  KvEventBatch batch;
  batch.rank = rank;
  KvEvent& event = batch.events.emplace_back();
  event.kind = KvEvent::Kind::kStored;
  event.parent = parent;
  for (const int64_t hash : hashes) {
    event.blocks.push_back({.hash = hash, .tokens = {1, 2}, .lora_id = {}});
  }
  return batch;
}

TEST(KvEventHub, TellsWhoComesLaterTheStateFirst) {
  KvEventHub hub;
  hub.Publish(Stored({1, 2, 3}, std::nullopt));
  hub.Publish(Stored({4}, 1));
  hub.Publish(Stored({1}, std::nullopt, 1));
  KvEventBatch removed;
  removed.events.emplace_back().kind = KvEvent::Kind::kRemoved;
  removed.events.back().removed = {3, 9};
  hub.Publish(removed);
  std::vector<KvEventBatchPtr> told;
  ASSERT_TRUE(hub.Subscribe(0, [&](const KvEventBatchPtr& batch) { told.push_back(batch); }).ok());
  ASSERT_EQ(told.size(), 2u);
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i]->sequence, 3 + i) << "they end where it was";
    EXPECT_EQ(told[i]->chunk, i);
    EXPECT_EQ(told[i]->chunks, 2u);
    EXPECT_EQ(told[i]->blocks, 4u);
  }
  ASSERT_EQ(told[0]->events.size(), 3u) << "two chains";
  EXPECT_EQ(told[0]->events[0].kind, KvEvent::Kind::kCleared);
  EXPECT_EQ(told[0]->events[1].blocks.size(), 2u);
  EXPECT_EQ(told[0]->events[2].parent, 1);
  EXPECT_EQ(told[1]->rank, 1);
}

TEST(KvEventHub, KeepsABoundedNumberAndSaysWhatIsGone) {
  KvEventHub hub;
  for (size_t i = 0; i < KvEventHub::kMaxBatches + 1; ++i) hub.Publish(Cleared());
  const auto ignore = [](const KvEventBatchPtr&) {};
  EXPECT_EQ(hub.Subscribe(1, ignore).status().code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(hub.Subscribe(2, ignore).ok());
  hub.Publish(Cleared(KvEventHub::kMaxEvents + 1));
  EXPECT_EQ(hub.Subscribe(2, ignore).status().code(), StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace portico
