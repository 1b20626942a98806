// What an answer says of its request's size, found without parsing the answer: the usage of OpenAI's APIs stands at the
// end of a whole answer, or in an event of its own before `[DONE]`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace portico::router {

// The last `"prompt_tokens": N` in the last 1 KiB of a piece of an answer, at least 1. Looks only where a usage can end: at
// pieces that end as a JSON object whose last value is no list and no absent usage, or with `[DONE]`; events with tokens
// cost the look at their last bytes.
std::optional<int64_t> FindPromptTokens(std::string_view piece);

}  // namespace portico::router
