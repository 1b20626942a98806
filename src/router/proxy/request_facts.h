// What routing needs of an HTTP request's body. The body itself is passed on as it came.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "router/policy/policy.h"

namespace portico::router {

struct RequestFacts {
  std::string model;  // empty: none is named
  // Where the body names it: a JSON string with its quotes, or the text of a form's field.
  size_t model_at = 0, model_size = 0;
  std::string session;    // the body's "user", "session_id" or SGLang's "routing_key"
  std::string opened;     // the id in SGLang's "session_params"
  size_t opened_end = 0;  // where it ends in the body
  std::string text;       // of the prompt, at most kMaxText bytes; empty if it was not wanted
  std::vector<int32_t>
      tokens;               // of a prompt that is one list of token ids, at most kMaxTokens of them
  int64_t token_count = 0;  // of all
  bool only_tokens = true;  // nothing else of a prompt has been read
  bool stream = false;

  static constexpr size_t kMaxText = kMaxPromptText;
  static constexpr size_t kMaxTokens = kMaxText / 4;
};

// Reads a JSON body as far as it must: fields that are missing, of another type or behind a place
// where the JSON breaks are as if absent; the worker will say what is wrong. `body` has simdjson's
// padding behind it (HttpRequest::body has).
//
// The text of a prompt is what the SGLang router matches: the contents of all messages, or
// `prompt`, `text`, `input` (the items of a Responses request too) or `query`, several of them one
// behind the other; in front of them `system` or `instructions`.
//
// `cut`: `body` is only the beginning, of which no more is read than a prompt's text needs. A model's
// name, or a session's id, that is not whole there is as if absent.
RequestFacts ReadRequestFacts(simdjson::ondemand::parser& parser, const std::string& body,
                              bool wants_text, bool cut = false);

}  // namespace portico::router
