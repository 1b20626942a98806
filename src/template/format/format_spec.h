// The part of a format behind the colon, "*>+#012,.3f": Python's format specification mini-language.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace portico::jinja {

struct FormatSpec {
  std::string fill = std::string(1, ' ');
  char align = '<';  // < > = ^
  char sign = 0;     // + - or space, where one is given
  bool no_negative_zero = false;
  bool alternate = false;
  char grouping = 0;       // , or _
  int64_t width = 0;       // code points
  int64_t precision = -1;  // -1 where none is given
  char type = 0;
};

// `type` and `align` hold where the text names none: ('s', '<') for texts, ('d', '>') for integers, (0, '>') for
// floats. Throws Failure for what Python refuses, LimitReached for a width above 100,000.
FormatSpec ParseFormatSpec(std::string_view text, char type, char align);

// The width or precision at the front of `text`, which is taken off; -1 where there is none.
int64_t TakeCount(std::string_view* text);
// The same width or precision; throws LimitReached above 100,000.
int64_t LimitedCount(int64_t count);

// The parts of a number's text: "-", "0x", "1234", ".5e+10".
struct NumberParts {
  std::string sign;
  std::string prefix;
  std::string digits;  // to be grouped; may be empty
  std::string rest;
};

// What stands in front of a number that is not negative goes by spec.sign.
void AppendNumber(const FormatSpec& spec, NumberParts parts, std::string* out);
void AppendText(const FormatSpec& spec, std::string_view text, std::string* out);

}  // namespace portico::jinja
