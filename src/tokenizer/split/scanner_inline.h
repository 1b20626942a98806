// The scanners themselves, for callers that inline them into their loop. Every function takes a
// position `p` before `end` in valid UTF-8 and returns where the match that begins there ends.
#pragma once

#include "tokenizer/split/ascii_run.h"
#include "tokenizer/split/char_class.h"

namespace portico::tokenizer::scan {

inline constexpr uint8_t kLetterOrNumber = kLetter | kNumber;
inline constexpr uint8_t kNotOther = kLetter | kNumber | kSpace;

// The end of the run of characters with any bit of `wanted`.
inline const char* RunOf(const CharClasses& classes, const char* p, const char* end,
                         uint8_t wanted) {
  while (p < end) {
    ClassedChar c = ClassAt(classes, p);
    if ((c.char_class & wanted) == 0) break;
    p += c.length;
  }
  return p;
}

// The end of the run of characters with no bit of `unwanted`.
inline const char* RunOfNot(const CharClasses& classes, const char* p, const char* end,
                            uint8_t unwanted) {
  while (p < end) {
    ClassedChar c = ClassAt(classes, p);
    if ((c.char_class & unwanted) != 0) break;
    p += c.length;
  }
  return p;
}

// \s+(?!\S)|\s+ at a white space: all of the run at the end of the text, else all but its last
// character.
inline const char* Spaces(const CharClasses& classes, const char* p, const char* end) {
  const char* last = p;
  const char* q = p;
  while (q < end) {
    ClassedChar c = ClassAt(classes, q);
    if ((c.char_class & kSpace) == 0) return last == p ? q : last;
    last = q;
    q += c.length;
  }
  return q;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at a white space.
inline const char* SpacesOrLines(const CharClasses& classes, const char* p, const char* end) {
  const char* last = p;
  const char* after_line = nullptr;
  const char* q = p;
  while (q < end) {
    ClassedChar c = ClassAt(classes, q);
    if ((c.char_class & kSpace) == 0) break;
    last = q;
    q += c.length;
    if ((c.char_class & kNewline) != 0) after_line = q;
  }
  if (after_line != nullptr) return after_line;
  if (q == end || last == p) return q;
  return last;
}

inline unsigned char LowerAscii(char c) {
  auto b = static_cast<unsigned char>(c);
  return b >= 'A' && b <= 'Z' ? static_cast<unsigned char>(b | 32) : b;
}

// '(s|t|re|ve|m|ll|d) at an apostrophe; `p` if there is none. Without case, U+017F counts as an s.
template <bool kIgnoreCase>
inline const char* Contraction(const char* p, const char* end) {
  if (end - p < 2) return p;
  auto at = [&](int i) {
    return kIgnoreCase ? LowerAscii(p[i]) : static_cast<unsigned char>(p[i]);
  };
  switch (at(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return p + 2;
    case 'r':
    case 'v':
      return end - p >= 3 && at(2) == 'e' ? p + 3 : p;
    case 'l':
      return end - p >= 3 && at(2) == 'l' ? p + 3 : p;
    case 0xC5:
      return kIgnoreCase && end - p >= 3 && at(2) == 0xBF ? p + 3 : p;
    default:
      return p;
  }
}

// The commonest match of all: a word of ASCII letters, with a space before it or none, and ASCII behind it. Null where
// the match is something else or may go on.
[[gnu::always_inline]] inline const char* PlainWord(const char* p, const char* end) {
  const char* begin = *p == ' ' ? p + 1 : p;
  const char* q = AsciiLetters<true>(begin, end);
  if (q == begin || (q < end && !IsAscii(*q))) return nullptr;
  return q;
}

inline const char* Gpt2(const CharClasses& classes, const char* p, const char* end) {
  if (const char* word = PlainWord(p, end)) return word;
  if (*p == '\'') {
    const char* q = Contraction<false>(p, end);
    if (q != p) return q;
  }
  const char* q = *p == ' ' ? p + 1 : p;
  if (q == end) return end;
  uint8_t c = ClassAt(classes, q).char_class;
  if ((c & kLetter) != 0) return RunOf(classes, q, end, kLetter);
  if ((c & kNumber) != 0) return RunOf(classes, q, end, kNumber);
  if ((c & kSpace) == 0) return RunOfNot(classes, q, end, kNotOther);
  return Spaces(classes, p, end);
}

template <int kDigits>
inline const char* Numbers(const CharClasses& classes, const char* p, const char* end) {
  for (int n = 0; n < kDigits && p < end; ++n) {
    ClassedChar c = ClassAt(classes, p);
    if ((c.char_class & kNumber) == 0) break;
    p += c.length;
  }
  return p;
}

inline const char* LineBreaks(const char* p, const char* end, bool slashes) {
  while (p < end && (*p == '\r' || *p == '\n' || (slashes && *p == '/'))) ++p;
  return p;
}

template <int kDigits>
inline const char* Cl100k(const CharClasses& classes, const char* p, const char* end) {
  if (const char* word = PlainWord(p, end)) return word;
  if (*p == '\'') {
    const char* q = Contraction<true>(p, end);
    if (q != p) return q;
  }
  ClassedChar c = ClassAt(classes, p);
  if ((c.char_class & kLetter) != 0) return RunOf(classes, p + c.length, end, kLetter);
  if ((c.char_class & kNumber) != 0) {
    return Numbers<kDigits - 1>(classes, p + c.length, end);
  }
  const char* next = p + c.length;
  uint8_t n = next < end ? ClassAt(classes, next).char_class : uint8_t{kSpace};
  if ((c.char_class & kNewline) == 0 && (n & kLetter) != 0) {
    return RunOf(classes, next, end, kLetter);
  }
  if ((c.char_class & kSpace) == 0) {
    return LineBreaks(RunOfNot(classes, next, end, kNotOther), end, false);
  }
  if (*p == ' ' && (n & kNotOther) == 0) {
    return LineBreaks(RunOfNot(classes, next, end, kNotOther), end, false);
  }
  return SpacesOrLines(classes, p, end);
}

// [upper]*[lower]+ or, failing that, [upper]+[lower]* at `p`; null if neither matches. `*whole`
// tells whether it was the first.
inline const char* CasedWord(const CharClasses& classes, const char* p, const char* end,
                             bool* whole) {
  const char* after_both = nullptr;  // behind the last character of the run that is in both classes
  const char* q = p;
  while (q < end) {
    ClassedChar c = ClassAt(classes, q);
    if ((c.char_class & kUpper) == 0) {
      if ((c.char_class & kLower) == 0) break;
      *whole = true;
      return RunOf(classes, q + c.length, end, kLower);
    }
    q += c.length;
    if ((c.char_class & kLower) != 0) after_both = q;
  }
  *whole = after_both != nullptr;
  if (*whole) return after_both;
  return q == p ? nullptr : q;
}

inline const char* O200k(const CharClasses& classes, const char* p, const char* end) {
  // A capital at most, then lower case, and no contraction behind: all that one match takes.
  const char* first = *p == ' ' ? p + 1 : p;
  if (first < end && *first >= 'A' && *first <= 'Z') ++first;
  const char* plain = AsciiLetters<false>(first, end);
  if (plain > first && (plain == end || (IsAscii(*plain) && *plain != '\''))) return plain;
  ClassedChar c = ClassAt(classes, p);
  const char* next = p + c.length;
  const char* word = nullptr;
  bool whole = false;
  if ((c.char_class & (kNewline | kLetterOrNumber)) == 0) {
    // The optional character before a word. A mark may also be the word itself, which only counts
    // where the longer way has no lower-case end.
    if (next < end) word = CasedWord(classes, next, end, &whole);
    if (!whole && (c.char_class & kMark) != 0) {
      bool bare_whole = false;
      const char* bare = CasedWord(classes, p, end, &bare_whole);
      if (bare_whole || word == nullptr) word = bare;
    }
  } else if ((c.char_class & kLetter) != 0) {
    word = CasedWord(classes, p, end, &whole);
  }
  if (word != nullptr) {
    return word < end && *word == '\'' ? Contraction<true>(word, end) : word;
  }
  if ((c.char_class & kNumber) != 0) return Numbers<2>(classes, next, end);
  if ((c.char_class & kSpace) == 0) {
    return LineBreaks(RunOfNot(classes, next, end, kNotOther), end, true);
  }
  if (*p == ' ' && next < end && (ClassAt(classes, next).char_class & kNotOther) == 0) {
    return LineBreaks(RunOfNot(classes, next, end, kNotOther), end, true);
  }
  return SpacesOrLines(classes, p, end);
}

inline bool IsAsciiLetter(char c) {
  unsigned char b = LowerAscii(c);
  return b >= 'a' && b <= 'z';
}

// DeepSeek V3's third pattern; `p` itself where nothing matches.
inline const char* DeepSeekWord(const CharClasses& classes, const char* p, const char* end) {
  if (const char* word = PlainWord(p, end)) return word;
  ClassedChar c = ClassAt(classes, p);
  const char* next = p + c.length;
  constexpr uint8_t kWord = kLetter | kMark;
  if ((c.char_class & kPunctSymbol) != 0) {
    if (c.length == 1 && next < end && IsAsciiLetter(*next)) {
      do ++next;
      while (next < end && IsAsciiLetter(*next));
      return next;
    }
    return LineBreaks(RunOf(classes, next, end, kPunctSymbol), end, false);
  }
  if ((c.char_class & kWord) != 0) return RunOf(classes, next, end, kWord);
  uint8_t n = next < end ? ClassAt(classes, next).char_class : uint8_t{0};
  if ((c.char_class & kNewline) == 0 && (n & kWord) != 0) return RunOf(classes, next, end, kWord);
  if (*p == ' ' && (n & kPunctSymbol) != 0) {
    return LineBreaks(RunOf(classes, next, end, kPunctSymbol), end, false);
  }
  if ((c.char_class & kSpace) != 0) return SpacesOrLines(classes, p, end);
  return p;
}

// U+4E00..U+9FA5, U+3040..U+30FF: three bytes each.
inline bool IsDeepSeekCjk(const char* p) {
  auto b = reinterpret_cast<const unsigned char*>(p);
  if (b[0] == 0xE3) return b[1] >= 0x81 && b[1] <= 0x83;
  if (b[0] < 0xE4 || b[0] > 0xE9) return false;
  uint32_t c = (uint32_t{b[0]} & 15) << 12 | (uint32_t{b[1]} & 63) << 6 | (b[2] & 63);
  return c >= 0x4E00 && c <= 0x9FA5;
}

}  // namespace portico::tokenizer::scan
