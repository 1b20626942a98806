// From simdjson's read-only tree to Json.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "text/json.h"

namespace portico {

// Integers that were taken out of a text because simdjson cannot read them: the number of the fraction in the text
// (counted from 0) that stands for each, rising, and its decimal text.
using BigIntegers = std::vector<std::pair<size_t, std::string>>;

// The value of a parsed element, by Json::Parse()'s rules for doubled keys and big integers.
// Recursive: the parser has bounded the depth.
Json JsonOf(simdjson::dom::element from);
// The same for a whole text with `big` taken out.
Json JsonOf(simdjson::dom::element from, const BigIntegers& big);

}  // namespace portico
