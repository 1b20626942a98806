#include "tokenizer/regex/regex_classes.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "text/unicode.h"
#include "text/unicode_tables.h"

namespace portico::tokenizer {
namespace {

// In the order of GeneralCategory.
constexpr std::array<std::pair<std::string_view, std::string_view>, 30> kCategories = {{
    {"cn", "unassigned"},
    {"cc", "control"},
    {"cf", "format"},
    {"co", "privateuse"},
    {"cs", "surrogate"},
    {"lu", "uppercaseletter"},
    {"ll", "lowercaseletter"},
    {"lt", "titlecaseletter"},
    {"lm", "modifierletter"},
    {"lo", "otherletter"},
    {"mn", "nonspacingmark"},
    {"mc", "spacingmark"},
    {"me", "enclosingmark"},
    {"nd", "decimalnumber"},
    {"nl", "letternumber"},
    {"no", "othernumber"},
    {"pc", "connectorpunctuation"},
    {"pd", "dashpunctuation"},
    {"ps", "openpunctuation"},
    {"pe", "closepunctuation"},
    {"pi", "initialpunctuation"},
    {"pf", "finalpunctuation"},
    {"po", "otherpunctuation"},
    {"sm", "mathsymbol"},
    {"sc", "currencysymbol"},
    {"sk", "modifiersymbol"},
    {"so", "othersymbol"},
    {"zs", "spaceseparator"},
    {"zl", "lineseparator"},
    {"zp", "paragraphseparator"},
}};

// Of several categories: the long name and how the short ones begin.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kGroups = {
    {{"letter", "l"},
     {"mark", "m"},
     {"number", "n"},
     {"punctuation", "p"},
     {"punct", "p"},
     {"symbol", "s"},
     {"separator", "z"},
     {"other", "c"},
     {"digit", "nd"}}};

std::string Plain(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c == '_' || c == ' ' || c == '-') continue;
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  }
  return out;
}

template <typename Test>
CodePoints Where(Test test) {
  std::vector<CodePoints::Range> ranges;
  for (const PropertyRun& run : PropertyRuns()) {
    if (test(run.properties)) ranges.push_back({run.first, run.first + run.count});
  }
  return CodePoints(std::move(ranges));
}

// All general categories whose short name begins like this.
CodePoints Categories(std::string_view beginning) {
  return Where([beginning](CharProperties p) {
    return kCategories[static_cast<size_t>(p.category())].first.starts_with(beginning);
  });
}

std::optional<CodePoints> CategoryNamed(std::string_view plain) {
  for (const auto& [brief, full] : kCategories) {
    if (plain == brief || plain == full) return Categories(brief);
  }
  for (const auto& [name, beginning] : kGroups) {
    if (plain == name || (plain.size() == 1 && plain == beginning)) return Categories(beginning);
  }
  if (plain == "lc" || plain == "casedletter") {
    return Categories("lu") | Categories("ll") | Categories("lt");
  }
  return std::nullopt;
}

std::optional<CodePoints> TableNamed(std::string_view plain) {
  using unicode_tables::kNamedProperties;
  const std::span names(kNamedProperties, unicode_tables::kNamedPropertiesSize);
  auto found = std::lower_bound(
      names.begin(), names.end(), plain,
      [](const auto& property, std::string_view name) { return property.name < name; });
  if (found == names.end() || found->name != plain) return std::nullopt;
  std::vector<CodePoints::Range> ranges;
  uint32_t at = 0;
  for (uint32_t i = found->begin; i + 1 < found->begin + found->size; i += 2) {
    const uint32_t begin = at + unicode_tables::kPropertyGaps[i];
    at = begin + unicode_tables::kPropertyGaps[i + 1];
    ranges.push_back({begin, at});
  }
  return CodePoints(std::move(ranges));
}

CodePoints Word() {
  return Where([](CharProperties p) { return p.is_word(); });
}

CodePoints WordInClass() { return Word() - CodePoints({{0xB2, 0xB4}, {0xB9, 0xBA}, {0xBC, 0xBF}}); }

CodePoints Space() {
  return Where([](CharProperties p) { return p.is_space(); });
}

