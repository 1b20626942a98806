#include "tokenizer/fused/place_sink.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tokenizer/fused/appender.h"
#include "tokenizer/fused/offset_trim.h"
#include "tokenizer/normalize/char_pages.h"

namespace portico::tokenizer {
namespace {

// What precedes the numbers of a packed stretch: characters, words begun, and what it is.
constexpr size_t kHeadWords = 3;
constexpr uint32_t kTrimmed = 1;
constexpr uint32_t kAscii = 2;  // characters are bytes, and not told again
constexpr uint32_t kHasTexts = 4;

void Trim(std::string_view text, uint32_t from, Span* span) {
  while (span->begin < span->end && text[span->begin - from] == ' ') ++span->begin;
  while (span->begin < span->end && text[span->end - from - 1] == ' ') --span->end;
}

// Relative to `base`.
uint16_t* PackSpans(const Span* from, size_t count, uint32_t base, uint16_t* to) {
  for (size_t i = 0; i < count; ++i) {
    to[2 * i] = static_cast<uint16_t>(from[i].begin - base);
    to[2 * i + 1] = static_cast<uint16_t>(from[i].end - base);
  }
  return to + 2 * count;
}

// The span of that number again.
struct UnpackedSpan {
  const uint16_t* from;
  uint32_t base;
  Span operator()(size_t i) const { return {from[2 * i] + base, from[2 * i + 1] + base}; }
};

}  // namespace

template <typename F>
void PlaceSink::ForEachList(F f) const {
  if (out_.bytes != nullptr) f(out_.bytes);
  if (out_.chars != nullptr) f(out_.chars);
  if (out_.words != nullptr) f(out_.words);
}

PlaceSink::PlaceSink(std::string_view text, const PlaceLists& lists, bool trims)
    : text_size_(text.size()),
      origin_(text.data()),
      out_(lists),
      trims_(trims),
      own_(std::exchange(Spare(), {})) {
  const size_t expected = text.size() / 4;
  ForEachList([&](auto* list) { MakeRoom(list->size() + expected, list); });
}

PlaceSink::~PlaceSink() {
  if (own_.bytes.capacity() > kMostKept || own_.blocks.capacity() > kMostKeptBytes) return;
  Drop();
  Spare() = std::move(own_);
}

PlaceSink::Lists& PlaceSink::Spare() {
  thread_local Lists spare;
  return spare;
}

void PlaceSink::Drop() {
  count_ = 0;
  done_ = 0;
  has_texts_ = false;
  hang_on_front_ = false;
}

void PlaceSink::Grow(size_t count) {
  constexpr size_t kLeast = 256;
  const size_t size = std::max(kLeast, count_ + std::max(count_, count));
  own_.bytes.resize(size);
  own_.chars.resize(size);
  own_.words.resize(size);
}

// `kParts`: the tokens may be parts of characters, and become whole ones.
template <bool kParts>
void PlaceSink::CountChars(std::string_view stretch, uint32_t from) {
  if (IsAscii(stretch)) {
    const uint32_t ahead = from - chars_;
    for (size_t i = done_; i < count_; ++i) {
      own_.chars[i] = {own_.bytes[i].begin - ahead, own_.bytes[i].end - ahead};
    }
    chars_ += static_cast<uint32_t>(stretch.size());
    return;
  }
  CharBlocks& blocks = own_.blocks;
  blocks.Count(stretch);
  for (size_t i = done_; i < count_; ++i) {
    Span& span = own_.bytes[i];
    uint32_t begin = span.begin - from;
    uint32_t end = span.end - from;
    if constexpr (kParts) {
      begin = blocks.BeginOf(begin);
      end = blocks.EndOf(end);
      span = {begin + from, end + from};
    }
    own_.chars[i] = {chars_ + blocks.Before(begin), chars_ + blocks.Before(end)};
  }
  chars_ += blocks.total();
}

template <bool kParts>
void PlaceSink::EndStretchOf(const char* begin, const char* end) {
  const std::string_view stretch(begin, static_cast<size_t>(end - begin));
  const uint32_t from = ByteAt(begin);
  if (trims_) {
    for (size_t i = done_; i < count_; ++i) Trim(stretch, from, &own_.bytes[i]);
  }
  CountChars<kParts>(stretch, from);
  Emit();
  const size_t done = ByteAt(end);
  if (done == 0 || done >= text_size_) return;
  ForEachList([&](auto* list) { Foresee(told_, done, text_size_ - done, list->size(), list); });
}

template void PlaceSink::EndStretchOf<false>(const char* begin, const char* end);
template void PlaceSink::EndStretchOf<true>(const char* begin, const char* end);

void PlaceSink::AddWhole(const char* begin, const char* end) {
  const std::string_view token(begin, static_cast<size_t>(end - begin));
  BeginStretch(begin);
  BeginWord();
  Add(begin, end);
  CountChars<false>(token, ByteAt(begin));
  if (trims_) {
    const OuterSpaces spaces = OuterSpacesOf(token);
    TrimSpan(spaces, &own_.bytes[count_ - 1]);
    TrimSpan(spaces, &own_.chars[count_ - 1]);
  }
  Emit();
}

void PlaceSink::AddStretch(const char* begin, const char* end, std::span<const Span> bytes,
                           std::span<const int32_t> words, uint32_t count) {
  BeginStretch(begin);
  const Rows rows = AddTokens(bytes.size());
  std::copy(bytes.begin(), bytes.end(), rows.bytes);
  for (size_t i = 0; i < words.size(); ++i) {
    rows.words[i] = words_ + static_cast<uint32_t>(words[i]) + 1;
  }
  words_ += count;
  EndStretch(begin, end);
}

void PlaceSink::Emit() {
  const size_t count = count_ - done_;
  auto append = [&](const std::vector<Span>& from, std::vector<Span>* to) {
    const auto begin = from.begin() + static_cast<ptrdiff_t>(done_);
    to->insert(to->end(), begin, begin + static_cast<ptrdiff_t>(count));
  };
  if (out_.bytes != nullptr) append(own_.bytes, out_.bytes);
  if (out_.chars != nullptr) append(own_.chars, out_.chars);
  if (out_.words != nullptr) {
    AppendEach(out_.words, count,
               [&](size_t i) { return static_cast<int32_t>(own_.words[done_ + i]) - 1; });
  }
  told_ += count;
  done_ = count_;
}

std::span<const uint32_t> PlaceSink::Pack(const Mark& mark, size_t bytes) {
  const size_t count = count_ - mark.place;
  const uint32_t chars = chars_ - mark.character;
  const bool ascii = chars == bytes;
  own_.packed.resize(kHeadWords + ((ascii ? 3 : 5) * count + 1) / 2);
  own_.packed[0] = chars;
  own_.packed[1] = words_ - mark.words;
  own_.packed[2] = (trims_ ? kTrimmed : 0) | (ascii ? kAscii : 0) | (has_texts_ ? kHasTexts : 0);
  auto* at = reinterpret_cast<uint16_t*>(own_.packed.data() + kHeadWords);
  at = PackSpans(own_.bytes.data() + mark.place, count, mark.byte, at);
  for (size_t i = 0; i < count; ++i) {
    *at++ = static_cast<uint16_t>(own_.words[mark.place + i] - mark.words);
  }
  if (!ascii) PackSpans(own_.chars.data() + mark.place, count, mark.character, at);
  return own_.packed;
}

bool PlaceSink::Copy(const char* begin, const TextCache::Found& found) {
  if (found.places.empty()) return false;
  const uint32_t* head = found.places.data();
  const uint32_t kind = head[2];
  if (((kind & kTrimmed) != 0) != trims_ || ((kind & kHasTexts) != 0 && out_.texts)) return false;
  const size_t count = found.ids.size();
  const auto* bytes = reinterpret_cast<const uint16_t*>(head + kHeadWords);
  const uint16_t* words = bytes + 2 * count;
  const uint16_t* chars = (kind & kAscii) != 0 ? bytes : words + count;
  const UnpackedSpan byte_span{bytes, ByteAt(begin)};
  const UnpackedSpan char_span{chars, chars_};
  if (out_.bytes != nullptr) AppendEach(out_.bytes, count, byte_span);
  if (out_.chars != nullptr) AppendEach(out_.chars, count, char_span);
  if (out_.words != nullptr) {
    const auto base = static_cast<int32_t>(words_) - 1;
    AppendEach(out_.words, count, [=](size_t i) { return base + words[i]; });
  }
  if (held_) {
    const Rows rows = AddTokens(count);
    for (size_t i = 0; i < count; ++i) {
      rows.bytes[i] = byte_span(i);
      own_.chars[done_ + i] = char_span(i);
      rows.words[i] = words_ + words[i];
    }
    has_texts_ |= (kind & kHasTexts) != 0;
    done_ = count_;
  }
  chars_ += head[0];
  words_ += head[1];
  told_ += count;
  return true;
}

void PlaceSink::BeginPrefixed(const char* copy, const char* original) {
  outer_ = {origin_,
            base_,
            told_,
            out_.bytes != nullptr ? out_.bytes->size() : 0,
            out_.chars != nullptr ? out_.chars->size() : 0,
            count_,
            DecodeChar(original).length};
  base_ = ByteAt(original) - 1;
  origin_ = copy;
  --chars_;
}

void PlaceSink::EndPrefixed() {
  const uint32_t at = base_ + 1;
  auto mend = [](uint32_t begin, uint32_t length, Span* span) {
    *span = {begin, span->end == begin ? begin + length : span->end};
  };
  if (told_ > outer_.told) {
    if (out_.bytes != nullptr) mend(at, outer_.first_length, &(*out_.bytes)[outer_.bytes]);
    if (out_.chars != nullptr) {
      Span& first = (*out_.chars)[outer_.chars];
      mend(first.begin + 1, 1, &first);
    }
    if (held_) {
      mend(at, outer_.first_length, &own_.bytes[outer_.place]);
      Span& first = own_.chars[outer_.place];
      mend(first.begin + 1, 1, &first);
    }
  }
  origin_ = outer_.origin;
  base_ = outer_.base;
}

}  // namespace portico::tokenizer
