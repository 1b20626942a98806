// What Python's str knows of characters: classes, case, code-point positions in UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace portico::jinja {

// Bytes of white space (str.isspace) at the start and at the end of the text.
size_t LeadingSpace(std::string_view text);
size_t TrailingSpace(std::string_view text);
bool IsSpace(uint32_t code_point);

// The code point at `at`; its length in bytes goes to `length` (1 and U+FFFD for a byte that begins none).
uint32_t CodePointAt(std::string_view text, size_t at, size_t* length);
// Start of the code point that ends before `at` (> 0).
size_t PreviousCodePoint(std::string_view text, size_t at);

// Number of code points, and the byte where code point `index` begins (the end where there is none).
size_t Length(std::string_view text);
size_t ByteOffset(std::string_view text, size_t index);
bool IsAscii(std::string_view text);

// Length in bytes of the identifier at the start, or 0. Digits may come first, as in Jinja's lexer.
size_t NameLength(std::string_view text);
// 0-35 for digits and letters, else 99.
int DigitValue(char c);
// Python's float() of a literal that is well-formed.
double ParseDouble(const std::string& text);

enum class CharacterClass : uint8_t {
  kAlpha,
  kDecimal,
  kDigit,
  kNumeric,
  kAlnum,
  kSpace,
  kUpper,
  kLower,
  kTitle,
  kCased,
  kPrintable,
  kWord,  // \w
  kIdentifierStart,
  kIdentifierPart,
};
bool IsA(CharacterClass kind, uint32_t code_point);

std::string Upper(std::string_view text);
std::string Lower(std::string_view text);
std::string CaseFold(std::string_view text);
std::string SwapCase(std::string_view text);
std::string Capitalize(std::string_view text);
std::string TitleCase(std::string_view text);

}  // namespace portico::jinja
