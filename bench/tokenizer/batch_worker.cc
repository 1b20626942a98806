// Measures Portico's encode of a batch on one thread and on two, for bench/tokenizer/run.py.
//
//     tokenizer_batch_worker TOKENIZER PROMPTS...
//
// The batch is all prompts of the files (prompts.h). The answer is a line of JSON: the wall time of each, cold and warm,
// in microseconds; the least of several rounds that take turns. "bare" is a sum that needs no memory, as much for one
// thread as for two: where the processors are not all the machine's own, two of them are not always twice one.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cpu_pool.h"
#include "base/parallel_for.h"
#include "prompts.h"
#include "tokenizer/batch.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

constexpr int kRounds = 12;
// Prompts that are encoded first, again and again, so that threads and caches are there.
constexpr size_t kKnown = 4;
constexpr int kKnownTimes = 10;

// A few milliseconds of arithmetic in which no step waits for the one before, so that it keeps a processor's units busy: two
// that share them are not much more than one.
void Sum(size_t seed) {
  constexpr int kSteps = 1'000'000;
  std::array<uint64_t, 8> sums;
  sums.fill(seed);
  for (int i = 0; i < kSteps; ++i) {
    for (uint64_t& sum : sums) {
      sum += sum >> 3 ^ static_cast<uint64_t>(i);
      asm volatile("" : "+r"(sum));
    }
  }
  [[maybe_unused]] volatile uint64_t kept = std::accumulate(sums.begin(), sums.end(), seed);
}

template <typename F>
double Micros(F f) {
  auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

struct Least {
  double cold = 1e18;
  double warm = 1e18;
  double bare = 1e18;
};

// Each round loads anew: no cache knows the texts.
bool Measure(const char* path, const std::vector<std::string>& prompts, size_t helpers,
             Least* least) {
  auto tokenizer = Tokenizer::Load(path);
  if (!tokenizer.ok()) return false;
  CpuPool pool(1, 16);
  BatchTokenizer batch(*tokenizer, helpers > 0 ? &pool : nullptr);
  size_t known = std::min(kKnown, prompts.size());
  std::vector<std::string_view> first(prompts.begin(),
                                      prompts.begin() + static_cast<ptrdiff_t>(known));
  std::vector<std::string_view> rest(prompts.begin() + static_cast<ptrdiff_t>(known),
                                     prompts.end());
  auto encode = [&](const std::vector<std::string_view>& texts) {
    if (!batch.EncodeIds(texts, {}).ok()) std::abort();
  };
  for (int i = 0; i < kKnownTimes; ++i) encode(first);
  least->cold = std::min(least->cold, Micros([&] { encode(rest); }));
  for (int i = 0; i < 3; ++i) least->warm = std::min(least->warm, Micros([&] { encode(rest); }));
  constexpr size_t kSums = 4;
  auto sums = [&] { ParallelFor(helpers > 0 ? &pool : nullptr, kSums, Sum); };
  least->bare = std::min(least->bare, Micros(sums));
  return true;
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tokenizer_batch_worker TOKENIZER PROMPTS...\n");
    return 2;
  }
  std::vector<std::string> prompts;
  for (int i = 2; i < argc; ++i) {
    for (std::string& p : portico::ReadCell(argv[i]).prompts) prompts.push_back(std::move(p));
  }
  portico::Least least[2];
  for (int round = 0; round < portico::kRounds; ++round) {
    for (size_t helpers = 0; helpers < 2; ++helpers) {
      if (!portico::Measure(argv[1], prompts, helpers, &least[helpers])) return 1;
    }
  }
  std::printf(
      "{\"one_cold\": %.1f, \"two_cold\": %.1f, \"one_warm\": %.1f, \"two_warm\": %.1f, "
      "\"one_bare\": %.1f, \"two_bare\": %.1f}\n",
      least[0].cold, least[1].cold, least[0].warm, least[1].warm, least[0].bare, least[1].bare);
  return 0;
}
