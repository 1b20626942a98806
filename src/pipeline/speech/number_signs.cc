#include "pipeline/speech/number_signs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "text/utf8.h"

namespace portico::pipeline {
namespace {

struct Currency {
  std::string_view sign;
  std::string_view one;
  std::string_view many;
};
// "$" is read by the voice.
constexpr Currency kCurrencies[] = {
    {"$", "", ""},
    {"\xC2\xA3", "pound", "pounds"},
    {"\xC2\xA5", "yen", "yen"},
    {"\xE2\x82\xAC", "euro", "euros"},
    {"\xE2\x82\xB9", "rupee", "rupees"},
    {"\xE2\x82\xA9", "won", "won"},
    {"\xE2\x82\xAA", "shekel", "shekels"},
    {"\xE2\x82\xBD", "rouble", "roubles"},
    {"\xE2\x82\xBA", "lira", "lira"},
    {"\xE2\x82\xBF", "bitcoin", "bitcoins"},
};

struct Sign {
  std::string_view sign;
  std::string_view spoken;
};
// Decomposed, each is the sign that it negates.
constexpr Sign kNegations[] = {
    {"\xE2\x89\xA0", " is not "},
    {"\xE2\x89\xA2", " is not identical to "},
    {"\xE2\x89\xAE", " is not less than "},
    {"\xE2\x89\xAF", " is not greater than "},
};
constexpr Sign kFractions[] = {
    {"\xC2\xBC", "one quarter"},      {"\xC2\xBD", "one half"},
    {"\xC2\xBE", "three quarters"},   {"\xE2\x85\x93", "one third"},
    {"\xE2\x85\x94", "two thirds"},   {"\xE2\x85\x95", "one fifth"},
    {"\xE2\x85\x9B", "one eighth"},   {"\xE2\x85\x9C", "three eighths"},
    {"\xE2\x85\x9D", "five eighths"}, {"\xE2\x85\x9E", "seven eighths"},
};
constexpr Sign kSuperscripts[] = {
    {"\xC2\xB9", "1"},     {"\xC2\xB2", "2"},     {"\xC2\xB3", "3"},     {"\xE2\x81\xB0", "0"},
    {"\xE2\x81\xB4", "4"}, {"\xE2\x81\xB5", "5"}, {"\xE2\x81\xB6", "6"}, {"\xE2\x81\xB7", "7"},
    {"\xE2\x81\xB8", "8"}, {"\xE2\x81\xB9", "9"},
};
constexpr Sign kSuperscriptSigns[] = {{"\xE2\x81\xBA", ""}, {"\xE2\x81\xBB", "minus "}};
constexpr std::string_view kEnDash = "\xE2\x80\x93";
constexpr std::array<std::string_view, 4> kMagnitudes = {" thousand", " million", " billion",
                                                         " trillion"};
// Behind an amount: "€5m".
constexpr Sign kShortMagnitudes[] = {{"k", " thousand"}, {"K", " thousand"}, {"bn", " billion"},
                                     {"m", " million"},  {"M", " million"},  {"B", " billion"},
                                     {"tn", " trillion"}};
constexpr Sign kWrittenFractions[] = {{"1/2", "one half"},     {"1/3", "one third"},
                                      {"2/3", "two thirds"},   {"1/4", "one quarter"},
                                      {"1/5", "one fifth"},    {"3/4", "three quarters"},
                                      {"1/8", "one eighth"},   {"3/8", "three eighths"},
                                      {"5/8", "five eighths"}, {"7/8", "seven eighths"}};

constexpr std::string_view kMicro = "\xC2\xB5";
// Of U+03B1 and the letters behind it; the capitals begin at U+0391.
constexpr std::array<std::string_view, 25> kGreek = {
    "alpha", "beta",   "gamma",   "delta", "epsilon", "zeta",    "eta",  "theta", "iota",
    "kappa", "lambda", "mu",      "nu",    "xi",      "omicron", "pi",   "rho",   "sigma",
    "sigma", "tau",    "upsilon", "phi",   "chi",     "psi",     "omega"};
constexpr uint32_t kGreekSmall = 0x3B1;
constexpr uint32_t kGreekCapital = 0x391;

template <typename Table>
const auto* FindSign(const Table& table, std::string_view text) {
  const auto* found = std::find_if(std::begin(table), std::end(table), [text](const auto& entry) {
    return text.starts_with(entry.sign);
  });
  return found == std::end(table) ? nullptr : found;
}

bool StartsWithDigit(std::string_view text) {
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text.front()));
}

