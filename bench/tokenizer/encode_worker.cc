// Measures Portico's encode for bench/tokenizer/run.py: one tokenizer, cells on request.
//
//     tokenizer_worker TOKENIZER
//
// Reads lines "PROMPTS IDS". PROMPTS is a file (prompts.h) with as many prompts a pass. Every prompt is encoded once, in
// order (cold), then the first again and again (warm), and both once more with offsets, and with all that an Encoding has,
// by more such tokenizers, which have caches of their own. The ids of all prompts are kept and go to IDS (for each: a
// count, then the ids; 32 bits each). Offsets are set beside ids that are not kept either ("reused"): the kernel takes
// 2 us and more for a new page of memory, and offsets need two for each of the ids'. The answer is a line of JSON, in
// microseconds a prompt.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "prompts.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

// CPU time of the process: what else runs on the machine does not count.
double MicrosNow() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

constexpr size_t kTogetherBytes = 20'000;

// The median over the passes of the mean time of a prompt.
template <typename Encode>
double Cold(const Cell& cell, Encode encode) {
  size_t count = cell.prompts.size() / cell.passes;
  std::vector<double> times;
  for (size_t pass = 0; pass < cell.passes; ++pass) {
    double begin = MicrosNow();
    for (size_t i = 0; i < count; ++i) encode(pass * count + i);
    times.push_back((MicrosNow() - begin) / static_cast<double>(count));
  }
  return Median(std::move(times));
}

// Of calls so short that reading the clock would count, several are timed together.
template <typename Encode>
double Warm(const Cell& cell, Encode encode) {
  constexpr double kMicros = 30'000;
  size_t together = std::max<size_t>(1, kTogetherBytes / cell.prompts[0].size());
  std::vector<double> times;
  for (double begin = MicrosNow(); times.size() < 5 || MicrosNow() - begin < kMicros;) {
    double one = MicrosNow();
    for (size_t i = 0; i < together; ++i) encode(0);
    times.push_back((MicrosNow() - one) / static_cast<double>(together));
  }
  return Median(std::move(times));
}

struct Tokenizers {
  const Tokenizer& keeping;
  const Tokenizer& reusing;
  const Tokenizer& placing;
  const Tokenizer& full;
};

void Measure(const Tokenizers& tokenizers, const std::string& prompts,
             const std::string& ids_path) {
  Cell cell = ReadCell(prompts);
  std::vector<std::vector<TokenId>> ids(cell.prompts.size());
  double first = 0;
  double begin = MicrosNow();
  double cold = Cold(cell, [&](size_t i) {
    tokenizers.keeping.Encode(cell.prompts[i], false, &ids[i]);
    if (i == 0) first = MicrosNow() - begin;
  });
  std::vector<TokenId> again;
  auto encode = [&](const Tokenizer& tokenizer, size_t i) {
    again.clear();
    tokenizer.Encode(cell.prompts[i], false, &again);
  };
  double warm = Warm(cell, [&](size_t i) { encode(tokenizers.keeping, i); });
  double reused = Cold(cell, [&](size_t i) { encode(tokenizers.reusing, i); });
  Tokenizer::EncodeOptions options;
  options.add_special_tokens = false;
  std::vector<Span> offsets;
  auto encode_offsets = [&](size_t i) {
    again.clear();
    offsets.clear();
    const Status status = tokenizers.placing.EncodeOffsets(
        cell.prompts[i], options, OffsetUnit::kCodePoints, &again, &offsets);
    if (!status.ok()) std::abort();
  };
  double cold_offsets = Cold(cell, encode_offsets);
  double warm_offsets = Warm(cell, encode_offsets);
  for (size_t i = 0; i < ids.size(); ++i) {
    encode_offsets(i);
    if (again != ids[i] || offsets.size() != again.size()) std::abort();
  }
  auto encode_full = [&](size_t i) {
    if (!tokenizers.full.EncodeFull(cell.prompts[i], nullptr, options).ok()) std::abort();
  };
  double cold_whole = Cold(cell, encode_full);
  double whole = Warm(cell, encode_full);
  std::ofstream out(ids_path, std::ios::binary);
  for (const std::vector<TokenId>& list : ids) {
    auto count = static_cast<uint32_t>(list.size());
    out.write(reinterpret_cast<const char*>(&count), sizeof count);
    out.write(reinterpret_cast<const char*>(list.data()),
              static_cast<std::streamsize>(list.size() * sizeof(TokenId)));
  }
  out.close();
  std::printf(
      "{\"cold\": %.3f, \"warm\": %.3f, \"first\": %.3f, \"reused\": %.3f, "
      "\"cold_offsets\": %.3f, \"offsets\": %.3f, \"cold_whole\": %.3f, \"whole\": %.3f}\n",
      cold, warm, first, reused, cold_offsets, warm_offsets, cold_whole, whole);
  std::fflush(stdout);
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tokenizer_worker TOKENIZER\n");
    return 2;
  }
  std::vector<std::shared_ptr<const portico::Tokenizer>> loaded;
  for (int i = 0; i < 4; ++i) {
    auto tokenizer = portico::Tokenizer::Load(argv[1]);
    if (!tokenizer.ok()) {
      std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
      return 1;
    }
    loaded.push_back(*tokenizer);
  }
  const portico::Tokenizers tokenizers{*loaded[0], *loaded[1], *loaded[2], *loaded[3]};
  std::printf("{}\n");
  std::fflush(stdout);
  for (std::string prompts, ids; std::cin >> prompts >> ids;) {
    portico::Measure(tokenizers, prompts, ids);
  }
  return 0;
}
