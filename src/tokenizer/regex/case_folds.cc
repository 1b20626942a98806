#include "tokenizer/regex/case_folds.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "text/case_fold.h"
#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

// Where the characters with such folds lie; Unicode promises that none will be added elsewhere.
const CodePoints& Candidates() {
  static const CodePoints candidates({{0xDF, 0xE0},
                                      {0x130, 0x131},
                                      {0x149, 0x14A},
                                      {0x1F0, 0x1F1},
                                      {0x390, 0x391},
                                      {0x3B0, 0x3B1},
                                      {0x587, 0x588},
                                      {0x1E96, 0x1E9F},
                                      {0x1F50, 0x1FFD},
                                      {0xFB00, 0xFB18}});
  return candidates;
}

struct CasePairs {
  uint32_t lower;
  uint32_t other;
  uint32_t count;
};

// Of Unicode 15.1 and 16; the last three fold to the same several characters.
constexpr std::array<CasePairs, 9> kNewerPairs = {{{0x19B, 0xA7DC, 1},
                                                   {0x264, 0xA7CB, 1},
                                                   {0x1C8A, 0x1C89, 1},
                                                   {0xA7CD, 0xA7CC, 1},
                                                   {0xA7DB, 0xA7DA, 1},
                                                   {0x10D70, 0x10D50, 22},
                                                   {0xFB06, 0xFB05, 1},
                                                   {0x390, 0x1FD3, 1},
                                                   {0x3B0, 0x1FE3, 1}}};

}  // namespace

CodePoints WithNewerCase(const CodePoints& set) {
  const std::vector<CodePoints::Range>& ranges = set.ranges();
  std::vector<CodePoints::Range> added;
  auto add = [&](uint32_t from, uint32_t to, uint32_t count) {
    auto range = std::upper_bound(ranges.begin(), ranges.end(), from,
                                  [](uint32_t c, const auto& r) { return c < r.end; });
    for (; range != ranges.end() && range->begin < from + count; ++range) {
      const uint32_t begin = std::max(range->begin, from);
      const uint32_t end = std::min(range->end, from + count);
      added.push_back({begin - from + to, end - from + to});
    }
  };
  for (const CasePairs& pairs : kNewerPairs) {
    add(pairs.lower, pairs.other, pairs.count);
    add(pairs.other, pairs.lower, pairs.count);
  }
  return added.empty() ? set : set | CodePoints(std::move(added));
}

bool HasNewerCase(uint32_t character) {
  return std::any_of(kNewerPairs.begin(), kNewerPairs.end(), [&](const CasePairs& pairs) {
    return character - pairs.lower < pairs.count || character - pairs.other < pairs.count;
  });
}

std::string FoldsOfSeveral(const CodePoints& set) {
  std::vector<std::string> folds;
  const CodePoints candidates = set & Candidates();
  for (const CodePoints::Range& range : candidates.ranges()) {
    for (uint32_t c = range.begin; c < range.end; ++c) {
      std::string fold;
      AppendCaseFold(c, &fold);
      if (CountCodePoints(fold) < 2) continue;
      if (std::find(folds.begin(), folds.end(), fold) == folds.end()) {
        folds.push_back(std::move(fold));
      }
    }
  }
  std::string out;
  for (const std::string& fold : folds) out += (out.empty() ? "" : "|") + fold;
  return out;
}

}  // namespace portico::tokenizer
