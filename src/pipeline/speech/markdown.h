// Markdown → the words in it.
#pragma once

#include <string>
#include <string_view>

namespace portico::pipeline {

// Takes the marks away and keeps the words: emphasis, headings, quotes, list bullets, code marks,
// rules and tables; of a link or picture its text. Works on a clause at a time.
std::string StripMarkdown(std::string_view text);

}  // namespace portico::pipeline
