#include "pipeline/speech/speakable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/ascii.h"
#include "pipeline/speech/formula_signs.h"
#include "pipeline/speech/markdown.h"
#include "pipeline/speech/number_signs.h"
#include "text/normalization.h"
#include "text/unicode.h"
#include "text/utf8.h"
#include "text/white_space.h"

namespace portico::pipeline {
namespace {

// Characters beyond ASCII that decomposition leaves as they are, sorted.
struct Spelling {
  uint32_t code_point;
  std::string_view spoken;
};
constexpr Spelling kSpellings[] = {
    {0xA1, ""},
    {0xA2, " cents "},
    {0xA3, " pounds "},
    {0xA5, " yen "},
    {0xA7, " section "},
    {0xA9, " copyright "},
    {0xAB, "\""},
    {0xAE, " registered "},
    {0xB0, " degrees "},
    {0xB1, " plus or minus "},
    {0xB7, " "},
    {0xBB, "\""},
    {0xBF, ""},
    {0xC6, "Ae"},
    {0xD0, "D"},
    {0xD7, " times "},
    {0xD8, "O"},
    {0xDE, "Th"},
    {0xDF, "ss"},
    {0xE6, "ae"},
    {0xF0, "d"},
    {0xF7, " divided by "},
    {0xF8, "o"},
    {0xFE, "th"},
    {0x110, "D"},
    {0x111, "d"},
    {0x126, "H"},
    {0x127, "h"},
    {0x131, "i"},
    {0x141, "L"},
    {0x142, "l"},
    {0x14A, "Ng"},
    {0x14B, "ng"},
    {0x152, "Oe"},
    {0x153, "oe"},
    {0x166, "T"},
    {0x167, "t"},
    {0x1E9E, "SS"},
    {0x2010, "-"},
    {0x2011, "-"},
    {0x2012, "-"},
    {0x2013, "-"},
    {0x2014, ", "},
    {0x2015, ", "},
    {0x2018, "'"},
    {0x2019, "'"},
    {0x201A, "'"},
    {0x201C, "\""},
    {0x201D, "\""},
    {0x201E, "\""},
    {0x2022, ""},
    {0x2030, " per thousand "},
    {0x2032, "'"},
    {0x2033, "\""},
    {0x2044, "/"},
    {0x20A9, " won "},
    {0x20AA, " shekels "},
    {0x20AC, " euros "},
    {0x20B9, " rupees "},
    {0x20BA, " lira "},
    {0x20BD, " roubles "},
    {0x20BF, " bitcoins "},
    {0x2190, " "},
    {0x2192, " to "},
    {0x2212, " minus "},
    {0x221A, " root of "},
    {0x221E, " infinity "},
    {0x2248, " about "},
    {0x2264, " at most "},
    {0x2265, " at least "},
};
static_assert(std::is_sorted(std::begin(kSpellings), std::end(kSpellings),
                             [](const Spelling& a, const Spelling& b) {
                               return a.code_point < b.code_point;
                             }));

struct Script {
  uint32_t first;
  uint32_t last;
  std::string_view name;
};
constexpr Script kScripts[] = {
    {0x370, 0x3FF, "Greek"},       {0x400, 0x52F, "Cyrillic"},   {0x530, 0x58F, "Armenian"},
    {0x590, 0x5FF, "Hebrew"},      {0x600, 0x6FF, "Arabic"},     {0x900, 0x97F, "Devanagari"},
    {0x980, 0xDFF, "Indic"},       {0xE00, 0xE7F, "Thai"},       {0x10A0, 0x10FF, "Georgian"},
    {0x1100, 0x11FF, "Korean"},    {0x3040, 0x30FF, "Japanese"}, {0x3400, 0x4DBF, "Chinese"},
    {0x4E00, 0x9FFF, "Chinese"},   {0xAC00, 0xD7AF, "Korean"},   {0xF900, 0xFAFF, "Chinese"},
    {0x20000, 0x3FFFF, "Chinese"}, {0xE80, 0xEFF, "Lao"},        {0x1780, 0x17FF, "Khmer"},
};

const Spelling* FindSpelling(uint32_t code_point) {
  const auto* at = std::lower_bound(
      std::begin(kSpellings), std::end(kSpellings), code_point,
      [](const Spelling& spelling, uint32_t wanted) { return spelling.code_point < wanted; });
  return at != std::end(kSpellings) && at->code_point == code_point ? at : nullptr;
}

// Of a script other than Latin; Latin's are phonetic ones that no decomposition makes ASCII.
bool IsForeignLetter(uint32_t c) {
  const bool latin = c < 0x370 || (c >= 0x1D00 && c <= 0x1DBF) || (c >= 0x1E00 && c <= 0x1EFF) ||
                     (c >= 0x2C60 && c <= 0x2C7F) || (c >= 0xA720 && c <= 0xA7FF);
  return !latin && PropertiesOf(c).is_letter();
}

bool IsMark(uint32_t c) { return c >= 0x300 && c <= 0x36F; }

Status Unspeakable(std::string_view script) {
  return InvalidArgument(
      "input", fmt::format("the voice speaks English and the text has {} letters; configure a "
                           "stage that speaks the language in the place of `say` (docs/omni.md)",
                           script));
}

// ASCII, or what cannot be said.
StatusOr<std::string> Fold(std::string_view text) {
  std::string valid;
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8SequenceLength(text.substr(i));
    valid += length == 0 ? std::string_view(" ") : text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  std::vector<NormalizedChar> chars;
  NormalizeTo(NormalForm::kNfkd, SpellNumberSigns(valid), &chars);
  std::string out;
  for (const NormalizedChar& normalized : chars) {
    const uint32_t c = normalized.code_point;
    if (c < 0x80) {
      out.push_back(c < 0x20 && c != '\n' ? ' ' : static_cast<char>(c));
    } else if (const Spelling* spelling = FindSpelling(c)) {
      out += spelling->spoken;
    } else if (!IsMark(c)) {
      for (const Script& script : kScripts) {
        if (c >= script.first && c <= script.last) return Unspeakable(script.name);
      }
      if (IsForeignLetter(c)) return Unspeakable("non-Latin");
      out.push_back(' ');  // emoji, arrows, boxes
    }
  }
  return out;
}

bool IsDigit(std::string_view text, size_t at) {
  return at < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[at]));
}

