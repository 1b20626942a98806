#include "parser/detect/template_text.h"

#include <algorithm>

namespace portico::parser {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t Space(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

// The end of the match at `at`, or npos. Between two parts of white space nothing else fits, so no choice is undone.
size_t MatchAt(std::string_view text, size_t at, std::string_view pattern) {
  for (char c : pattern) {
    if (c == '~' || c == '_') {
      size_t end = Space(text, at);
      if (c == '_' && end == at) return std::string_view::npos;
      at = end;
    } else if (at < text.size() && text[at] == (c == '^' ? '_' : c)) {
      ++at;
    } else {
      return std::string_view::npos;
    }
  }
  return at;
}

bool Literal(std::string_view text, size_t* at, bool* value) {
  for (std::string_view word : {"true", "True", "false", "False"}) {
    size_t end = *at + word.size();
    if (text.substr(*at).starts_with(word) && (end == text.size() || !IsWord(text[end]))) {
      *at = end;
      *value = word[0] == 't' || word[0] == 'T';
      return true;
    }
  }
  return false;
}

// The code between `{%` or `{{` and its end, strings blanked; templates' comments and raw blocks left out.
std::vector<std::string> LiveCode(std::string_view text) {
  std::vector<std::string> out;
  size_t at = 0;
  while ((at = text.find('{', at)) != std::string_view::npos && at + 1 < text.size()) {
    char kind = text[at + 1];
    if (kind == '#') {
      size_t end = text.find("#}", at + 2);
      if (end == std::string_view::npos) break;
      at = end + 2;
      continue;
    }
    if (kind != '%' && kind != '{') {
      ++at;
      continue;
    }
    std::string code;
    size_t i = at + 2;
    char quote = 0;
    const std::string_view close = kind == '%' ? "%}" : "}}";
    for (; i < text.size(); ++i) {
      char c = text[i];
      if (quote != 0) {
        if (c == '\\') {
          ++i;
        } else if (c == quote) {
          quote = 0;
        }
        code.push_back('"');
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (text.substr(i).starts_with(close)) break;
      code.push_back(c);
    }
    at = std::min(i + 2, text.size());
    size_t word = code.find_first_not_of(" \t\r\n-+");
    if (kind == '%' && word != std::string::npos && code.compare(word, 3, "raw") == 0) {
      size_t end = text.find("endraw", at);
      if (end == std::string_view::npos) break;
      at = end;
      continue;
    }
    out.push_back(std::move(code));
  }
  return out;
}

}  // namespace

size_t FindPattern(std::string_view text, std::string_view pattern, size_t from, size_t* end) {
  for (size_t at = text.find(pattern[0], from); at != std::string_view::npos;
       at = text.find(pattern[0], at + 1)) {
    size_t stop = MatchAt(text, at, pattern);
    if (stop == std::string_view::npos) continue;
    if (end != nullptr) *end = stop;
    return at;
  }
  return std::string_view::npos;
}

bool HasPattern(std::string_view text, std::initializer_list<std::string> patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return FindPattern(text, pattern, 0, nullptr) != std::string_view::npos;
  });
}

bool HasSequence(std::string_view text, std::string_view first,
                 std::initializer_list<std::string> second) {
  size_t end = 0;
  if (FindPattern(text, first, 0, &end) == std::string_view::npos) return false;
  return std::any_of(second.begin(), second.end(), [&](const std::string& pattern) {
    return FindPattern(text, pattern, end, nullptr) != std::string_view::npos;
  });
}

bool HasDefaultFilter(std::string_view text, std::string_view parameter, bool value) {
  for (const std::string& code : LiveCode(text)) {
    for (size_t at = code.find(parameter); at != std::string::npos;
         at = code.find(parameter, at + 1)) {
      if (at > 0 && (IsWord(code[at - 1]) || code[at - 1] == '.')) continue;
      std::string_view rest = std::string_view(code).substr(at + parameter.size());
      size_t end = MatchAt(rest, 0, "~|~default~(~");
      if (end == std::string_view::npos) end = MatchAt(rest, 0, "~|~d~(~");
      bool given = false;
      if (end == std::string_view::npos || !Literal(rest, &end, &given)) continue;
      bool boolean = false;
      size_t more = MatchAt(rest, end, "~,~");
      if (more != std::string_view::npos) {
        size_t named = MatchAt(rest, more, "boolean~=~");
        if (named != std::string_view::npos) more = named;
        if (!Literal(rest, &more, &boolean)) continue;
      }
      // default(true, true) makes a false true too, and switches nothing.
      if (given == value && !(boolean && given)) return true;
    }
  }
  return false;
}

}  // namespace portico::parser
