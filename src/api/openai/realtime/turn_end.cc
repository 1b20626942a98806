#include "api/openai/realtime/turn_end.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace portico::api::openai {
namespace {

// Sorted. Not those which end sentences, too: "where are you from", "what is that", "turn it on", "I think so".
constexpr std::string_view kLeadOn[] = {
    "a",    "ah",      "although", "an",    "and",   "as",  "because", "but", "eh",
    "er",   "hm",      "hmm",      "if",    "into",  "its", "mm",      "my",  "of",
    "or",   "our",     "than",     "the",   "their", "to",  "uh",      "um",  "until",
    "very", "whereas", "whether",  "while", "whose", "your"};
static_assert(std::is_sorted(std::begin(kLeadOn), std::end(kLeadOn)));

}  // namespace

bool LooksFinished(std::string_view text) {
  absl::string_view said = absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
  if (said.empty()) return false;
  for (const std::string_view open : {",", "-", ":", "...", "\u2026", "\u2014", "\u3001"}) {
    if (absl::EndsWith(said, absl::string_view(open.data(), open.size()))) return false;
  }
  const char last = said.back();
  if (last == '.' || last == '!' || last == '?') return true;
  const size_t space = said.find_last_of(" \t\n");
  const std::string word =
      absl::AsciiStrToLower(space == absl::string_view::npos ? said : said.substr(space + 1));
  return !std::binary_search(std::begin(kLeadOn), std::end(kLeadOn), std::string_view(word));
}

}  // namespace portico::api::openai
