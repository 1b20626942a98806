#include "pipeline/speech/markdown.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "pipeline/speech/html_tag.h"

namespace portico::pipeline {
namespace {

// What begins a line: "## ", "> ", "- ", "* ", "```python".
std::string_view WithoutLineMarks(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  if (line.starts_with("```")) return {};
  if (line.find_first_not_of("-=*_ ") == std::string_view::npos) return {};  // a rule
  while (!line.empty() && (line[0] == '#' || line[0] == '>') && !line.starts_with(">=")) {
    // "#5" is a number.
    if (line[0] == '#' && line.size() > 1 &&
        absl::ascii_isdigit(static_cast<unsigned char>(line[1])))
      break;
    line.remove_prefix(1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  }
  if (line.size() > 1 && (line[0] == '-' || line[0] == '*' || line[0] == '+') && line[1] == ' ' &&
      !(line.size() > 2 && absl::ascii_isdigit(static_cast<unsigned char>(line[2])))) {
    line.remove_prefix(2);
  }
  return line;
}

constexpr size_t kLongestLink = 2048;  // else each bracket of many would look at all behind it

// The end of "[text](address)" that begins at `at`, and the text; false if it is none.
bool ReadLink(std::string_view line, size_t at, std::string_view* text, size_t* end) {
  line = line.substr(0, at + kLongestLink);
  const size_t close = line.find(']', at);
  if (close == std::string_view::npos || close + 1 >= line.size() || line[close + 1] != '(') {
    return false;
  }
  const size_t paren = line.find(')', close);
  if (paren == std::string_view::npos) return false;
  *text = line.substr(at + 1, close - at - 1);
  *end = paren + 1;
  return true;
}

void AppendLine(std::string_view line, std::string* out) {
  for (size_t i = 0; i < line.size();) {
    const bool picture = line.substr(i).starts_with("![");
    std::string_view text;
    size_t end = 0;
    if ((picture || line[i] == '[') && ReadLink(line, i + (picture ? 1 : 0), &text, &end)) {
      *out += text;
      i = end;
    } else if (const HtmlTag tag = HtmlTagOf(line.substr(i)); tag.length > 0) {
      if (tag.breaks) out->push_back(' ');
      i += tag.length;
    } else if (line.substr(i).starts_with("**") || line.substr(i).starts_with("__") ||
               line.substr(i).starts_with("~~")) {
      i += 2;
    } else {
      out->push_back(line[i++]);
    }
  }
}

}  // namespace

std::string StripMarkdown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    AppendLine(WithoutLineMarks(text.substr(0, end)), &out);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!text.empty()) out.push_back('\n');
  }
  return out;
}

}  // namespace portico::pipeline