bool StartsWithLetter(std::string_view text) {
  return !text.empty() && absl::ascii_isalpha(static_cast<unsigned char>(text.front()));
}

bool EndsWithDigit(std::string_view text) {
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text.back()));
}

// The number that `text` begins with: "1,234.50", but not "5," or "5.".
std::string_view DigitsOf(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const bool separates = (text[end] == ',' || text[end] == '.') && end > 0;
    if (!StartsWithDigit(text.substr(end + (separates ? 1 : 0)))) break;
    ++end;
  }
  return text.substr(0, end);
}

struct Quantity {
  std::string_view digits;     // empty: none
  std::string_view magnitude;  // " million", or empty
  size_t length = 0;
};

// The number that `text` begins with, and "million" or "m" behind it.
Quantity QuantityOf(std::string_view text) {
  Quantity found;
  found.digits = DigitsOf(text);
  found.length = found.digits.size();
  if (found.digits.empty()) return found;
  const std::string_view rest = text.substr(found.length);
  for (const std::string_view magnitude : kMagnitudes) {
    if (!rest.starts_with(magnitude)) continue;
    found.magnitude = magnitude;
    found.length += magnitude.size();
    return found;
  }
  const Sign* sign = FindSign(kShortMagnitudes, rest);
  if (sign == nullptr) return found;
  const std::string_view behind = rest.substr(sign->sign.size());
  if (StartsWithDigit(behind) || StartsWithLetter(behind)) return found;  // "€5meal"
  found.magnitude = sign->spoken;
  found.length += sign->sign.size();
  return found;
}

// "–10" of a range, or "-10" where no date goes on behind it: the length of the dash; 0 if `text` begins with none.
size_t DashOfRange(std::string_view text) {
  const size_t dash = text.starts_with(kEnDash) ? kEnDash.size() : text.starts_with('-') ? 1 : 0;
  if (dash == 0) return 0;
  const Quantity number = QuantityOf(text.substr(dash));
  const std::string_view rest = text.substr(dash + number.length);
  return number.digits.empty() || rest.starts_with('-') || rest.starts_with(kEnDash) ? 0 : dash;
}

// "5 euros" of the "€5" that `text` begins with, "5 to 10 euros" of "€5–10", "5 million euros" of "€5m", and the length
// there; 0 if it is none.
size_t AppendAmount(std::string_view text, std::string* out) {
  const Currency* currency = FindSign(kCurrencies, text);
  if (currency == nullptr) return 0;
  size_t length = currency->sign.size();
  if (text.substr(length).starts_with(' ')) ++length;
  const Quantity number = QuantityOf(text.substr(length));
  if (number.digits.empty()) return 0;
  if (currency->many.empty()) {  // the voice says it behind the number and its magnitude
    if (number.magnitude.empty()) return 0;
    *out += currency->sign;
  }
  *out += number.digits;
  *out += number.magnitude;
  length += number.length;
  if (currency->many.empty()) return length;
  const size_t dash = DashOfRange(text.substr(length));
  if (dash > 0) {
    const Quantity last = QuantityOf(text.substr(length + dash));
    *out += " to ";
    *out += last.digits;
    *out += last.magnitude;
    length += dash + last.length;
  }
  *out += ' ';
  const bool one = number.digits == "1" && number.magnitude.empty() && dash == 0;
  *out += one ? currency->one : currency->many;
  return length;
}

// Of superscripts behind a number, a letter or a bracket; alone they are notes, and with the sign
// behind them, or with nothing else, the charge of an ion.
size_t AppendPower(std::string_view text, std::string* out) {
  const bool base =
      !out->empty() &&
      (absl::ascii_isalnum(static_cast<unsigned char>(out->back())) || out->back() == ')');
  if (!base) return 0;  // before a run of them is read: the next byte would read it again
  std::string power;
  size_t length = 0;
  if (const Sign* sign = FindSign(kSuperscriptSigns, text)) {
    power += sign->spoken;
    length += sign->sign.size();
  }
  const size_t digits = length;
  while (const Sign* digit = FindSign(kSuperscripts, text.substr(length))) {
    power += digit->spoken;
    length += digit->sign.size();
  }
  if (length == digits) return 0;
  if (FindSign(kSuperscriptSigns, text.substr(length)) != nullptr) return 0;
  if (power == "2") {
    *out += " squared";
  } else if (power == "3") {
    *out += " cubed";
  } else if (power != "1") {  // a note: the first power is not written
    *out += " to the power of " + power;
  }
  return length;
}

