// What a look-up of a prompt of 1,000 tokens (62 blocks) among 64 workers costs, hashing included, with
// so many blocks resident; half of the prompts are known to some workers. And what recording it costs.
#include <benchmark/benchmark.h>

#include <random>

#include "router/index/block_hash.h"
#include "router/index/prefix_index.h"
#include "router/index/text_tree.h"

namespace portico::router {
namespace {

constexpr size_t kTokens = 1000;
constexpr size_t kWorkers = 64;

std::vector<TokenId> Prompt(uint64_t seed) {
  // A beginning that 1 of 16 prompts shares, then its own.
  std::mt19937 shared(static_cast<uint32_t>(seed % 16));
  std::mt19937 own(static_cast<uint32_t>(seed + 1000));
  std::vector<TokenId> tokens(kTokens);
  for (size_t i = 0; i < kTokens; ++i) {
    tokens[i] = static_cast<TokenId>((i < 250 ? shared() : own()) % 150000);
  }
  return tokens;
}

struct Filled {
  explicit Filled(size_t blocks) : index(2ull << 30) {
    for (size_t i = 0; i < kWorkers; ++i) workers.push_back(index.AddWorker(0));
    std::vector<uint64_t> chain;
    for (uint64_t seed = 0; index.pairs() < blocks; ++seed) {
      const std::vector<TokenId> prompt = Prompt(seed);
      if (seed % (blocks / 62 / 512 + 1) == 0 && known.size() < 512) known.push_back(prompt);
      chain.clear();
      HashTokenBlocks(prompt, 1, &chain);
      index.Insert(workers[seed * 7 % kWorkers], chain);
    }
  }
  PrefixIndex index;
  std::vector<PrefixIndex::Place> workers;
  std::vector<std::vector<TokenId>> known;
};

Filled& WithBlocks(size_t blocks) {
  static std::unique_ptr<Filled> filled;
  static size_t of = 0;
  if (of != blocks) {
    filled.reset();
    filled = std::make_unique<Filled>(blocks);
    of = blocks;
  }
  return *filled;
}

void BM_Match(benchmark::State& state) {
  Filled& filled = WithBlocks(static_cast<size_t>(state.range(0)));
  std::vector<std::vector<TokenId>> prompts = filled.known;
  for (uint64_t i = 0; i < 512; ++i) prompts.push_back(Prompt(1'000'000'000 + i));
  std::vector<uint64_t> chain;
  std::vector<int32_t> depths;
  size_t i = 0;
  for (auto _ : state) {
    chain.clear();
    HashTokenBlocks(prompts[i * 389 % prompts.size()], 1, &chain);
    filled.index.Match(chain, &depths);
    benchmark::DoNotOptimize(depths.data());
    ++i;
  }
  state.counters["bytes_per_block"] =
      static_cast<double>(filled.index.bytes()) / static_cast<double>(filled.index.pairs());
}
BENCHMARK(BM_Match)->Arg(100'000)->Arg(1'000'000)->Arg(10'000'000);

void BM_Insert(benchmark::State& state) {
  Filled& filled = WithBlocks(static_cast<size_t>(state.range(0)));
  std::vector<uint64_t> chain;
  size_t i = 0;
  for (auto _ : state) {
    chain.clear();
    HashTokenBlocks(filled.known[i * 389 % filled.known.size()], 1, &chain);
    filled.index.Insert(filled.workers[i * 7 % kWorkers], chain);
    ++i;
  }
}
BENCHMARK(BM_Insert)->Arg(100'000)->Arg(10'000'000)->Iterations(5000);

void BM_Hash(benchmark::State& state) {
  const std::vector<TokenId> prompt = Prompt(1);
  std::vector<uint64_t> chain;
  for (auto _ : state) {
    chain.clear();
    HashTokenBlocks(prompt, 1, &chain);
    benchmark::DoNotOptimize(chain.data());
  }
}
BENCHMARK(BM_Hash);

// Ten million distinct prompts in a budget of 256 MiB: the greatest number of bytes seen.
void BM_DistinctPrompts(benchmark::State& state) {
  PrefixIndex index(256 << 20);
  std::vector<PrefixIndex::Place> workers;
  for (size_t i = 0; i < kWorkers; ++i) workers.push_back(index.AddWorker(0));
  size_t most = 0;
  uint64_t next = 1;
  for (auto _ : state) {
    uint64_t chain[4];
    for (uint64_t& block : chain) block = ChainHash(3, next++);
    index.Insert(workers[next % kWorkers], chain);
    most = std::max(most, index.bytes());
  }
  state.counters["MiB"] = static_cast<double>(most) / (1 << 20);
}
BENCHMARK(BM_DistinctPrompts)->Iterations(10'000'000);

void BM_TextTree(benchmark::State& state) {
  TextTree tree(256 << 20);
  std::mt19937 random(1);
  std::vector<std::string> prompts;
  for (int i = 0; i < 2000; ++i) {
    std::string text(static_cast<size_t>(1000 + i % 16), static_cast<char>('a' + i % 16));
    while (text.size() < 2400) text += std::to_string(random()) + " ";
    prompts.push_back(std::move(text));
  }
  size_t i = 0;
  for (auto _ : state) {
    const std::string& prompt = prompts[i++ * 389 % prompts.size()];
    TextTree::Match match = tree.Find(prompt);
    benchmark::DoNotOptimize(match);
    tree.Insert(prompt, i % 8);
  }
}
BENCHMARK(BM_TextTree);

}  // namespace
}  // namespace portico::router
