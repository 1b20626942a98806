#include "parser/tool/tag_head.h"

#include <algorithm>

#include "text/white_space.h"

namespace portico::parser {
namespace {

void ReplaceAll(std::string_view from, std::string_view to, std::string* text) {
  for (size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

}  // namespace

bool FindHeadEnd(std::string_view text, const HeadForm& form, bool final, size_t* end, bool* bad) {
  char quote = 0;
  for (size_t i = 0; i < text.size() && i <= kMaxTagHead; ++i) {
    char c = text[i];
    if (form.quotes && quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == form.end[0] && text.substr(i).starts_with(form.end)) {
      *end = i;
      return true;
    } else if (c == '\n' || (c == '<' && form.end[0] != '<')) {
      *bad = true;
      return false;
    }
  }
  *bad = final || text.size() > kMaxTagHead;
  return false;
}

std::string AttributeOf(std::string_view head, std::string_view key, bool entities) {
  size_t at = 0;
  while (at < head.size()) {
    at = head.find(key, at);
    if (at == std::string_view::npos) return "";
    size_t end = at + key.size();
    const bool whole = at == 0 || kWhiteSpace.find(head[at - 1]) != std::string_view::npos;
    at = end;
    size_t equals = head.find_first_not_of(kWhiteSpace, end);
    if (!whole || equals == std::string_view::npos || head[equals] != '=') continue;
    std::string_view value = TrimWhiteSpace(head.substr(equals + 1));
    if (!value.empty() && (value[0] == '"' || value[0] == '\'')) {
      size_t close = value.find(value[0], 1);
      value = value.substr(1, close == std::string_view::npos ? close : close - 1);
    } else {
      value = value.substr(0, value.find_first_of(kWhiteSpace));
    }
    std::string out(value);
    if (entities) {
      ReplaceAll("&quot;", "\"", &out);
      ReplaceAll("&lt;", "<", &out);
      ReplaceAll("&gt;", ">", &out);
      ReplaceAll("&apos;", "'", &out);
      ReplaceAll("&amp;", "&", &out);
    }
    return out;
  }
  return "";
}

std::string OtherAttributes(std::string_view head, std::initializer_list<std::string_view> known) {
  std::string others;
  while (true) {
    head.remove_prefix(std::min(head.find_first_not_of(kWhiteSpace), head.size()));
    if (head.empty()) return others;
    const size_t key_end = std::min(head.find_first_of(" \t\r\n="), head.size());
    const std::string_view key = head.substr(0, key_end);
    size_t end = head.find_first_not_of(kWhiteSpace, key_end);
    if (end != std::string_view::npos && head[end] == '=') {
      end = std::min(head.find_first_not_of(kWhiteSpace, end + 1), head.size());
      const bool quoted = end < head.size() && (head[end] == '"' || head[end] == '\'');
      end = quoted ? head.find(head[end], end + 1) : head.find_first_of(kWhiteSpace, end);
      if (quoted && end != std::string_view::npos) ++end;
      end = std::min(end, head.size());
    } else {
      end = std::max<size_t>(key_end, 1);
    }
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      if (!others.empty()) others += ' ';
      others.append(head.substr(0, end));
    }
    head.remove_prefix(end);
  }
}

}  // namespace portico::parser
