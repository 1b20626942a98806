#include "tokenizer/merge/merge_borders.h"

#include <string_view>
#include <utility>
#include <vector>

#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

struct Ends {
  uint32_t first = UINT32_MAX;
  uint32_t last = UINT32_MAX;
};

Ends EndsOf(std::string_view spelling) {
  if (spelling.empty()) return {};
  size_t last = spelling.size() - 1;
  while (last > 0 && IsTailByte(spelling[last])) --last;
  return {Utf8Decode(spelling, Utf8SequenceLength(spelling)),
          Utf8Decode(spelling.substr(last), spelling.size() - last)};
}

}  // namespace

MergeBorders::MergeBorders(const Bpe& model, uint32_t cut_before) : cut_before_(cut_before) {
  const Vocabulary& vocabulary = model.vocabulary();
  std::vector<Ends> ends(static_cast<size_t>(vocabulary.max_id()) + 1);
  for (TokenId id = 0; id <= vocabulary.max_id(); ++id) {
    ends[static_cast<size_t>(id)] = EndsOf(vocabulary.Spelling(id));
  }
  std::vector<uint64_t> pairs;
  model.ForEachMerge([&](TokenId left, TokenId right, Merge) {
    uint32_t a = ends[static_cast<size_t>(left)].last;
    uint32_t b = ends[static_cast<size_t>(right)].first;
    pairs.push_back(CharPairs::Of(a, b));
  });
  pairs_ = CharPairs(std::move(pairs));
}

std::optional<MergeBorders> MergeBorders::Restore(CompiledReader* in, uint32_t cut_before) {
  MergeBorders out(cut_before);
  if (!out.pairs_.Restore(in)) return std::nullopt;
  return out;
}

}  // namespace portico::tokenizer