CodePoints HexDigits() { return CodePoints({{'0', '9' + 1}, {'A', 'F' + 1}, {'a', 'f' + 1}}); }

std::optional<CodePoints> AsciiClassNamed(std::string_view name) {
  const CodePoints letters({{'A', 'Z' + 1}, {'a', 'z' + 1}});
  const CodePoints digits = CodePoints::Between('0', '9');
  const CodePoints visible = CodePoints::Between('!', '~');
  if (name == "alpha") return letters;
  if (name == "digit") return digits;
  if (name == "alnum") return letters | digits;
  if (name == "upper") return CodePoints::Between('A', 'Z');
  if (name == "lower") return CodePoints::Between('a', 'z');
  if (name == "punct") return visible - (letters | digits);
  if (name == "space") return CodePoints({{'\t', '\r' + 1}, {' ', ' ' + 1}});
  if (name == "blank") return CodePoints::One('\t') | CodePoints::One(' ');
  if (name == "cntrl") return CodePoints({{0, 0x20}, {0x7F, 0x80}});
  if (name == "graph") return visible;
  if (name == "print") return CodePoints::Between(' ', '~');
  if (name == "xdigit") return HexDigits();
  if (name == "word") return letters | digits | CodePoints::One('_');
  if (name == "ascii") return CodePoints::Between(0, 0x7F);
  return std::nullopt;
}

std::optional<CodePoints> PropertyOf(const std::string& plain) {
  if (auto found = CategoryNamed(plain)) return found;
  if (plain == "space" || plain == "whitespace") return Space();
  if (plain == "word") return Word();
  if (plain == "posixpunct") return Categories("p") | Categories("s");
  return TableNamed(plain);
}

std::optional<CodePoints> LetterOf(char letter, bool fancy, bool in_class) {
  switch (letter) {
    case 's':
      return Space();
    case 'd':
      return Categories("nd");
    case 'w':
      if (fancy) return Where([](CharProperties p) { return p.is_regex_word(); });
      return in_class ? WordInClass() : Word();
    case 'h':
      if (fancy) return std::nullopt;
      return HexDigits();
    default:
      return std::nullopt;
  }
}

// The set under this key, or what `find` finds; null where that is nothing.
template <typename Find>
const NamedCharacters* Kept(const std::string& key, Find find) {
  static Mutex* const mutex = new Mutex;
  static auto* const kept = new std::map<std::string, NamedCharacters>;
  const MutexLock lock(mutex);
  auto known = kept->find(key);
  if (known == kept->end()) {
    std::optional<CodePoints> found = find();
    if (!found) return nullptr;
    std::string text = found->ToClassMembers();
    known = kept->emplace(key, NamedCharacters{*std::move(found), std::move(text)}).first;
  }
  return &known->second;
}

}  // namespace

const NamedCharacters* PropertyNamed(std::string_view name) {
  const std::string plain = Plain(name);
  return Kept(plain, [&] { return PropertyOf(plain); });
}

const NamedCharacters* PosixClassNamed(std::string_view name, Regex::Syntax syntax) {
  constexpr std::array<std::string_view, 14> kNames = {"alpha", "digit",  "alnum", "upper", "lower",
                                                       "punct", "space",  "blank", "cntrl", "graph",
                                                       "print", "xdigit", "word",  "ascii"};
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) return nullptr;
  if (syntax == Regex::Syntax::kFancyRegex) {
    return Kept("[:" + std::string(name), [&] { return AsciiClassNamed(name); });
  }
  if (name == "word") return LetterClass('w', syntax, /*in_class=*/true);
  return PropertyNamed(name == "punct" ? "posixpunct" : name);
}

const NamedCharacters* LetterClass(char letter, Regex::Syntax syntax, bool in_class) {
  const bool fancy = syntax == Regex::Syntax::kFancyRegex;
  std::string key = {'\\', letter, fancy ? 'f' : 'o', in_class ? '[' : ' '};
  return Kept(key, [&] { return LetterOf(letter, fancy, in_class); });
}

}  // namespace portico::tokenizer
