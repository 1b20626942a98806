// JSON Lines through standard input and output: whole blocks in, whole blocks out.
#pragma once

#include <simdjson.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/json_writer.h"

namespace portico {

struct InputLine {
  std::string_view text;
  size_t number;  // from 1
};

// Calls `answer` with each non-empty line of `in`; what it appends to its second argument, and a line feed, goes to
// `out`. Answers are written when no more input is at hand, so that a person or program that asks line by line gets
// each answer at once. `answer` returns false for a line that is no JSON object. Returns the exit status of `command`:
// kFailed if there was such a line, which is said on standard error too, or if `out` cannot be written.
int AnswerEachLine(std::string_view command, std::FILE* in, std::FILE* out,
                   const std::function<bool(InputLine, std::string*)>& answer);

// The error of a line that is no JSON object; `parsed`: OK where it is JSON of another kind.
std::string NoObject(InputLine line, const Status& parsed);

// Parses a request and begins the object of its answer with the request's "id" (null if it has none). A line that is no
// object is answered whole with an "error": false. `request` lives as long as `parser` parses nothing else.
bool ReadRequest(InputLine line, simdjson::dom::parser* parser, simdjson::dom::object* request,
                 JsonWriter* answer);

}  // namespace portico
