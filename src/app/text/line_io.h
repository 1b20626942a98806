// JSON Lines through standard input and output: whole blocks in, whole blocks out.
#pragma once

#include <simdjson.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "text/json_writer.h"

namespace portico {

// Calls `answer` with each non-empty line of `in`; what it appends to its second argument, and a line feed, goes to
// `out`. Answers are written when no more input is at hand, so that a person or program that asks line by line gets
// each answer at once. Returns false if `out` cannot be written.
bool ForEachLine(std::FILE* in, std::FILE* out,
                 const std::function<void(std::string_view, std::string*)>& answer);

// Parses a request and begins the object of its answer with the request's "id" (null if it has none). A line that is no
// object is answered whole with an "error": false. `request` lives as long as `parser` parses nothing else.
bool ReadRequest(std::string_view line, simdjson::dom::parser* parser,
                 simdjson::dom::object* request, JsonWriter* answer);

}  // namespace portico
