#include "router/index/worker_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "router/index/block_hash.h"
#include "router/index/text_links.h"

namespace portico::router {
namespace {

std::vector<TokenId> Tokens(size_t size) {
  std::vector<TokenId> tokens(size);
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

// Blocks of `size` tokens, named from `name` on.
KvEvent Stored(std::span<const TokenId> tokens, size_t size, int64_t name,
               std::optional<int64_t> parent = std::nullopt) {
  KvEvent event;
  event.kind = KvEvent::Kind::kStored;
  event.parent = parent;
  for (size_t at = 0; at < tokens.size(); at += size) {
    const auto some = tokens.subspan(at, std::min(size, tokens.size() - at));
    event.blocks.push_back({.hash = name++, .tokens = {some.begin(), some.end()}, .lora_id = {}});
  }
  return event;
}

KvEvent Removed(std::vector<int64_t> names) {
  KvEvent event;
  event.kind = KvEvent::Kind::kRemoved;
  event.removed = std::move(names);
  return event;
}

std::vector<uint64_t> Chain(std::span<const TokenId> tokens) {
  std::vector<uint64_t> chain;
  HashTokenBlocks(tokens, kNoModelSalt, &chain);
  return chain;
}

TEST(WorkerBlocksTest, BlocksOfAnySizeMakeTheChainOfTheIndex) {
  const std::vector<TokenId> tokens = Tokens(130);
  for (const size_t size : {1, 2, 5, 8, 16, 24, 64, 200}) {
    WorkerBlocks blocks;
    std::vector<uint64_t> added, removed;
    // In two events, the second of which begins anywhere.
    const size_t cut = 37 / size * size;
    blocks.Apply(Stored(std::span(tokens).first(cut), size, 1), -1, &added, &removed);
    const auto parent = static_cast<int64_t>(cut / size);
    blocks.Apply(Stored(std::span(tokens).subspan(cut), size, 1000,
                        cut == 0 ? std::nullopt : std::optional(parent)),
                 -1, &added, &removed);
    EXPECT_EQ(added, Chain(tokens)) << size;
    EXPECT_TRUE(removed.empty());
  }
}

TEST(WorkerBlocksTest, WhatIsRemovedIsTheIndexsBlocksThatEndThere) {
  const std::vector<TokenId> tokens = Tokens(64);
  const std::vector<uint64_t> chain = Chain(tokens);
  WorkerBlocks ones;
  std::vector<uint64_t> added, removed;
  ones.Apply(Stored(tokens, 1, 1), -1, &added, &removed);
  ones.Apply(Removed({64, 63, 62}), -1, &added, &removed);
  EXPECT_EQ(removed, (std::vector<uint64_t>{chain[3]}));
  // Another end of the same prefix.
  added.clear();
  ones.Apply(Stored(std::vector<TokenId>(40, 7), 1, 100, 20), -1, &added, &removed);
  std::vector<TokenId> other(tokens.begin(), tokens.begin() + 20);
  other.insert(other.end(), 40, 7);
  const std::vector<uint64_t> others = Chain(other);
  EXPECT_EQ(added, std::vector<uint64_t>(others.begin() + 1, others.end()));

  WorkerBlocks large;
  removed.clear();
  large.Apply(Stored(tokens, 64, 1), -1, &added, &removed);
  large.Apply(Removed({1, 2}), -1, &added, &removed);
  EXPECT_EQ(removed, chain);
  EXPECT_EQ(large.size(), 0u);
}

TEST(WorkerBlocksTest, ABlockOnTwoLevelsIsThereUntilBothHaveLetItGo) {
  const std::vector<TokenId> tokens = Tokens(16);
  WorkerBlocks blocks;
  std::vector<uint64_t> added, removed;
  KvEvent event = Stored(tokens, 16, 1);
  event.level = 0;
  blocks.Apply(event, 0, &added, &removed);
  event.level = 1;
  blocks.Apply(event, 0, &added, &removed);
  KvEvent gone = Removed({1});
  gone.level = 0;
  blocks.Apply(gone, 0, &added, &removed);
  EXPECT_TRUE(removed.empty());
  gone.level = 1;
  blocks.Apply(gone, 0, &added, &removed);
  EXPECT_EQ(removed, Chain(tokens));
}

TEST(WorkerBlocksTest, BlocksOfAnUnknownParentOrAnAdapterAreLeftOut) {
  const std::vector<TokenId> tokens = Tokens(32);
  WorkerBlocks blocks;
  std::vector<uint64_t> added, removed;
  blocks.Apply(Stored(tokens, 16, 1, 99), -1, &added, &removed);
  KvEvent adapted = Stored(tokens, 16, 1);
  for (KvBlock& block : adapted.blocks) block.lora_id = 3;
  blocks.Apply(adapted, -1, &added, &removed);
  EXPECT_TRUE(added.empty());
  EXPECT_EQ(blocks.size(), 0u);
}

TEST(WorkerBlocksTest, ARankThatIsClearedLeavesTheOthers) {
  const std::vector<TokenId> tokens = Tokens(32);
  WorkerBlocks blocks;
  std::vector<uint64_t> added, removed;
  blocks.Apply(Stored(std::span(tokens).first(16), 16, 1), 0, &added, &removed);
  blocks.Apply(Stored(std::span(tokens).last(16), 16, 1), 1, &added, &removed);
  EXPECT_EQ(blocks.size(), 2u);
  blocks.Apply({}, 1, &added, &removed);
  EXPECT_EQ(removed, Chain(std::span(tokens).last(16)));
  EXPECT_EQ(blocks.size(), 1u);
  blocks.Apply({}, -1, &added, &removed);
  EXPECT_EQ(blocks.size(), 0u);
}

TEST(TextLinksTest, TheLastTextsOfABlockAreKept) {
  TextLinks links(1 << 16);
  for (uint64_t text = 1; text <= 5; ++text) links.Link(1 << 20, text);
  links.Link(1 << 20, 4);
  EXPECT_EQ(links.Of(1 << 20), (std::array<uint64_t, 3>{3, 4, 5}));
  EXPECT_EQ(links.Of(2 << 20), (std::array<uint64_t, 3>{}));
  EXPECT_LE(links.bytes(), size_t{1} << 16);
}

}  // namespace
}  // namespace portico::router
