#include "engine/llama/kv/kv_cache.h"

#include <gtest/gtest.h>

#include <random>

#include "base/sanitized_for_test.h"
#include "engine/llama/kv/kv_memory_for_test.h"

namespace portico::llama {
namespace {

using Tokens = std::vector<TokenId>;

class KvCacheTest : public testing::Test {
 protected:
  // Opens a branch and computes what is not cached.
  KvBranch Run(KvCache* cache, const Tokens& tokens) {
    KvBranch branch = cache->Open(tokens, static_cast<int32_t>(tokens.size()));
    Compute(cache, tokens, &branch);
    return branch;
  }
  void Compute(KvCache* cache, const Tokens& tokens, KvBranch* branch) {
    const auto count = static_cast<int32_t>(tokens.size()) - branch->length;
    ASSERT_TRUE(cache->Reserve(count));
    memory_.Compute(branch->sequence, branch->length,
                    Tokens(tokens.begin() + branch->length, tokens.end()));
    cache->Grow(branch, count);
    ASSERT_EQ(memory_.used(), cache->used() + cache->cached());
  }
  void Insert(KvCache* cache, const Tokens& tokens) {
    KvBranch branch = Run(cache, tokens);
    cache->Close(tokens, true, &branch);
  }
  int32_t Cached(const KvCache& cache, const Tokens& tokens) {
    return cache.Find(tokens, static_cast<int32_t>(tokens.size())).length;
  }
  FakeKvMemory memory_;
};

TEST_F(KvCacheTest, AFinishedRequestServesTheNextWithItsLongestPrefix) {
  KvCache cache(&memory_, 100, 8, 8);
  Insert(&cache, {1, 2, 3, 4});
  EXPECT_EQ(cache.used(), 0);
  EXPECT_EQ(cache.cached(), 4);
  KvBranch branch = cache.Open(Tokens{1, 2, 9}, 3);
  EXPECT_EQ(branch.length, 2);
  EXPECT_EQ(memory_.TokensOf(branch.sequence), (Tokens{1, 2}));
  EXPECT_EQ(cache.used(), 2);
  EXPECT_EQ(cache.cached(), 2);
  cache.Close(Tokens{1, 2, 9}, true, &branch);
  EXPECT_EQ(Cached(cache, {1, 2, 3, 4}), 4);
}

TEST_F(KvCacheTest, TheLimitBoundsTheMatch) {
  KvCache cache(&memory_, 100, 8, 8);
  Insert(&cache, {1, 2, 3, 4});
  KvBranch branch = cache.Open(Tokens{1, 2, 3, 4}, 3);
  EXPECT_EQ(branch.length, 3);
  Compute(&cache, {1, 2, 3, 4}, &branch);
  cache.Close(Tokens{1, 2, 3, 4}, true, &branch);
  EXPECT_EQ(cache.cached(), 4);  // the fourth was there already
  EXPECT_EQ(memory_.used(), 4);
}

TEST_F(KvCacheTest, TheLeastRecentlyUsedPrefixGoesFirstAndFromItsEnd) {
  KvCache cache(&memory_, 400, 8, 8);
  Tokens a(100, 1);
  Tokens b(100, 2);
  Tokens c(100, 3);
  for (Tokens* t : {&a, &b, &c}) Insert(&cache, *t);
  Insert(&cache, a);  // used again
  ASSERT_TRUE(cache.Reserve(180));
  EXPECT_EQ(Cached(cache, a), 100);
  EXPECT_EQ(Cached(cache, b), 20);
  EXPECT_EQ(Cached(cache, c), 100);
  EXPECT_EQ(memory_.used(), 220);
}

TEST_F(KvCacheTest, ASharedPrefixOutlivesItsContinuations) {
  KvCache cache(&memory_, 300, 8, 8);
  Tokens system(100, 1);
  Tokens one = system;
  Tokens two = system;
  one.resize(200, 2);
  two.resize(200, 3);
  Insert(&cache, one);
  Insert(&cache, two);
  EXPECT_EQ(cache.cached(), 300);
  ASSERT_TRUE(cache.Reserve(150));
  EXPECT_EQ(Cached(cache, one), 100);
  EXPECT_EQ(Cached(cache, two), 136);  // a second cut takes 64 at least
  ASSERT_TRUE(cache.Reserve(201));
  EXPECT_LT(Cached(cache, two), 100);
  ASSERT_TRUE(cache.Reserve(300));
  EXPECT_EQ(memory_.used(), 0);
}

TEST_F(KvCacheTest, WhatARunningRequestHoldsIsNotEvicted) {
  KvCache cache(&memory_, 10, 8, 8);
  KvBranch branch = Run(&cache, {1, 2, 3, 4});
  cache.Publish(Tokens{1, 2, 3, 4}, &branch);
  EXPECT_EQ(cache.available(), 6);
  EXPECT_FALSE(cache.Reserve(7));
  EXPECT_TRUE(cache.Reserve(6));
  EXPECT_EQ(memory_.TokensOf(branch.sequence), (Tokens{1, 2, 3, 4}));
  cache.Close(Tokens{1, 2, 3, 4}, false, &branch);
}

TEST_F(KvCacheTest, ARunningRequestsPublishedPromptServesOthers) {
  KvCache cache(&memory_, 100, 8, 8);
  KvBranch first = Run(&cache, {1, 2, 3});
  cache.Publish(Tokens{1, 2, 3}, &first);
  KvBranch second = Run(&cache, {1, 2, 3, 4});
  EXPECT_EQ(memory_.used(), 4);
  cache.Close(Tokens{1, 2, 3}, true, &first);
  EXPECT_EQ(memory_.TokensOf(second.sequence), (Tokens{1, 2, 3, 4}));
  cache.Close(Tokens{1, 2, 3, 4}, true, &second);
  EXPECT_EQ(cache.cached(), 4);
}

TEST_F(KvCacheTest, TwoThatComputedTheSameTokensEndUpWithOneCopy) {
  KvCache cache(&memory_, 100, 8, 8);
  KvBranch first = Run(&cache, {1, 2, 3, 4});
  KvBranch second = Run(&cache, {1, 2, 3, 5});
  EXPECT_EQ(memory_.used(), 8);
  cache.Publish(Tokens{1, 2, 3, 4}, &first);
  cache.Publish(Tokens{1, 2, 3, 5}, &second);
  EXPECT_EQ(memory_.used(), 5);
  EXPECT_EQ(cache.used(), 5);
  EXPECT_EQ(memory_.TokensOf(second.sequence), (Tokens{1, 2, 3, 5}));
  cache.Close(Tokens{1, 2, 3, 4}, true, &first);
  cache.Close(Tokens{1, 2, 3, 5}, true, &second);
}

TEST_F(KvCacheTest, SequencesAreReclaimedFromTheOldestLeaf) {
  KvCache cache(&memory_, 1000, 2, 3);
  for (TokenId t = 0; t < 10; ++t) Insert(&cache, {t, t, t});
  EXPECT_EQ(cache.cached(), 9);
  EXPECT_EQ(Cached(cache, {6, 6, 6}), 0);
  EXPECT_EQ(Cached(cache, {7, 7, 7}), 3);
}

TEST_F(KvCacheTest, WithoutSharingNothingStays) {
  KvCache cache(&memory_, 100, 2, 0);
  KvBranch branch = Run(&cache, {1, 2, 3});
  cache.Publish(Tokens{1, 2, 3}, &branch);
  EXPECT_EQ(cache.used(), 3);
  EXPECT_EQ(Cached(cache, {1, 2, 3}), 0);
  cache.Close(Tokens{1, 2, 3}, true, &branch);
  EXPECT_EQ(memory_.used(), 0);
  EXPECT_EQ(cache.cached(), 0);
}

// Random requests over a small alphabet, so that prefixes, splits, twins and evictions abound.
// After every operation each branch attends to its own tokens and no cell is lost.
TEST_F(KvCacheTest, HoldsItsInvariantsUnderRandomUse) {
  std::mt19937 random(3);
  struct Request {
    Tokens tokens;
    KvBranch branch;
  };
  constexpr int64_t kCells = 60;
  constexpr size_t kRunning = 6;
  constexpr size_t kKept = 6;
  KvCache cache(&memory_, kCells, kRunning, kKept);
  std::vector<Request> open;
  for (int round = 0; round < RandomRounds(20000); ++round) {
    const uint32_t what = random() % 10;
    if (what < 4 && open.size() < kRunning) {
      Request r;
      r.tokens.resize(1 + random() % 14);
      for (TokenId& token : r.tokens) token = static_cast<TokenId>(random() % 2);
      const auto limit = static_cast<int32_t>(random() % (r.tokens.size() + 1));
      const KvCache::Lookup found = cache.Find(r.tokens, limit);
      r.branch = cache.Open(r.tokens, limit);
      ASSERT_EQ(r.branch.length, found.length);
      open.push_back(r);
    } else if (what < 8 && !open.empty()) {
      Request& r = open[random() % open.size()];
      if (static_cast<size_t>(r.branch.length) == r.tokens.size()) {
        r.tokens.push_back(static_cast<TokenId>(random() % 2));
      }
      const int32_t count =
          1 +
          static_cast<int32_t>(random() % (r.tokens.size() - static_cast<size_t>(r.branch.length)));
      const bool fits = count <= cache.available();
      ASSERT_EQ(cache.Reserve(count), fits);
      if (fits) {
        const auto first = r.tokens.begin() + r.branch.length;
        memory_.Compute(r.branch.sequence, r.branch.length, Tokens(first, first + count));
        cache.Grow(&r.branch, count);
        if (random() % 2 == 0) cache.Publish(r.tokens, &r.branch);
      }
    } else if (!open.empty()) {
      const size_t i = random() % open.size();
      cache.Close(open[i].tokens, random() % 4 != 0, &open[i].branch);
      open.erase(open.begin() + static_cast<ptrdiff_t>(i));
    }
    ASSERT_EQ(memory_.used(), cache.used() + cache.cached()) << "round " << round;
    ASSERT_LE(memory_.used(), kCells);
    ASSERT_TRUE(!open.empty() || cache.used() == 0);
    for (const Request& r : open) {
      ASSERT_EQ(memory_.TokensOf(r.branch.sequence),
                Tokens(r.tokens.begin(), r.tokens.begin() + r.branch.length));
    }
  }
  for (Request& r : open) cache.Close(r.tokens, true, &r.branch);
  EXPECT_EQ(cache.used(), 0);
  cache.Flush();
  EXPECT_EQ(memory_.used(), 0);
  EXPECT_EQ(cache.cached(), 0);
}

// The longest cached prefix against a plain list of everything that was inserted, while nothing is
// evicted.
TEST_F(KvCacheTest, FindsWhatANaiveSearchFinds) {
  std::mt19937 random(4);
  KvCache cache(&memory_, 100000, 2, 200);
  std::vector<Tokens> known;
  for (int round = 0; round < 150; ++round) {
    Tokens tokens(1 + random() % 30);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 3);
    int32_t longest = 0;
    for (const Tokens& other : known) {
      const auto end = std::mismatch(tokens.begin(), tokens.end(), other.begin(), other.end());
      longest = std::max(longest, static_cast<int32_t>(end.first - tokens.begin()));
    }
    ASSERT_EQ(Cached(cache, tokens), longest);
    Insert(&cache, tokens);
    known.push_back(tokens);
  }
}

}  // namespace
}  // namespace portico::llama
