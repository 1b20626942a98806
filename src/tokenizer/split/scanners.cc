#include "tokenizer/split/scanners.h"

#include "text/utf8.h"
#include "tokenizer/split/scanner_inline.h"

namespace portico::tokenizer {
namespace {

struct Spelling {
  std::string_view pattern;
  KnownPattern known;
};

// The possessive spellings mean the same in tiktoken's engine only.
constexpr std::string_view kPossessive = "++";

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekWords =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|"
    "\\s+(?!\\S)|\\s+";

constexpr Spelling kSpellings[] = {
    {kGpt2Pattern, KnownPattern::kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     KnownPattern::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     KnownPattern::kCl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     KnownPattern::kQwen2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)",
     KnownPattern::kGpt2},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     KnownPattern::kCl100k},
    {kO200kWords, KnownPattern::kO200k},
    {R"(\p{N}{1,3})", KnownPattern::kNumbers3},
    {"[一-龥぀-ゟ゠-ヿ]+", KnownPattern::kDeepSeekCjk},
    {kDeepSeekWords, KnownPattern::kDeepSeekWord},
};

template <typename Next>
void Scan(std::string_view text, std::vector<Match>* out, Next next) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const char* previous = begin;
  for (const char* p = begin; p < end;) {
    const char* q = next(p, end);
    if (q == p) {
      do ++p;
      while (p < end && IsTailByte(*p));
      continue;
    }
    auto at = [&](const char* x) { return static_cast<size_t>(x - begin); };
    if (previous != p) out->push_back({at(previous), at(p), false});
    out->push_back({at(p), at(q), true});
    previous = p = q;
  }
  if (previous != end) {
    out->push_back({static_cast<size_t>(previous - begin), text.size(), false});
  }
}

}  // namespace

KnownPattern RecognizePattern(std::string_view pattern, bool fancy) {
  if (!fancy && pattern.find(kPossessive) != std::string_view::npos) return KnownPattern::kNone;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.pattern == pattern) return spelling.known;
  }
  return KnownPattern::kNone;
}

void ScanMatches(KnownPattern pattern, std::string_view text, std::vector<Match>* out) {
  const CharClasses& classes = CharClasses::Get();
  switch (pattern) {
    case KnownPattern::kNone:
      return;
    case KnownPattern::kGpt2:
      return Scan(text, out,
                  [&](const char* p, const char* end) { return scan::Gpt2(classes, p, end); });
    case KnownPattern::kCl100k:
      return Scan(text, out,
                  [&](const char* p, const char* end) { return scan::Cl100k<3>(classes, p, end); });
    case KnownPattern::kQwen2:
      return Scan(text, out,
                  [&](const char* p, const char* end) { return scan::Cl100k<1>(classes, p, end); });
    case KnownPattern::kO200k:
      return Scan(text, out,
                  [&](const char* p, const char* end) { return scan::O200k(classes, p, end); });
    case KnownPattern::kNumbers3:
      return Scan(text, out, [&](const char* p, const char* end) {
        return scan::Numbers<3>(classes, p, end);
      });
    case KnownPattern::kDeepSeekCjk:
      return Scan(text, out, [](const char* p, const char* end) {
        while (p < end && scan::IsDeepSeekCjk(p)) p += 3;
        return p;
      });
    case KnownPattern::kDeepSeekWord:
      return Scan(text, out, [&](const char* p, const char* end) {
        return scan::DeepSeekWord(classes, p, end);
      });
  }
}

}  // namespace portico::tokenizer
