#include "engine/llama/kv/block_log.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "base/sanitized_for_test.h"
#include "engine/llama/kv/kv_cache.h"
#include "engine/llama/kv/kv_memory_for_test.h"

namespace portico::llama {
namespace {

std::vector<TokenId> Counting(int32_t size) {
  std::vector<TokenId> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// The hashes of a prefix's whole blocks.
std::vector<int64_t> HashesOf(std::span<const TokenId> tokens) {
  std::vector<int64_t> hashes;
  BlockDigest before{};
  for (size_t at = 0; at + kBlockTokens <= tokens.size(); at += kBlockTokens) {
    before = DigestOf(at == 0 ? nullptr : &before, tokens.subspan(at, kBlockTokens));
    hashes.push_back(HashOf(before));
  }
  return hashes;
}

// What a reader of the events has.
class Reader {
 public:
  void Take(const KvEventBatch& batch) {
    for (const KvEvent& event : batch.events) {
      if (event.kind == KvEvent::Kind::kCleared) held_.clear();
      for (const int64_t hash : event.removed) EXPECT_EQ(held_.erase(hash), 1u);
      std::optional<int64_t> parent = event.parent;
      for (const KvBlock& block : event.blocks) {
        EXPECT_TRUE(!parent || held_.contains(*parent)) << "a block without the one before it";
        EXPECT_EQ(block.tokens.size(), static_cast<size_t>(kBlockTokens));
        EXPECT_TRUE(held_.insert(block.hash).second) << "a block that is there already";
        parent = block.hash;
      }
    }
  }
  int32_t BlocksOf(std::span<const TokenId> tokens) const {
    int32_t blocks = 0;
    for (const int64_t hash : HashesOf(tokens)) {
      if (!held_.contains(hash)) break;
      ++blocks;
    }
    return blocks;
  }
  size_t size() const { return held_.size(); }

 private:
  std::set<int64_t> held_;
};

// Made with Python's hashlib as SGLang makes them.
TEST(BlockLogTest, NamesAreThoseOfSglang) {
  EXPECT_EQ(HashesOf(Counting(47)),
            (std::vector<int64_t>{6738917275443968386, 5080553031686747138}));
}

TEST(BlockLogTest, ReadersKnowWhatIsCachedThroughSplitsEvictionsAndFlushes) {
  std::mt19937 random(11);
  FakeKvMemory memory;
  KvCache cache(&memory, 400, 4, 12);
  BlockLog log;
  cache.TellTo(&log);
  KvEventHub hub;
  Reader reader;
  ASSERT_TRUE(hub.Subscribe(1, [&](const KvEventBatchPtr& batch) { reader.Take(*batch); }).ok());
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < RandomRounds(2000); ++i) {
    std::vector<TokenId> tokens;
    // Mostly the beginning of a former one.
    if (!prompts.empty() && random() % 4 != 0) {
      tokens = prompts[random() % prompts.size()];
      tokens.resize(random() % (tokens.size() + 1));
    }
    const size_t more = 1 + random() % 60;
    for (size_t n = 0; n < more && tokens.size() < 180; ++n) {
      tokens.push_back(static_cast<TokenId>(random() % 3));
    }
    KvBranch branch = cache.Open(tokens, static_cast<int32_t>(tokens.size()));
    const auto missing = static_cast<int32_t>(tokens.size()) - branch.length;
    ASSERT_TRUE(cache.Reserve(missing));
    memory.Compute(branch.sequence, branch.length, {tokens.begin() + branch.length, tokens.end()});
    cache.Grow(&branch, missing);
    if (random() % 2 == 0) cache.Publish(tokens, &branch);
    cache.Close(tokens, random() % 8 != 0, &branch);
    if (random() % 200 == 0) cache.Flush();
    log.Deliver(&hub);
    prompts.push_back(tokens);
    if (prompts.size() > 20) prompts.erase(prompts.begin());
    for (const auto& prompt : prompts) {
      const int32_t cached = cache.Find(prompt, static_cast<int32_t>(prompt.size())).length;
      ASSERT_EQ(reader.BlocksOf(prompt), cached / kBlockTokens) << "after " << i;
    }
  }
  // Who comes later is told the state first.
  Reader late;
  ASSERT_TRUE(hub.Subscribe(0, [&](const KvEventBatchPtr& batch) { late.Take(*batch); }).ok());
  EXPECT_EQ(late.size(), reader.size());
  cache.Flush();
  log.Deliver(&hub);
  EXPECT_EQ(reader.size(), 0u);
}

}  // namespace
}  // namespace portico::llama
