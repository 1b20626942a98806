// Heads of tags: where one ends, and its attributes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace portico::parser {

inline constexpr size_t kMaxTagHead = 1024;

struct HeadForm {
  std::string_view end = ">";
  bool quotes = true;  // what stands in quotes does not end it
};

// Finds the end of a head in `text`, which begins behind the head's marker. False: more text is needed, or it is none (*bad).
bool FindHeadEnd(std::string_view text, const HeadForm& form, bool final, size_t* end, bool* bad);

// The value of an attribute, `key="VALUE"`, quotes may be missing; "" where there is none. `entities`: &amp; and the like stand
// for characters.
std::string AttributeOf(std::string_view head, std::string_view key, bool entities);

// Attributes of other names, as they stand.
std::string OtherAttributes(std::string_view head, std::initializer_list<std::string_view> known);

}  // namespace portico::parser
