#include "tokenizer/place_sink.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tokenizer/char_begins.h"
#include "tokenizer/char_pages.h"
#include "tokenizer/offset_trim.h"

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

void UnpackSpans(const uint16_t* from, size_t count, uint32_t base, Span* to) {
  for (size_t i = 0; i < count; ++i) to[i] = {from[2 * i] + base, from[2 * i + 1] + base};
}
void UnpackSpans(const uint16_t* from, size_t count, uint32_t base, Appender<Span>* to) {
  UnpackSpans(from, count, base, to->Room(count));
  to->Filled(count);
}
void UnpackSpans(const uint16_t* from, size_t count, uint32_t base, std::vector<Span>* to) {
  to->resize(to->size() + count);
  UnpackSpans(from, count, base, to->data() + to->size() - count);
}

}  // namespace

PlaceSink::PlaceSink(std::string_view text, const PlaceLists& lists, bool trims)
    : origin_(text.data()),
      wants_texts_(lists.texts),
      trims_(trims),
      own_(std::exchange(Spare(), {})) {
  const size_t expected = text.size() / 4;
  if (lists.bytes != nullptr) out_bytes_.emplace(lists.bytes, expected);
  if (lists.chars != nullptr) out_chars_.emplace(lists.chars, expected);
  if (lists.words != nullptr) out_words_.emplace(lists.words, expected);
}

PlaceSink::~PlaceSink() {
  if (own_.bytes.capacity() > kMostKept || own_.begins.capacity() > kMostKept) return;
  Drop();
  Spare() = std::move(own_);
}

PlaceSink::Lists& PlaceSink::Spare() {
  thread_local Lists spare;
  return spare;
}

void PlaceSink::Drop() {
  own_.bytes.clear();
  own_.chars.clear();
  own_.words.clear();
  done_ = 0;
  has_texts_ = false;
}

void PlaceSink::CountChars(std::string_view stretch, uint32_t from) {
  const size_t first = own_.chars.size();
  own_.chars.resize(own_.bytes.size());
  if (IsAscii(stretch)) {
    const uint32_t ahead = from - chars_;
    for (size_t i = first; i < own_.bytes.size(); ++i) {
      own_.chars[i] = {own_.bytes[i].begin - ahead, own_.bytes[i].end - ahead};
    }
    chars_ += static_cast<uint32_t>(stretch.size());
    return;
  }
  // A place may be the stretch's end.
  const size_t blocks = stretch.size() / 64 + 1;
  own_.begins.resize(blocks);
  own_.before.resize(blocks);
  uint32_t count = chars_;
  for (size_t i = 0; i < blocks; ++i) {
    own_.begins[i] = CharBeginsIn(stretch.substr(i * 64, 64));
    own_.before[i] = count;
    count += static_cast<uint32_t>(std::popcount(own_.begins[i]));
  }
  auto chars_before = [this](uint32_t at) {
    uint64_t in_front = own_.begins[at / 64] & ((uint64_t{1} << at % 64) - 1);
    return own_.before[at / 64] + static_cast<uint32_t>(std::popcount(in_front));
  };
  // Most begin where the one before ends.
  uint32_t last_end = from;
  uint32_t last_chars = chars_;
  for (size_t i = first; i < own_.bytes.size(); ++i) {
    const Span& span = own_.bytes[i];
    const uint32_t begin = span.begin == last_end ? last_chars : chars_before(span.begin - from);
    last_chars = chars_before(span.end - from);
    own_.chars[i] = {begin, last_chars};
    last_end = span.end;
  }
  chars_ = count;
}

void PlaceSink::EndStretch(const char* begin, const char* end) {
  const std::string_view stretch(begin, static_cast<size_t>(end - begin));
  const uint32_t from = ByteAt(begin);
  if (trims_) {
    for (size_t i = done_; i < own_.bytes.size(); ++i) Trim(stretch, from, &own_.bytes[i]);
  }
  CountChars(stretch, from);
  Emit();
}

void PlaceSink::AddWhole(const char* begin, const char* end) {
  const std::string_view token(begin, static_cast<size_t>(end - begin));
  BeginStretch(begin);
  BeginWord();
  Add(begin, end);
  CountChars(token, ByteAt(begin));
  if (trims_) {
    const OuterSpaces spaces = OuterSpacesOf(token);
    TrimSpan(spaces, &own_.bytes.back());
    TrimSpan(spaces, &own_.chars.back());
  }
  Emit();
}

void PlaceSink::AddStretch(const char* begin, const char* end, std::span<const Span> bytes,
                           std::span<const int32_t> words, uint32_t count) {
  BeginStretch(begin);
  own_.bytes.insert(own_.bytes.end(), bytes.begin(), bytes.end());
  for (int32_t word : words) own_.words.push_back(words_ + static_cast<uint32_t>(word) + 1);
  words_ += count;
  EndStretch(begin, end);
}

void PlaceSink::Emit() {
  const size_t count = own_.bytes.size() - done_;
  if (out_bytes_) out_bytes_->Append(own_.bytes.data() + done_, count);
  if (out_chars_) out_chars_->Append(own_.chars.data() + done_, count);
  if (out_words_) {
    int32_t* to = out_words_->Room(count);
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<int32_t>(own_.words[done_ + i]) - 1;
    out_words_->Filled(count);
  }
  told_ += count;
  done_ = own_.bytes.size();
}

std::span<const uint32_t> PlaceSink::Pack(const Mark& mark, size_t bytes) {
  const size_t count = own_.bytes.size() - mark.place;
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
  if (((kind & kTrimmed) != 0) != trims_ || ((kind & kHasTexts) != 0 && wants_texts_)) return false;
  const size_t count = found.ids.size();
  const auto* bytes = reinterpret_cast<const uint16_t*>(head + kHeadWords);
  const uint16_t* words = bytes + 2 * count;
  const uint16_t* chars = (kind & kAscii) != 0 ? bytes : words + count;
  if (out_bytes_) UnpackSpans(bytes, count, ByteAt(begin), &*out_bytes_);
  if (out_chars_) UnpackSpans(chars, count, chars_, &*out_chars_);
  if (out_words_) {
    int32_t* to = out_words_->Room(count);
    const auto base = static_cast<int32_t>(words_) - 1;
    for (size_t i = 0; i < count; ++i) to[i] = base + words[i];
    out_words_->Filled(count);
  }
  if (held_) {
    UnpackSpans(bytes, count, ByteAt(begin), &own_.bytes);
    UnpackSpans(chars, count, chars_, &own_.chars);
    for (size_t i = 0; i < count; ++i) own_.words.push_back(words_ + words[i]);
    has_texts_ |= (kind & kHasTexts) != 0;
    done_ = own_.bytes.size();
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
            out_bytes_ ? out_bytes_->size() : 0,
            out_chars_ ? out_chars_->size() : 0,
            own_.bytes.size(),
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
    if (out_bytes_) mend(at, outer_.first_length, &(*out_bytes_)[outer_.bytes]);
    if (out_chars_) {
      Span& first = (*out_chars_)[outer_.chars];
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
