#include "router/index/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "router/index/block_hash.h"

namespace portico::router {
namespace {

std::vector<uint64_t> Chain(uint64_t prompt, size_t blocks) {
  std::vector<uint64_t> chain;
  uint64_t before = 7;
  for (size_t i = 0; i < blocks; ++i) {
    before = ChainHash(before, prompt * 1000003 + i);
    chain.push_back(before);
  }
  return chain;
}

int32_t Depth(const PrefixIndex& index, PrefixIndex::Place worker,
              const std::vector<uint64_t>& chain) {
  std::vector<int32_t> depths;
  index.Match(chain, &depths);
  return depths[worker];
}

TEST(PrefixIndexTest, MatchesTheLeadingBlocksOfEachWorker) {
  PrefixIndex index(1 << 20);
  const auto a = index.AddWorker(0);
  const auto b = index.AddWorker(0);
  std::vector<uint64_t> chain = Chain(1, 10);
  index.Insert(a, std::span(chain).first(4));
  index.Insert(b, chain);
  EXPECT_EQ(Depth(index, a, chain), 4);
  EXPECT_EQ(Depth(index, b, chain), 10);
  EXPECT_EQ(Depth(index, b, Chain(2, 10)), 0);
}

TEST(PrefixIndexTest, ForgetsWhatAWorkersCacheHasNoRoomFor) {
  PrefixIndex index(1 << 20);
  const auto a = index.AddWorker(10);
  index.Insert(a, Chain(1, 6));
  index.Insert(a, Chain(2, 6));
  EXPECT_EQ(index.blocks_of(a), 10);
  EXPECT_EQ(Depth(index, a, Chain(2, 6)), 6);
  EXPECT_EQ(Depth(index, a, Chain(1, 6)), 4) << "leaves go before what they hang on";
  index.Insert(a, Chain(3, 50));
  EXPECT_EQ(Depth(index, a, Chain(3, 50)), 10);
}

TEST(PrefixIndexTest, ARemovedWorkerIsGoneAtOnceAndItsPlaceIsCleanWhenUsedAgain) {
  PrefixIndex index(1 << 20);
  const auto a = index.AddWorker(0);
  const auto b = index.AddWorker(0);
  index.Insert(a, Chain(1, 100));
  index.Insert(b, Chain(1, 50));
  index.RemoveWorker(a);
  EXPECT_EQ(Depth(index, a, Chain(1, 100)), 0);
  EXPECT_EQ(Depth(index, b, Chain(1, 100)), 50);
  for (uint64_t i = 2; i < 100; ++i) {
    const auto next = index.AddWorker(0);
    EXPECT_EQ(Depth(index, next, Chain(1, 100)), 0);
    index.Insert(b, Chain(i, 5));
    index.RemoveWorker(next);
  }
  EXPECT_EQ(index.pairs(), 50u + 98 * 5) << "the removed worker's memory was taken back";
}

TEST(PrefixIndexTest, HoldsMoreThan64Workers) {
  PrefixIndex index(1 << 22);
  std::vector<PrefixIndex::Place> workers;
  for (int i = 0; i < 200; ++i) workers.push_back(index.AddWorker(0));
  const auto chain = Chain(1, 20);
  for (size_t i = 0; i < 200; ++i) index.Insert(workers[i], std::span(chain).first(i / 10));
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(Depth(index, workers[i], chain), static_cast<int32_t>(i / 10));
  }
}

TEST(PrefixIndexTest, StaysWithinItsBytes) {
  constexpr size_t kBytes = 4 << 20;
  PrefixIndex index(kBytes);
  std::vector<PrefixIndex::Place> workers;
  for (int i = 0; i < 8; ++i) workers.push_back(index.AddWorker(0));
  for (uint64_t i = 0; i < 20000; ++i) {
    index.Insert(workers[i % 8], Chain(i, 20));
    ASSERT_LE(index.bytes(), kBytes);
  }
  EXPECT_GT(index.pairs(), index.max_pairs() / 2);
  EXPECT_EQ(Depth(index, workers[19999 % 8], Chain(19999, 20)), 20) << "the latest is kept";
}

// Against a model that is plainly right: sets of blocks by worker.
TEST(PrefixIndexTest, AgreesWithPlainSetsUnderRandomUse) {
  std::mt19937_64 random(3);
  PrefixIndex index(16 << 20);
  std::map<PrefixIndex::Place, std::set<uint64_t>> model;
  for (int i = 0; i < 5; ++i) model[index.AddWorker(0)];
  for (int step = 0; step < 5000; ++step) {
    auto it = std::next(model.begin(), static_cast<ptrdiff_t>(random() % model.size()));
    const uint64_t prompt = random() % 40;
    const auto full = Chain(prompt, 40);
    const auto chain = Chain(prompt, 1 + random() % 30);
    switch (random() % 12) {
      case 0:
        index.RemoveWorker(it->first);
        model.erase(it);
        model[index.AddWorker(0)];
        break;
      case 1:
        // As engines do: what hangs on it goes first.
        for (const uint64_t block : std::span(full).subspan(chain.size() - 1)) {
          index.Remove(it->first, block);
          it->second.erase(block);
        }
        break;
      default:
        index.Insert(it->first, chain);
        it->second.insert(chain.begin(), chain.end());
    }
    const auto probe = Chain(random() % 40, 30);
    std::vector<int32_t> depths;
    index.Match(probe, &depths);
    for (const auto& [worker, blocks] : model) {
      int32_t depth = 0;
      while (depth < 30 && blocks.contains(probe[static_cast<size_t>(depth)])) ++depth;
      ASSERT_EQ(depths[worker], depth) << "step " << step;
    }
  }
}

TEST(BlockHashTest, ABlocksHashCoversAllBeforeIt) {
  std::vector<TokenId> tokens(3 * kBlockTokens + 5, 1);
  std::vector<uint64_t> a, b, c;
  HashTokenBlocks(tokens, 0, &a);
  tokens[0] = 2;
  HashTokenBlocks(tokens, 0, &b);
  HashTokenBlocks(tokens, 1, &c);
  ASSERT_EQ(a.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NE(a[i], b[i]);
    EXPECT_NE(b[i], c[i]);
  }
}

}  // namespace
}  // namespace portico::router
