#include "tokenizer/regex_classes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "text/unicode.h"
#include "text/unicode_tables.h"

namespace portico::tokenizer {
namespace {

constexpr std::array<std::string_view, 30> kCategoryNames = {
    "Cn", "Cc", "Cf", "Co", "Cs", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl",
    "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp"};

void AppendHex(uint32_t c, std::string* out) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  out->append("\\x{");
  for (int shift = 20; shift >= 0; shift -= 4) out->push_back(kDigits[c >> shift & 15]);
  out->push_back('}');
}

// Where a predicate of this file may change its answer, in order, up to the end of the code points.
const std::vector<uint32_t>& Borders() {
  static const auto* const kBorders = [] {
    auto* out = new std::vector<uint32_t>{0xB2, 0xB4, 0xB9, 0xBA, 0xBC, 0xBF, 0xD800, 0xE000};
    for (const PropertyRun& run : PropertyRuns()) out->push_back(run.first);
    uint32_t end = 0;
    for (size_t i = 0; i + 1 < unicode_tables::kHanRunsSize; i += 2) {
      end += unicode_tables::kHanRuns[i];
      out->push_back(end);
    }
    out->push_back(0x110000);
    std::sort(out->begin(), out->end());
    out->erase(std::unique(out->begin(), out->end()), out->end());
    return out;
  }();
  return *kBorders;
}

template <typename Test>
CharacterTest Of(Test test) {
  return [test](uint32_t c) { return test(PropertiesOf(c)); };
}

bool IsHan(uint32_t c) {
  uint32_t end = 0;
  for (size_t i = 0; i + 1 < unicode_tables::kHanRunsSize; i += 2) {
    end += unicode_tables::kHanRuns[i];
    if (c < end) return unicode_tables::kHanRuns[i + 1] != 0;
  }
  return false;
}

}  // namespace

std::string RangesOf(const CharacterTest& test) {
  std::string out;
  const std::vector<uint32_t>& borders = Borders();
  auto is_member = [&](size_t i) {
    return (borders[i] < 0xD800 || borders[i] >= 0xE000) && test(borders[i]);
  };
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    if (!is_member(i)) continue;
    uint32_t begin = borders[i];
    while (i + 1 < borders.size() && is_member(i)) ++i;
    AppendHex(begin, &out);
    if (borders[i] - begin > 1) {
      out.push_back('-');
      AppendHex(borders[i] - 1, &out);
    }
  }
  return out;
}

CharacterTest PropertyTest(std::string_view name) {
  std::string lower;
  for (char c : name) {
    if (c == '_' || c == ' ' || c == '-') continue;
    lower.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  }
  for (size_t i = 0; i < kCategoryNames.size(); ++i) {
    std::string category(kCategoryNames[i]);
    category[0] = static_cast<char>(category[0] + 32);
    auto value = static_cast<GeneralCategory>(i);
    if (lower == category) return Of([value](CharProperties p) { return p.category() == value; });
  }
  if (lower.size() == 1) {
    char major = static_cast<char>(lower[0] - 32);
    for (std::string_view n : kCategoryNames) {
      if (n[0] == major) {
        return Of([major](CharProperties p) {
          return kCategoryNames[static_cast<size_t>(p.category())][0] == major;
        });
      }
    }
  }
  if (lower == "letter") return Of([](CharProperties p) { return p.is_letter(); });
  if (lower == "mark") return Of([](CharProperties p) { return p.is_mark(); });
  if (lower == "number") return Of([](CharProperties p) { return p.is_number(); });
  if (lower == "punctuation")
    return Of([](CharProperties p) { return p.is_punctuation_category(); });
  if (lower == "symbol") return Of([](CharProperties p) { return p.is_symbol(); });
  if (lower == "space" || lower == "whitespace") {
    return Of([](CharProperties p) { return p.is_space(); });
  }
  if (lower == "han") return IsHan;
  if (lower == "word") return Of([](CharProperties p) { return p.is_word(); });
  if (lower == "digit") {
    return Of([](CharProperties p) { return p.category() == GeneralCategory::kNd; });
  }
  return nullptr;
}

CharacterTest PosixTest(std::string_view name) {
  if (name == "punct") {
    return Of([](CharProperties p) { return p.is_punctuation_category() || p.is_symbol(); });
  }
  if (name == "word") return IsWordInClass;
  if (name == "space" || name == "digit") return PropertyTest(name);
  if (name == "upper") return PropertyTest("Lu");
  if (name == "lower") return PropertyTest("Ll");
  return nullptr;
}

bool IsSpaceCharacter(uint32_t c) { return PropertiesOf(c).is_space(); }

bool IsWord(uint32_t c) { return PropertiesOf(c).is_word(); }

bool IsWordInClass(uint32_t c) {
  const bool alone_only = c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE);
  return !alone_only && PropertiesOf(c).is_word();
}

bool IsRegexWord(uint32_t c) { return PropertiesOf(c).is_regex_word(); }

}  // namespace portico::tokenizer