bool IsWordEnd(std::string_view text, size_t at) {
  return at >= text.size() || absl::ascii_isspace(static_cast<unsigned char>(text[at]));
}

// A comma between digits where three digits follow: "1,234".
bool IsThousandsComma(std::string_view text, size_t at) {
  return at > 0 && IsDigit(text, at - 1) && IsDigit(text, at + 1) && IsDigit(text, at + 2) &&
         IsDigit(text, at + 3) && !IsDigit(text, at + 4);
}

// "3 * 4", "x*4"; but not Markdown's "see *4 pages*".
bool Multiplies(std::string_view text, size_t at) {
  const bool space = at > 0 && text[at - 1] == ' ';
  if (at < (space ? 2U : 1U)) return false;
  const auto left = static_cast<unsigned char>(text[at - (space ? 2 : 1)]);
  if (!absl::ascii_isalnum(left) && left != ')') return false;
  const bool space_behind = at + 1 < text.size() && text[at + 1] == ' ';
  return space == space_behind && IsDigit(text, at + (space ? 2 : 1));
}

// "9/11/2001" has two; "1/2" is a fraction.
bool IsDateSlash(std::string_view text, size_t at) {
  size_t left = at;
  while (left > 0 && IsDigit(text, left - 1)) --left;
  size_t right = at + 1;
  while (IsDigit(text, right)) ++right;
  return (left > 1 && text[left - 1] == '/' && IsDigit(text, left - 2)) ||
         (right < text.size() && text[right] == '/' && IsDigit(text, right + 1));
}

// "C#", "in F#".
bool IsSharp(std::string_view text, size_t at) {
  return at > 0 && absl::ascii_isupper(static_cast<unsigned char>(text[at - 1])) &&
         (at == 1 || IsWordEnd(text, at - 2)) &&
         (at + 1 == text.size() || !absl::ascii_isalnum(static_cast<unsigned char>(text[at + 1])));
}

