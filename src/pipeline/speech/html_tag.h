// HTML's tags in a text that is to be said.
#pragma once

#include <cstddef>
#include <string_view>

namespace portico::pipeline {

struct HtmlTag {
  size_t length = 0;    // 0: none
  bool breaks = false;  // words on either side of it are two
};

// The tag that `text` begins with: "<b>", "</p>", "<br/>", "<a href='x'>". No tags: "<b and c>" of "a<b and c>d", and names that
// HTML does not have.
HtmlTag HtmlTagOf(std::string_view text);

}  // namespace portico::pipeline
