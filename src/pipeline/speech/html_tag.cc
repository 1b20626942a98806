#include "pipeline/speech/html_tag.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace portico::pipeline {
namespace {

constexpr size_t kLongestTag = 1024;

// Within a word, or beside one.
constexpr std::string_view kInlineTags[] = {
    "a",      "abbr",   "b",   "big",  "cite", "code", "del",  "em",    "font",
    "i",      "ins",    "kbd", "mark", "q",    "s",    "samp", "small", "span",
    "strike", "strong", "sub", "sup",  "tt",   "u",    "var"};
// Around lines, blocks and pictures.
constexpr std::string_view kBreakingTags[] = {
    "article", "aside", "blockquote", "body",   "br",      "center",  "dd",    "details", "div",
    "dl",      "dt",    "figcaption", "figure", "footer",  "h1",      "h2",    "h3",      "h4",
    "h5",      "h6",    "head",       "header", "hr",      "html",    "img",   "li",      "main",
    "nav",     "ol",    "p",          "pre",    "section", "summary", "table", "tbody",   "td",
    "tfoot",   "th",    "thead",      "tr",     "ul",      "wbr"};

template <typename Table>
bool IsTagOf(const Table& table, std::string_view name) {
  return std::any_of(std::begin(table), std::end(table), [name](std::string_view one) {
    return absl::EqualsIgnoreCase(absl::string_view(one.data(), one.size()),
                                  absl::string_view(name.data(), name.size()));
  });
}

void SkipBlanks(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(" \t\r\n"), text->size()));
}

// `name="value"`, `name='value'` or `name=value`; false if `*text` begins with none.
bool SkipAttribute(std::string_view* text) {
  size_t end = 0;
  while (end < text->size() && (absl::ascii_isalnum(static_cast<unsigned char>((*text)[end])) ||
                                (*text)[end] == '-' || (*text)[end] == ':')) {
    ++end;
  }
  if (end == 0 || end + 1 >= text->size() || (*text)[end] != '=') return false;
  text->remove_prefix(end + 1);
  const char quote = text->front();
  if (quote != '"' && quote != '\'') {
    end = text->find_first_of(" \t\r\n<>\"'");
    if (end == std::string_view::npos || end == 0) return false;
    text->remove_prefix(end);
    return true;
  }
  end = text->find(quote, 1);
  if (end == std::string_view::npos) return false;
  text->remove_prefix(end + 1);
  return true;
}

}  // namespace

HtmlTag HtmlTagOf(std::string_view text) {
  if (!text.starts_with('<')) return {};
  const std::string_view whole = text.substr(0, kLongestTag);
  std::string_view rest = whole.substr(1);
  if (rest.starts_with('/')) rest.remove_prefix(1);
  size_t end = 0;
  while (end < rest.size() && absl::ascii_isalnum(static_cast<unsigned char>(rest[end]))) ++end;
  const std::string_view name = rest.substr(0, end);
  const bool breaks = IsTagOf(kBreakingTags, name);
  if (!breaks && !IsTagOf(kInlineTags, name)) return {};
  rest.remove_prefix(end);
  SkipBlanks(&rest);
  while (SkipAttribute(&rest)) SkipBlanks(&rest);
  if (rest.starts_with('/')) rest.remove_prefix(1);
  if (!rest.starts_with('>')) return {};
  return {whole.size() - rest.size() + 1, breaks};
}

}  // namespace portico::pipeline
