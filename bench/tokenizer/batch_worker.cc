// Measures Portico's encode of a batch on one thread and on two, for bench/tokenizer/run.py.
//
//     tokenizer_batch_worker TOKENIZER PROMPTS...
//
// The batch is all prompts of the files (prompts.h). The answer is a line of JSON: the wall time of each, cold and warm,
// in microseconds; the least of several rounds that take turns.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cpu_pool.h"
#include "prompts.h"
#include "tokenizer/batch.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

constexpr int kRounds = 12;
// Prompts that are encoded first, again and again, so that threads and caches are there.
constexpr size_t kKnown = 4;
constexpr int kKnownTimes = 10;

double Micros(const BatchTokenizer& batch, const std::vector<std::string_view>& texts) {
  auto begin = std::chrono::steady_clock::now();
  if (!batch.EncodeIds(texts, {}).ok()) std::abort();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

struct Least {
  double cold = 1e18;
  double warm = 1e18;
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
  for (int i = 0; i < kKnownTimes; ++i) Micros(batch, first);
  least->cold = std::min(least->cold, Micros(batch, rest));
  for (int i = 0; i < 3; ++i) least->warm = std::min(least->warm, Micros(batch, rest));
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
  std::printf("{\"one_cold\": %.1f, \"two_cold\": %.1f, \"one_warm\": %.1f, \"two_warm\": %.1f}\n",
              least[0].cold, least[1].cold, least[0].warm, least[1].warm);
  return 0;
}
