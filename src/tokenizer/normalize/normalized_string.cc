#include "tokenizer/normalize/normalized_string.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

size_t LengthAt(std::string_view text, size_t at) {
  auto lead = static_cast<unsigned char>(text[at]);
  size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(length, text.size() - at);
}

// Contiguous and the two merging behaviours: a piece joins the one before when `joins(is_match,
// previous)`.
template <typename Joins>
std::vector<std::pair<size_t, size_t>> Fold(const std::vector<Match>& matches, Joins joins) {
  std::vector<std::pair<size_t, size_t>> pieces;
  bool previous = false;
  for (const Match& m : matches) {
    if (joins(m.is_match, previous) && !pieces.empty()) {
      pieces.back().second = m.end;
    } else {
      pieces.emplace_back(m.begin, m.end);
    }
    previous = m.is_match;
  }
  return pieces;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> ApplyBehavior(const std::vector<Match>& matches,
                                                     SplitBehavior behavior) {
  std::vector<std::pair<size_t, size_t>> pieces;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      for (const Match& m : matches) pieces.emplace_back(m.begin, m.end);
      return pieces;
    case SplitBehavior::kRemoved:
      for (const Match& m : matches) {
        if (!m.is_match) pieces.emplace_back(m.begin, m.end);
      }
      return pieces;
    case SplitBehavior::kContiguous:
      return Fold(matches, [](bool is_match, bool previous) { return is_match == previous; });
    case SplitBehavior::kMergedWithPrevious:
      return Fold(matches, [](bool is_match, bool previous) { return is_match && !previous; });
    case SplitBehavior::kMergedWithNext: {
      bool previous = false;
      for (auto m = matches.rbegin(); m != matches.rend(); ++m) {
        if (m->is_match && !previous && !pieces.empty()) {
          pieces.back().first = m->begin;
        } else {
          pieces.emplace_back(m->begin, m->end);
        }
        previous = m->is_match;
      }
      std::reverse(pieces.begin(), pieces.end());
      return pieces;
    }
  }
  return pieces;
}

std::vector<uint32_t> CodePointsOf(std::string_view text) {
  std::vector<uint32_t> out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t length = LengthAt(text, at);
    out.push_back(Utf8Decode(text.substr(at, length), length));
    at += length;
  }
  return out;
}

bool AppendAligned(std::string_view source, std::span<const NormalizedChar> chars, uint32_t base,
                   std::string* text, std::vector<Span>* origin) {
  size_t at = 0;
  Span last{0, 0};  // the character of the source that was taken last
  bool all = true;
  auto take = [&] {
    all = all && at < source.size();
    if (!all) return;
    const size_t length = LengthAt(source, at);
    last = {base + static_cast<uint32_t>(at), base + static_cast<uint32_t>(at + length)};
    at += length;
  };
  for (const NormalizedChar& c : chars) {
    if (c.change <= 0) take();
    if (at == 0) return false;
    const Span span = last;
    for (int32_t gone = c.change; gone < 0; ++gone) take();
    const size_t size = text->size();
    AppendUtf8(c.code_point, text);
    origin->insert(origin->end(), text->size() - size, span);
  }
  return all && at == source.size();
}

NormalizedString::NormalizedString(std::string_view original)
    : text_(original), original_{0, static_cast<uint32_t>(original.size())} {
  alignment_.reserve(original.size());
  for (uint32_t at = 0; at < original.size();) {
    auto length = static_cast<uint32_t>(LengthAt(original, at));
    for (uint32_t i = 0; i < length; ++i) alignment_.push_back({at, at + length});
    at += length;
  }
}

Span NormalizedString::ToOriginal(size_t begin, size_t end) const {
  if (begin >= end || end > alignment_.size()) {
    return {original_.begin + static_cast<uint32_t>(begin),
            original_.begin + static_cast<uint32_t>(end)};
  }
  return {alignment_[begin].begin, alignment_[end - 1].end};
}

NormalizedString NormalizedString::Slice(size_t begin, size_t end) const {
  NormalizedString part;
  part.text_ = text_.substr(begin, end - begin);
  part.alignment_.assign(alignment_.begin() + static_cast<ptrdiff_t>(begin),
                         alignment_.begin() + static_cast<ptrdiff_t>(end));
  part.original_ = ToOriginal(begin, end);
  return part;
}

