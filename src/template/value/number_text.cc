#include "template/value/number_text.h"

#include <cmath>
#include <limits>
#include <string>

#include "template/value/bigint.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

std::string_view Trim(std::string_view text) {
  text.remove_prefix(LeadingSpace(text));
  text.remove_suffix(TrailingSpace(text));
  return text;
}

// The digit that a decimal digit of any script is: they come in runs of ten.
char DecimalDigit(uint32_t c) {
  uint32_t first = c;
  while (IsA(CharacterClass::kDecimal, first - 1)) --first;
  return static_cast<char>('0' + (c - first) % 10);
}

// The text without white space at its ends, decimal digits of other scripts as those of ASCII; `scratch` holds it
// where there are any.
std::string_view Plain(std::string_view text, std::string* scratch) {
  text = Trim(text);
  if (IsAscii(text)) return text;
  for (size_t i = 0, length; i < text.size(); i += length) {
    const uint32_t c = CodePointAt(text, i, &length);
    if (c >= 0x80 && IsA(CharacterClass::kDecimal, c)) {
      scratch->push_back(DecimalDigit(c));
    } else {
      scratch->append(text.substr(i, length));
    }
  }
  return *scratch;
}

// Takes a sign off the front; true for minus.
bool TakeSign(std::string_view* text) {
  if (text->empty() || ((*text)[0] != '-' && (*text)[0] != '+')) return false;
  bool negative = (*text)[0] == '-';
  text->remove_prefix(1);
  return negative;
}

// Appends digits that may have single underscores between them; false for others.
bool TakeDigits(std::string_view* text, std::string* out, int base) {
  bool digit_before = false;
  while (!text->empty()) {
    char c = (*text)[0];
    if (DigitValue(c) < base) {
      out->push_back(c);
      digit_before = true;
    } else if (c == '_' && digit_before && text->size() > 1 && DigitValue((*text)[1]) < base) {
      digit_before = false;
    } else {
      break;
    }
    text->remove_prefix(1);
  }
  return digit_before;
}

}  // namespace

bool ParseInt(std::string_view text, int64_t base, Arena* arena, Value* out) {
  if (base != 0 && (base < 2 || base > 36)) return false;
  std::string scratch;
  text = Plain(text, &scratch);
  const bool negative = TakeSign(&text);
  int64_t prefix = 0;
  if (text.size() > 2 && text[0] == '0') {
    char letter = static_cast<char>(text[1] | 0x20);
    prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  }
  if (prefix != 0 && (base == prefix || base == 0)) {
    text.remove_prefix(2);
    if (text[0] == '_') text.remove_prefix(1);
    base = prefix;
  } else if (base == 0) {
    // Without a prefix a number with leading zeros is an error.
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != text.npos) {
      return false;
    }
    base = 10;
  }
  std::string digits;
  if (!TakeDigits(&text, &digits, static_cast<int>(base)) || !text.empty()) return false;
  *out = ParseInteger(digits, static_cast<int>(base), arena);
  if (negative) *out = NegateInteger(*out, arena);
  return true;
}

bool ParseFloat(std::string_view text, double* out) {
  std::string scratch;
  text = Plain(text, &scratch);
  const bool negative = TakeSign(&text);
  std::string word = Lower(text);
  if (word == "inf" || word == "infinity" || word == "nan") {
    *out = word == "nan" ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
    if (negative) *out = -*out;
    return true;
  }
  std::string number;
  const bool whole = TakeDigits(&text, &number, 10);
  bool fraction = false;
  if (!whole) number.push_back('0');
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    number.push_back('.');
    fraction = TakeDigits(&text, &number, 10);
    if (!fraction) number.push_back('0');
  }
  if (!whole && !fraction) return false;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    number.push_back('e');
    if (TakeSign(&text)) number.push_back('-');
    if (!TakeDigits(&text, &number, 10)) return false;
  }
  if (!text.empty()) return false;
  *out = ParseDouble(number);
  if (negative) *out = -*out;
  return true;
}

}  // namespace portico::jinja
