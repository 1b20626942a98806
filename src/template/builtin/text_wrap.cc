#include "template/builtin/text_wrap.h"

#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

bool IsWrapSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsLetterAt(std::string_view text, size_t at) {
  size_t length;
  return IsA(CharacterClass::kAlpha, CodePointAt(text, at, &length));
}

// Words, runs of white space, and parts of words that end with a hyphen between letters.
std::vector<std::string_view> Chunks(std::string_view text, bool hyphens) {
  std::vector<std::string_view> chunks;
  size_t i = 0;
  while (i < text.size()) {
    size_t start = i;
    if (IsWrapSpace(text[i])) {
      while (i < text.size() && IsWrapSpace(text[i])) ++i;
      chunks.push_back(text.substr(start, i - start));
      continue;
    }
    while (i < text.size() && !IsWrapSpace(text[i])) {
      ++i;
      if (!hyphens || text[i - 1] != '-' || i - start < 2 || i + 1 >= text.size()) continue;
      size_t before = PreviousCodePoint(text, i - 1);
      size_t length = 1;
      CodePointAt(text, i, &length);
      const bool letters = before >= start && IsLetterAt(text, before) && IsLetterAt(text, i);
      const bool more = i + length < text.size() && IsLetterAt(text, i + length);
      const bool two_before = before > start && IsLetterAt(text, PreviousCodePoint(text, before));
      if (letters && more && two_before) {
        chunks.push_back(text.substr(start, i - start));
        start = i;
      }
    }
    if (i > start) chunks.push_back(text.substr(start, i - start));
  }
  return chunks;
}

bool IsBlank(std::string_view chunk) { return LeadingSpace(chunk) == chunk.size(); }

}  // namespace

std::vector<std::string> WrapText(std::string_view text, const WrapOptions& options) {
  std::vector<std::string_view> chunks = Chunks(text, options.break_on_hyphens);
  std::vector<std::string> lines;
  const size_t width = static_cast<size_t>(options.width);
  size_t next = 0;
  while (next < chunks.size()) {
    std::vector<std::string_view> line;
    size_t length = 0;
    if (!lines.empty() && IsBlank(chunks[next])) ++next;
    for (; next < chunks.size(); ++next) {
      size_t size = Length(chunks[next]);
      if (length + size > width) break;
      line.push_back(chunks[next]);
      length += size;
    }
    if (next < chunks.size() && Length(chunks[next]) > width) {
      // None left: the cut takes nothing, and shields a space in front of it from being dropped.
      size_t room = width < 1 ? 1 : width - length;
      if (options.break_long_words) {
        size_t cut = ByteOffset(chunks[next], room);
        if (options.break_on_hyphens && Length(chunks[next]) > room) {
          size_t hyphen = chunks[next].substr(0, cut).rfind('-');
          if (hyphen != std::string_view::npos && hyphen > 0 &&
              chunks[next].substr(0, hyphen).find_first_not_of('-') != std::string_view::npos) {
            cut = hyphen + 1;
          }
        }
        line.push_back(chunks[next].substr(0, cut));
        chunks[next].remove_prefix(cut);
      } else if (line.empty()) {
        line.push_back(chunks[next++]);
      }
    }
    if (!line.empty() && IsBlank(line.back())) line.pop_back();
    if (line.empty()) continue;
    std::string joined;
    for (std::string_view chunk : line) joined.append(chunk);
    lines.push_back(std::move(joined));
  }
  return lines;
}

std::string StripTags(std::string_view html) {
  std::string text(html);
  auto remove = [&](std::string_view open, std::string_view close) {
    for (size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
      size_t end = text.find(close, at);
      if (end == std::string::npos) break;
      text.erase(at, end + close.size() - at);
    }
  };
  remove("<!--", "-->");
  remove("<", ">");
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t space = LeadingSpace(std::string_view(text).substr(i));
    if (space > 0) {
      i += space;
      if (!out.empty() && i < text.size()) out.push_back(' ');
      continue;
    }
    struct Entity {
      std::string_view name, text;
    };
    static constexpr Entity kEntities[] = {{"&amp;", "&"},   {"&lt;", "<"},         {"&gt;", ">"},
                                           {"&quot;", "\""}, {"&#34;", "\""},       {"&#39;", "'"},
                                           {"&apos;", "'"},  {"&nbsp;", "\xC2\xA0"}};
    bool found = false;
    for (const Entity& entity : kEntities) {
      if (text.compare(i, entity.name.size(), entity.name) != 0) continue;
      out.append(entity.text);
      i += entity.name.size();
      found = true;
      break;
    }
    if (!found) out.push_back(text[i++]);
  }
  return out;
}

}  // namespace portico::jinja
