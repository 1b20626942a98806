// A text that remembers, byte by byte, which part of the original it came from. The rules by which
// that changes are those of Hugging Face's NormalizedString, because the offsets of an encoding
// follow from them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/normalization.h"
#include "tokenizer/encoding.h"

namespace portico::tokenizer {

// A range of bytes, and whether a pattern matched it.
struct Match {
  size_t begin;
  size_t end;
  bool is_match;
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// What a split keeps of `matches`, which cover a text from its begin to its end.
std::vector<std::pair<size_t, size_t>> ApplyBehavior(const std::vector<Match>& matches,
                                                     SplitBehavior behavior);

class NormalizedString {
 public:
  // The whole of `original`, valid UTF-8, as it is.
  explicit NormalizedString(std::string_view original);

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  // Where this part lies in the original, in bytes.
  Span original() const { return original_; }
  // Where text()[begin, end) came from, in bytes of the original.
  Span ToOriginal(size_t begin, size_t end) const;

  NormalizedString Slice(size_t begin, size_t end) const;

  // Replaces the text by `chars`; `removed_at_start` characters of it are gone before the first.
  void Transform(const std::vector<NormalizedChar>& chars, size_t removed_at_start);

  // Replaces the text; spans[i] says which bytes of the text so far the byte i of the new one stands for.
  void Assign(std::string text, const std::vector<Span>& spans);

  // Keeps the characters for which `keep` is true.
  template <typename Keep>
  void Filter(Keep keep);
  // Replaces each character by one other.
  template <typename Map>
  void Map1(Map map);

  void Normalize(NormalForm form);
  void Lowercase();
  void Prepend(std::string_view text);
  void Strip(bool left, bool right);
  // Replaces the matched ranges by `content`.
  void Replace(const std::vector<Match>& matches, std::string_view content);

 private:
  NormalizedString() = default;
  void TransformRange(size_t begin, size_t end, const std::vector<NormalizedChar>& chars,
                      size_t removed_at_start);

  std::string text_;
  std::vector<Span> alignment_;  // of each byte of text_
  Span original_;
};

// Appends to `text` what `chars` make of `source`, and to `origin`, for each byte, the part of `source` that it stands for,
// counted from `base`. The rules are those of Transform(). False where these do not say of just `source` what becomes of
// it; what was appended counts for nothing then.
bool AppendAligned(std::string_view source, std::span<const NormalizedChar> chars, uint32_t base,
                   std::string* text, std::vector<Span>* origin);

// The characters of valid UTF-8.
std::vector<uint32_t> CodePointsOf(std::string_view text);

template <typename Keep>
void NormalizedString::Filter(Keep keep) {
  std::vector<NormalizedChar> chars;
  int32_t removed = 0;
  size_t removed_at_start = 0;
  for (uint32_t c : CodePointsOf(text_)) {
    if (!keep(c)) {
      ++removed;
      continue;
    }
    if (chars.empty()) {
      removed_at_start = static_cast<size_t>(removed);
    } else {
      chars.back().change = -removed;
    }
    chars.push_back({c, 0});
    removed = 0;
  }
  if (!chars.empty()) chars.back().change = -removed;
  Transform(chars, removed_at_start);
}

template <typename Map>
void NormalizedString::Map1(Map map) {
  std::vector<NormalizedChar> chars;
  for (uint32_t c : CodePointsOf(text_)) chars.push_back({map(c), 0});
  Transform(chars, 0);
}

}  // namespace portico::tokenizer
