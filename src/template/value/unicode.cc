#include "template/value/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "template/value/unicode_tables.h"
#include "text/case_fold.h"
#include "text/utf8.h"

namespace portico::jinja {
namespace {

template <size_t N>
bool InRanges(const CodePointRange (&ranges)[N], uint32_t c) {
  auto it =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](uint32_t value, const CodePointRange& r) { return value < r.first; });
  return it != std::begin(ranges) && c <= std::prev(it)->last;
}

template <size_t N>
const CaseExpansion* Expansion(const CaseExpansion (&table)[N], uint32_t c) {
  auto it = std::lower_bound(std::begin(table), std::end(table), c,
                             [](const CaseExpansion& e, uint32_t value) { return e.from < value; });
  return it != std::end(table) && it->from == c ? it : nullptr;
}

void AppendExpansion(const CaseExpansion& expansion, std::string* out) {
  for (uint32_t c : expansion.to) {
    if (c != 0) AppendUtf8(c, out);
  }
}

void AppendUpper(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (const CaseExpansion* expansion = Expansion(kUpperExpansions, c)) {
    AppendExpansion(*expansion, out);
  } else {
    AppendUtf8(static_cast<uint32_t>(utf8proc_toupper(static_cast<int32_t>(c))), out);
  }
}

void AppendTitle(uint32_t c, std::string* out) {
  if (c < 0x80) {
    AppendUpper(c, out);
  } else if (const CaseExpansion* expansion = Expansion(kTitleExpansions, c)) {
    AppendExpansion(*expansion, out);
  } else {
    AppendUtf8(static_cast<uint32_t>(utf8proc_totitle(static_cast<int32_t>(c))), out);
  }
}

bool IsCaseIgnorable(uint32_t c) {
  switch (c) {
    case '\'':
    case '.':
    case ':':
    case '^':
    case '`':
    case 0xAD:
    case 0xB7:
    case 0x2018:
    case 0x2019:
    case 0x2024:
    case 0x2027:
      return true;
    default:
      break;
  }
  switch (utf8proc_category(static_cast<int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return false;
  }
}

// A sigma is final behind a cased letter and not before one, case-ignorable characters aside.
bool IsFinalSigma(std::string_view text, size_t at, size_t length) {
  bool cased_before = false;
  for (size_t i = at; i > 0;) {
    size_t start = PreviousCodePoint(text, i);
    size_t size;
    uint32_t c = CodePointAt(text, start, &size);
    i = start;
    if (IsCaseIgnorable(c)) continue;
    cased_before = IsA(CharacterClass::kCased, c);
    break;
  }
  if (!cased_before) return false;
  for (size_t i = at + length; i < text.size();) {
    size_t size;
    uint32_t c = CodePointAt(text, i, &size);
    i += size;
    if (!IsCaseIgnorable(c)) return !IsA(CharacterClass::kCased, c);
  }
  return true;
}

void AppendLower(std::string_view text, size_t at, uint32_t c, size_t length, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x3A3) {
    AppendUtf8(IsFinalSigma(text, at, length) ? 0x3C2 : 0x3C3, out);
  } else if (c == 0x130) {
    out->append("i\xCC\x87");
  } else {
    AppendUtf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<int32_t>(c))), out);
  }
}

// Calls f(position, code point, length) for every character.
template <typename F>
void ForEach(std::string_view text, F f) {
  for (size_t i = 0; i < text.size();) {
    size_t length;
    uint32_t c = CodePointAt(text, i, &length);
    f(i, c, length);
    i += length;
  }
}

bool IsLetter(int category) {
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsIdentifierPart(int category) {
  return IsLetter(category) || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_PC;
}

bool IsAsciiWord(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

bool IsSpace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t LeadingSpace(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    size_t length;
    if (!IsSpace(CodePointAt(text, i, &length))) break;
    i += length;
  }
  return i;
}

size_t TrailingSpace(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = PreviousCodePoint(text, end);
    size_t length;
    if (!IsSpace(CodePointAt(text, start, &length))) break;
    end = start;
  }
  return text.size() - end;
}

uint32_t CodePointAt(std::string_view text, size_t at, size_t* length) {
  unsigned char lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) {
    *length = 1;
    return lead;
  }
  std::string_view rest = text.substr(at);
  *length = Utf8SequenceLength(rest);
  if (*length == 0) {
    *length = 1;
    return 0xFFFD;
  }
  return Utf8Decode(rest, *length);
}

size_t PreviousCodePoint(std::string_view text, size_t at) {
  size_t start = at - 1;
  while (start > 0 && at - start < 4 && IsTailByte(text[start])) {
    --start;
  }
  size_t length;
  CodePointAt(text, start, &length);
  return start + length == at ? start : at - 1;
}