// Signs of two characters, and their words.
constexpr std::array<std::array<std::string_view, 2>, 5> kPairs = {{{">=", " at least "},
                                                                    {"<=", " at most "},
                                                                    {"!=", " is not "},
                                                                    {"==", " equals "},
                                                                    {"->", " to "}}};

// The words for a symbol that the voice is silent about, or nothing if it reads it itself.
std::optional<std::string_view> SymbolWords(std::string_view text, size_t at) {
  const bool before = at > 0 && !IsWordEnd(text, at - 1);
  switch (text[at]) {
    case '+':
      return " plus ";
    case '=':
      return " equals ";
    case '&':
      return " and ";
    case '@':
      return " at ";
    case '<':
      return " less than ";
    case '>':
      return " greater than ";
    case '^':
      return " to the power of ";
    case '#':
      if (IsDigit(text, at + 1)) return " number ";
      return IsSharp(text, at) ? " sharp " : " ";
    case '*':
      return Multiplies(text, at) ? " times " : " ";
    case '/':
      if (!before || !IsDigit(text, at - 1) || !IsDigit(text, at + 1)) return " ";
      return IsDateSlash(text, at) ? " " : " over ";
    case '-':
      // "7 - 5", "-5", "-$5" and "5-3=2", but not "well-known" or "a - b".
      if (before && Subtracts(text, at)) return " minus ";
      if (!before && IsDigit(text, at + (text.substr(at + 1).starts_with('$') ? 2 : 1))) {
        return " minus ";
      }
      if (!before && IsDigit(text, at + 2) && at >= 2 && IsDigit(text, at - 2)) return " minus ";
      return std::nullopt;
    case '_':
    case '`':
    case '~':
    case '|':
    case '\\':
    case '{':
    case '}':
    case '[':
    case ']':
      return " ";
    default:
      return std::nullopt;
  }
}

std::string SpellSymbols(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' && IsThousandsComma(text, i)) continue;
    const auto* pair = std::find_if(kPairs.begin(), kPairs.end(), [&](const auto& one) {
      return text.substr(i).starts_with(one[0]);
    });
    if (pair != kPairs.end()) {
      out += (*pair)[1];
      ++i;
    } else if (const SpokenRate rate = text[i] == '/' ? RateOf(text, i) : SpokenRate{};
               rate.length > 0) {
      out += ' ';
      out += rate.words;
      i += rate.length - 1;
    } else if (const auto words = SymbolWords(text, i)) {
      out += *words;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// flite keeps a word whole however long it is; nobody says one of this length.
constexpr size_t kMaxWord = 64;

std::string Tidy(std::string_view text) {
  std::string out;
  size_t word = 0;
  for (const char c : text) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      word = 0;
      if (!out.empty() && out.back() != ' ') out.push_back(' ');
      continue;
    }
    if (++word > kMaxWord) {
      out.push_back(' ');
      word = 1;
    }
    out.push_back(c);
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  const bool says = std::any_of(out.begin(), out.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '%' || c == '$';
  });
  return says ? out : "";
}

// Abbreviations whose full stop ends no sentence.
constexpr std::array<std::string_view, 20> kAbbreviations = {
    "Mr",  "Mrs", "Ms", "Dr",  "Prof", "St",  "Jr",  "Sr",  "vs",  "etc",
    "e.g", "i.e", "No", "Vol", "Fig",  "Inc", "Ltd", "Gen", "Col", "approx"};

bool EndsSentence(std::string_view text, size_t at) {
  if (text[at] != '.') return true;
  size_t begin = at;
  while (begin > 0 && !absl::ascii_isspace(static_cast<unsigned char>(text[begin - 1]))) --begin;
  const std::string_view word = text.substr(begin, at - begin);
  if (word.size() == 1 && absl::ascii_isupper(static_cast<unsigned char>(word[0]))) return false;
  return std::find(kAbbreviations.begin(), kAbbreviations.end(), word) == kAbbreviations.end();
}

