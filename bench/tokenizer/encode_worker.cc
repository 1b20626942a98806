// Measures Portico's encode for bench/tokenizer/run.py: one tokenizer, cells on request.
//
//     tokenizer_worker MODE TOKENIZER
//
// Reads lines "PROMPTS IDS". PROMPTS is a file (prompts.h) with as many prompts a pass. Every prompt is encoded once, in
// order (cold), then the first again and again (warm). MODE says to what: "ids" to lists that are kept, as the peers keep
// theirs; "reused" to one list that is used again; "offsets" to two such lists, with offsets; "whole" to an Encoding with
// tokens, words and masks too. The ids of all prompts go to IDS (for each: a count, then the ids; 32 bits each). The answer
// is a line of JSON, in microseconds a prompt. A process has one tokenizer: another's tables would drive its own from the
// processor's caches.
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

// Has the kernel give the pages that the cells' ids will lie in (run.py has malloc keep them): it takes 2 us and more for
// one, which says nothing of a tokenizer.
void TouchHeap() {
  constexpr size_t kBytes = size_t{24} << 20U;
  std::vector<char> touched(kBytes, 1);
  asm volatile("" : : "r"(touched.data()) : "memory");
}

class Encoder {
 public:
  Encoder(std::string mode, std::shared_ptr<const Tokenizer> tokenizer)
      : mode_(std::move(mode)), tokenizer_(std::move(tokenizer)) {
    options_.add_special_tokens = false;
  }

  // Encodes as the mode says; all but "ids" to lists of its own.
  void operator()(const std::string& text, std::vector<TokenId>* ids) {
    if (mode_ == "ids") return tokenizer_->Encode(text, false, ids);
    if (mode_ == "whole") {
      if (!tokenizer_->EncodeFull(text, nullptr, options_).ok()) std::abort();
      return;
    }
    ids_.clear();
    if (mode_ == "reused") return tokenizer_->Encode(text, false, &ids_);
    offsets_.clear();
    const Status status =
        tokenizer_->EncodeOffsets(text, options_, OffsetUnit::kCodePoints, &ids_, &offsets_);
    if (!status.ok()) std::abort();
  }

  // The ids of a text by the mode's own way.
  std::vector<TokenId> Ids(const std::string& text) {
    if (mode_ == "ids" || mode_ == "reused") {
      std::vector<TokenId> ids;
      tokenizer_->Encode(text, false, &ids);
      return ids;
    }
    if (mode_ == "whole") return tokenizer_->EncodeFull(text, nullptr, options_)->ids;
    (*this)(text, nullptr);
    if (offsets_.size() != ids_.size()) std::abort();
    return ids_;
  }

 private:
  std::string mode_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Tokenizer::EncodeOptions options_;
  std::vector<TokenId> ids_;
  std::vector<Span> offsets_;
};

void Measure(Encoder* encoder, const std::string& prompts, const std::string& ids_path) {
  Cell cell = ReadCell(prompts);
  std::vector<std::vector<TokenId>> kept(cell.prompts.size());
  double first = 0;
  double begin = MicrosNow();
  double cold = Cold(cell, [&](size_t i) {
    (*encoder)(cell.prompts[i], &kept[i]);
    if (i == 0) first = MicrosNow() - begin;
  });
  std::vector<TokenId> again;
  double warm = Warm(cell, [&](size_t i) {
    again.clear();
    (*encoder)(cell.prompts[i], &again);
  });
  std::ofstream out(ids_path, std::ios::binary);
  for (size_t i = 0; i < kept.size(); ++i) {
    const std::vector<TokenId> list = kept[i].empty() ? encoder->Ids(cell.prompts[i]) : kept[i];
    auto count = static_cast<uint32_t>(list.size());
    out.write(reinterpret_cast<const char*>(&count), sizeof count);
    out.write(reinterpret_cast<const char*>(list.data()),
              static_cast<std::streamsize>(list.size() * sizeof(TokenId)));
  }
  out.close();
  std::printf("{\"cold\": %.3f, \"warm\": %.3f, \"first\": %.3f}\n", cold, warm, first);
  std::fflush(stdout);
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "ids" && mode != "reused" && mode != "offsets" && mode != "whole") {
    std::fprintf(stderr, "usage: tokenizer_worker ids|reused|offsets|whole TOKENIZER\n");
    return 2;
  }
  portico::TouchHeap();
  auto tokenizer = portico::Tokenizer::Load(argv[2]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  portico::Encoder encoder(mode, *tokenizer);
  std::printf("{}\n");
  std::fflush(stdout);
  for (std::string prompts, ids; std::cin >> prompts >> ids;) {
    portico::Measure(&encoder, prompts, ids);
  }
  return 0;
}
