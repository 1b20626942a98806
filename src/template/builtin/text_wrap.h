// Python's textwrap and markupsafe's striptags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portico::jinja {

struct WrapOptions {
  int64_t width = 79;
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

// Lines of at most `width` characters, as textwrap.wrap without tab and white space replacement makes them.
std::vector<std::string> WrapText(std::string_view text, const WrapOptions& options);

// The text without comments and tags, white space collapsed, entities resolved.
std::string StripTags(std::string_view html);

}  // namespace portico::jinja
