#include "parser/json/literal_word.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/json_writer.h"

namespace portico::parser {
namespace {

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }

// RFC 8259's number.
bool IsNumber(std::string_view word) {
  size_t i = word.starts_with('-') ? 1 : 0;
  size_t digits = i;
  while (i < word.size() && IsDecimal(word[i])) ++i;
  if (i == digits || (word[digits] == '0' && i > digits + 1)) return false;
  if (i < word.size() && word[i] == '.') {
    size_t fraction = ++i;
    while (i < word.size() && IsDecimal(word[i])) ++i;
    if (i == fraction) return false;
  }
  if (i < word.size() && (word[i] == 'e' || word[i] == 'E')) {
    ++i;
    if (i < word.size() && (word[i] == '+' || word[i] == '-')) ++i;
    size_t exponent = i;
    while (i < word.size() && IsDecimal(word[i])) ++i;
    if (i == exponent) return false;
  }
  return i == word.size();
}

// Digits with zeros before them, as models write months.
bool IsPaddedNumber(std::string_view word) {
  return word.size() > 1 && word[0] == '0' &&
         word.find_first_not_of("0123456789") == std::string_view::npos;
}

// Words of JSON and Python, and what they are in JSON.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"true", "true"},   {"True", "true"}, {"false", "false"},
    {"False", "false"}, {"null", "null"}, {"None", "null"}};

}  // namespace

bool AppendWord(std::string_view word, bool python, std::string* out) {
  const auto* const known =
      std::find_if(std::begin(kWords), std::end(kWords),
                   [&word](const auto& spelled) { return spelled.first == word; });
  if (known != std::end(kWords)) {
    out->append(known->second);
  } else if (IsNumber(word)) {
    out->append(word);
  } else if (word.starts_with('.') && IsNumber("0" + std::string(word))) {
    out->append("0").append(word);
  } else if (word.ends_with('.') && IsNumber(std::string(word) + "0")) {
    out->append(word).append("0");
  } else if (word.starts_with('+') && IsNumber(word.substr(1))) {
    out->append(word.substr(1));
  } else if (python && IsPaddedNumber(word)) {
    out->append(word.substr(std::min(word.find_first_not_of('0'), word.size() - 1)));
  } else {
    AppendJsonString(word, out);
    return false;
  }
  return true;
}

bool AppendWordPart(std::string_view word, std::string* out) {
  const bool number = word[0] != '+' && word[0] != '.' &&
                      word.find_first_not_of("-+.0123456789eE") == std::string_view::npos;
  if (number) {
    out->append(word);
    return true;
  }
  for (const auto& [spelled, json] : kWords) {
    if (!spelled.starts_with(word)) continue;
    out->append(json.substr(0, word.size()));
    return true;
  }
  return false;
}

}  // namespace portico::parser