// Ends of sentences and clauses that need no space behind them: 。！？｡ ۔ ؟ ।, ，；
constexpr std::array<std::string_view, 7> kWideStops = {
    "\xE3\x80\x82", "\xEF\xBC\x81", "\xEF\xBC\x9F", "\xEF\xBD\xA1",
    "\xDB\x94",     "\xD8\x9F",     "\xE0\xA5\xA4"};
constexpr std::array<std::string_view, 2> kWideCommas = {"\xEF\xBC\x8C", "\xEF\xBC\x9B"};

// The length of the mark that `text` begins with, or 0.
size_t WideMarkOf(std::string_view text, std::span<const std::string_view> marks) {
  if (absl::ascii_isascii(static_cast<unsigned char>(text.front()))) return 0;
  const auto found = std::find_if(marks.begin(), marks.end(),
                                  [text](std::string_view mark) { return text.starts_with(mark); });
  return found == marks.end() ? 0 : found->size();
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
}

constexpr size_t kMinFirstClause = 12;  // bytes; shorter ones sound chopped
constexpr size_t kMinClause = 40;
constexpr size_t kMaxClause = 200;  // some 12 seconds
constexpr size_t kMaxWholeLink = 512;

struct LinkAhead {
  size_t length = 0;    // of a whole one; 0: none begins here
  bool unsure = false;  // what comes next decides
};

// Of the bracket that `text` begins with, "[text](address)".
LinkAhead LinkOf(std::string_view text) {
  const bool all = text.size() <= kMaxWholeLink;
  text = text.substr(0, kMaxWholeLink);
  const size_t close = text.find_first_of("]\n");
  if (close == std::string_view::npos || close + 1 == text.size()) {
    return {0, all && !text.ends_with('\n')};
  }
  if (text[close] == '\n' || text[close + 1] != '(') return {};
  const size_t end = text.find_first_of(")\n", close);
  if (end == std::string_view::npos) return {0, all};
  return {text[end] == ')' ? end + 1 : 0, false};
}

}  // namespace

StatusOr<std::string> Speakable(std::string_view text) {
  PORTICO_ASSIGN_OR_RETURN(const std::string folded, Fold(StripMarkdown(text)));
  return Tidy(SpellSymbols(folded));
}

// How many bytes of what is pending are a whole clause, or 0.
size_t ClauseSplitter::FindEnd() const {
  const std::string_view text = std::string_view(pending_).substr(taken_);
  const size_t shortest = first_ ? kMinFirstClause : kMinClause;
  size_t last_space = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (const LinkAhead link = text[i] == '[' ? LinkOf(text.substr(i)) : LinkAhead{};
        link.length > 0) {
      i += link.length - 1;
    } else if (link.unsure && !finished_ && i < kMaxClause) {
      return 0;
    }
    const char c = text[i];
    if (c == '\n') return i + 1;
    if (const size_t mark = WideMarkOf(text.substr(i), kWideStops)) return i + mark;
    if (i >= shortest && (first_ || clauses_)) {
      if (const size_t mark = WideMarkOf(text.substr(i), kWideCommas)) return i + mark;
    }
    const bool known = i + 1 < text.size() || finished_;
    const bool ends = known && IsWordEnd(text, i + 1);
    if ((c == '.' || c == '!' || c == '?') && ends && EndsSentence(text, i)) return i + 1;
    if ((c == ',' || c == ';' || c == ':') && ends && i >= shortest && (first_ || clauses_)) {
      return i + 1;
    }
    if (c == ' ') last_space = i;
    if (i >= kMaxClause) {
      if (last_space > 0) return last_space;
      // Never within a character.
      size_t cut = i;
      while (cut > 0 && IsTailByte(text[cut])) --cut;
      return cut;
    }
  }
  return finished_ ? text.size() : 0;
}

std::string ClauseSplitter::Next() {
  while (const size_t end = FindEnd()) {
    std::string clause(Trimmed(std::string_view(pending_).substr(taken_, end)));
    taken_ += end;
    if (taken_ >=
        pending_.size() / 2) {  // seldom: many short clauses would move the rest each time
      pending_.erase(0, taken_);
      taken_ = 0;
    }
    if (clause.empty()) continue;
    first_ = false;
    return clause;
  }
  return "";
}

}  // namespace portico::pipeline
