#include "tokenizer/merge_borders.h"

#include <bit>
#include <string_view>
#include <unordered_set>

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
  while (last > 0 && (static_cast<unsigned char>(spelling[last]) & 0xC0) == 0x80) --last;
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
  std::unordered_set<uint64_t> pairs;
  model.ForEachMerge([&](TokenId left, TokenId right, Merge) {
    uint32_t a = ends[static_cast<size_t>(left)].last;
    uint32_t b = ends[static_cast<size_t>(right)].first;
    pairs.insert(uint64_t{a} << 32 | b);
  });
  int log_bits = 12;
  while ((size_t{1} << log_bits) < pairs.size() * 16) ++log_bits;
  shift_ = 64 - log_bits;
  bits_.assign(size_t{1} << (log_bits - 6), 0);
  for (uint64_t pair : pairs) {
    uint64_t at = Hash(static_cast<uint32_t>(pair >> 32), static_cast<uint32_t>(pair)) >> shift_;
    bits_.Edit(at >> 6) |= uint64_t{1} << (at & 63);
  }
}

std::optional<MergeBorders> MergeBorders::Restore(CompiledReader* in, uint32_t cut_before) {
  MergeBorders out(cut_before);
  if (!in->Rows(&out.bits_) || !std::has_single_bit(out.bits_.size())) return std::nullopt;
  out.shift_ = 64 - 6 - std::countr_zero(out.bits_.size());
  return out;
}

}  // namespace portico::tokenizer