// A number of at most three digits and a space: "1 ½" is one and a half, "1999 ½" may be a year.
bool EndsWithCount(std::string_view text) {
  if (!text.ends_with(' ')) return false;
  text.remove_suffix(1);
  size_t digits = 0;
  while (digits < text.size() && digits <= 3 &&
         absl::ascii_isdigit(static_cast<unsigned char>(text[text.size() - 1 - digits]))) {
    ++digits;
  }
  if (digits == 0 || digits > 3) return false;
  text.remove_suffix(digits);
  return text.empty() || text.ends_with(' ');
}

// Of what a range may go on with behind a fraction, " to" and the length of the dash: "1½–2½", "½-¾".
size_t AppendDash(std::string_view text, std::string* out) {
  const size_t dash = text.starts_with(kEnDash) ? kEnDash.size() : text.starts_with('-') ? 1 : 0;
  if (dash == 0) return 0;
  const std::string_view rest = text.substr(dash);
  if (!StartsWithDigit(rest) && FindSign(kFractions, rest) == nullptr) return 0;
  *out += " to";
  return dash;
}

size_t AppendFraction(std::string_view text, std::string* out) {
  const Sign* fraction = FindSign(kFractions, text);
  if (fraction == nullptr) return 0;
  *out += EndsWithDigit(*out) ? " and " : EndsWithCount(*out) ? "and " : " ";
  *out += fraction->spoken;
  const size_t length = fraction->sign.size();
  return length + AppendDash(text.substr(length), out);
}

// "1/2" behind a number: "3 1/2" is three and a half. Alone it is left as it is, and so are dates.
size_t AppendWrittenFraction(std::string_view text, std::string* out) {
  if (!EndsWithCount(*out)) return 0;
  const Sign* fraction = FindSign(kWrittenFractions, text);
  if (fraction == nullptr) return 0;
  const size_t length = fraction->sign.size();
  const std::string_view rest = text.substr(length);
  const bool goes_on = rest.starts_with('/') || rest.starts_with('.') || rest.starts_with(',');
  if (StartsWithDigit(rest.substr(goes_on ? 1 : 0))) return 0;
  *out += "and ";
  *out += fraction->spoken;
  return length + AppendDash(rest, out);
}

size_t AppendNegation(std::string_view text, std::string* out) {
  const Sign* negation = FindSign(kNegations, text);
  if (negation == nullptr) return 0;
  *out += negation->spoken;
  return negation->sign.size();
}

size_t AppendRange(std::string_view text, std::string* out) {
  if (!text.starts_with(kEnDash) || !EndsWithDigit(*out)) return 0;
  if (!StartsWithDigit(text.substr(kEnDash.size()))) return 0;
  *out += " to";
  return kEnDash.size();
}

bool IsGreekLead(char byte) { return byte == '\xCE' || byte == '\xCF'; }

// Words are left to those who speak the language.
size_t AppendGreek(std::string_view text, std::string* out) {
  std::string_view name;
  if (text.starts_with(kMicro)) {
    name = "micro";
  } else {
    if (!IsGreekLead(text.front()) || (text.size() > 2 && IsGreekLead(text[2]))) return 0;
    if (out->size() >= 2 && IsGreekLead((*out)[out->size() - 2])) return 0;
    const uint32_t letter = Utf8Decode(text, 2);
    const uint32_t first = letter >= kGreekSmall ? kGreekSmall : kGreekCapital;
    if (letter < first || letter - first >= kGreek.size()) return 0;
    name = kGreek[letter - first];
  }
  *out += ' ';
  *out += name;
  return 2;
}

}  // namespace

std::string SpellNumberSigns(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t done = 0;
    if (StartsWithDigit(text)) {
      done = AppendWrittenFraction(text, &out);
    } else if (text.front() == '$') {
      done = AppendAmount(text, &out);
    } else if (static_cast<unsigned char>(text.front()) >= 0xC0) {  // one beyond ASCII begins
      for (const auto append :
           {AppendAmount, AppendPower, AppendFraction, AppendNegation, AppendRange, AppendGreek}) {
        done = append(text, &out);
        if (done > 0) break;
      }
    }
    if (done == 0) {
      out.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(done);
    if (StartsWithDigit(text) || StartsWithLetter(text)) out.push_back(' ');
  }
  return out;
}

}  // namespace portico::pipeline