void NormalizedString::Transform(const std::vector<NormalizedChar>& chars,
                                 size_t removed_at_start) {
  if (alignment_.empty()) return;
  // Bytes at the front that stand for nothing in the original are not part of what is replaced.
  size_t begin = 0;
  while (begin < alignment_.size() && alignment_[begin].begin == alignment_[begin].end) ++begin;
  TransformRange(begin, alignment_.size(), chars, removed_at_start);
}

void NormalizedString::Assign(std::string text, const std::vector<Span>& spans) {
  std::vector<Span> alignment;
  alignment.reserve(spans.size());
  for (Span s : spans) alignment.push_back(ToOriginal(s.begin, s.end));
  text_ = std::move(text);
  alignment_ = std::move(alignment);
}

void NormalizedString::TransformRange(size_t begin, size_t end,
                                      const std::vector<NormalizedChar>& chars,
                                      size_t removed_at_start) {
  std::string text = text_.substr(0, begin);
  std::vector<Span> alignment(alignment_.begin(),
                              alignment_.begin() + static_cast<ptrdiff_t>(begin));
  size_t at = begin;  // in the old text
  auto skip = [&](size_t count) {
    for (; count > 0 && at < end; --count) at += LengthAt(text_, at);
  };
  skip(removed_at_start);
  for (const NormalizedChar& c : chars) {
    Span span{original_.begin, original_.begin};
    if (c.change > 0) {
      if (at >= 1) span = alignment_[at - 1];
    } else {
      if (at < alignment_.size()) span = alignment_[at];
      skip(1 + static_cast<size_t>(-c.change));
    }
    AppendUtf8(c.code_point, &text);
    alignment.resize(text.size(), span);
  }
  text.append(text_, end);
  alignment.insert(alignment.end(), alignment_.begin() + static_cast<ptrdiff_t>(end),
                   alignment_.end());
  text_ = std::move(text);
  alignment_ = std::move(alignment);
}

void NormalizedString::Normalize(NormalForm form) {
  if (form == NormalForm::kNfc && IsSurelyNfc(text_)) return;
  std::vector<NormalizedChar> chars;
  NormalizeTo(form, text_, &chars);
  Transform(chars, 0);
}

void NormalizedString::Lowercase() {
  std::vector<NormalizedChar> chars;
  for (uint32_t c : CodePointsOf(text_)) {
    if (c == 0x130) {
      chars.push_back({'i', 0});
      chars.push_back({0x307, 1});
    } else {
      chars.push_back({ToLowercase(c), 0});
    }
  }
  Transform(chars, 0);
}

void NormalizedString::Prepend(std::string_view text) {
  if (text_.empty()) return;
  std::vector<NormalizedChar> chars;
  for (uint32_t c : CodePointsOf(text)) chars.push_back({c, chars.empty() ? 0 : 1});
  size_t first = LengthAt(text_, 0);
  chars.push_back({Utf8Decode(text_, first), 1});
  TransformRange(0, first, chars, 0);
}

void NormalizedString::Strip(bool left, bool right) {
  std::vector<uint32_t> all = CodePointsOf(text_);
  size_t leading = 0;
  size_t trailing = 0;
  while (left && leading < all.size() && PropertiesOf(all[leading]).is_space()) ++leading;
  while (right && trailing < all.size() &&
         PropertiesOf(all[all.size() - 1 - trailing]).is_space()) {
    ++trailing;
  }
  if (leading == 0 && trailing == 0) return;
  std::vector<NormalizedChar> chars;
  for (size_t i = leading; i + trailing < all.size(); ++i) {
    // The reference counts this last place in bytes; where the text has wider characters none is
    // marked.
    bool last = i == text_.size() - trailing - 1;
    chars.push_back({all[i], last ? -static_cast<int32_t>(trailing) : 0});
  }
  Transform(chars, leading);
}

void NormalizedString::Replace(const std::vector<Match>& matches, std::string_view content) {
  std::string text;
  std::vector<Span> alignment;
  text.reserve(text_.size());
  alignment.reserve(alignment_.size());
  for (const Match& m : matches) {
    if (m.is_match) {
      Span span{original_.begin, original_.begin};
      if (m.end >= 1) span = alignment_[m.end - 1];
      text.append(content);
      alignment.resize(text.size(), span);
    } else {
      text.append(text_, m.begin, m.end - m.begin);
      alignment.insert(alignment.end(), alignment_.begin() + static_cast<ptrdiff_t>(m.begin),
                       alignment_.begin() + static_cast<ptrdiff_t>(m.end));
    }
  }
  text_ = std::move(text);
  alignment_ = std::move(alignment);
}

}  // namespace portico::tokenizer