size_t Length(std::string_view text) { return CountCodePoints(text); }

size_t ByteOffset(std::string_view text, size_t index) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (IsTailByte(text[i])) continue;
    if (index == 0) return i;
    --index;
  }
  return text.size();
}

bool IsAscii(std::string_view text) {
  unsigned char any = 0;
  for (char c : text) any |= static_cast<unsigned char>(c);
  return any < 0x80;
}

size_t NameLength(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    size_t length;
    uint32_t c = CodePointAt(text, i, &length);
    if (c < 0x80 ? !IsAsciiWord(c) : !IsA(CharacterClass::kIdentifierPart, c)) break;
    i += length;
  }
  return i;
}

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

double ParseDouble(const std::string& text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    // Overflow or underflow: the exponent's sign tells.
    size_t exponent = text.find_first_of("eE");
    bool small =
        exponent != std::string::npos && exponent + 1 < text.size() && text[exponent + 1] == '-';
    value = small ? 0.0 : std::numeric_limits<double>::infinity();
    if (text.starts_with('-')) value = -value;
  }
  return value;
}

bool IsA(CharacterClass kind, uint32_t c) {
  const int category = utf8proc_category(static_cast<int32_t>(c));
  switch (kind) {
    case CharacterClass::kAlpha:
      return IsLetter(category);
    case CharacterClass::kDecimal:
      return category == UTF8PROC_CATEGORY_ND;
    case CharacterClass::kDigit:
      return category == UTF8PROC_CATEGORY_ND || InRanges(kDigits, c);
    case CharacterClass::kNumeric:
      return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
             category == UTF8PROC_CATEGORY_NO || InRanges(kIdeographicNumbers, c);
    case CharacterClass::kAlnum:
      return IsLetter(category) || IsA(CharacterClass::kNumeric, c);
    case CharacterClass::kSpace:
      return IsSpace(c);
    case CharacterClass::kUpper:
      return category == UTF8PROC_CATEGORY_LU || InRanges(kOtherUpper, c);
    case CharacterClass::kLower:
      return category == UTF8PROC_CATEGORY_LL || InRanges(kOtherLower, c);
    case CharacterClass::kTitle:
      return category == UTF8PROC_CATEGORY_LT;
    case CharacterClass::kCased:
      return category == UTF8PROC_CATEGORY_LT || IsA(CharacterClass::kUpper, c) ||
             IsA(CharacterClass::kLower, c);
    case CharacterClass::kPrintable:
      return c == ' ' || (category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS);
    case CharacterClass::kWord:
      return c == '_' || IsA(CharacterClass::kAlnum, c);
    case CharacterClass::kIdentifierStart:
      return c == '_' || IsLetter(category) || category == UTF8PROC_CATEGORY_NL;
    case CharacterClass::kIdentifierPart:
      return IsIdentifierPart(category) || c == 0xB7 || c == 0x387;
  }
  return false;
}

std::string Upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEach(text, [&](size_t, uint32_t c, size_t) { AppendUpper(c, &out); });
  return out;
}

std::string Lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEach(text, [&](size_t at, uint32_t c, size_t n) { AppendLower(text, at, c, n, &out); });
  return out;
}

std::string CaseFold(std::string_view text) {
  std::string out;
  ForEach(text, [&](size_t, uint32_t c, size_t) { AppendCaseFold(c, &out); });
  return out;
}

std::string SwapCase(std::string_view text) {
  std::string out;
  ForEach(text, [&](size_t at, uint32_t c, size_t n) {
    if (IsA(CharacterClass::kUpper, c)) {
      AppendLower(text, at, c, n, &out);
    } else if (IsA(CharacterClass::kLower, c)) {
      AppendUpper(c, &out);
    } else {
      AppendUtf8(c, &out);
    }
  });
  return out;
}

std::string Capitalize(std::string_view text) {
  std::string out;
  ForEach(text, [&](size_t at, uint32_t c, size_t n) {
    if (at == 0) {
      AppendTitle(c, &out);
    } else {
      AppendLower(text, at, c, n, &out);
    }
  });
  return out;
}

std::string TitleCase(std::string_view text) {
  std::string out;
  bool previous_cased = false;
  ForEach(text, [&](size_t at, uint32_t c, size_t n) {
    if (previous_cased) {
      AppendLower(text, at, c, n, &out);
    } else {
      AppendTitle(c, &out);
    }
    previous_cased = IsA(CharacterClass::kCased, c);
  });
  return out;
}

}  // namespace portico::jinja
