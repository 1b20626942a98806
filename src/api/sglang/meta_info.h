// Values of meta_info that HTTP and gRPC share, as JSON texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/text_delta.h"

namespace portico::api::sglang {

// Appends {"type":"stop","matched":…}, {"type":"length","length":8}, {"type":"abort",…} or null.
void AppendFinishReason(FinishReason finish, const MatchedStop& stop, int32_t length,
                        std::string* out);

// Where the cached tokens of the prompt were; null where the engine does not tell (`extras` null: it tells nothing).
void AppendCachedDetails(const DeltaExtras* extras, std::string* out);
// ,"image_tokens":3 and likewise of the other kinds, where the prompt has any.
void AppendMediaTokens(const TokenUsage& usage, std::string* out);
// The rank that computed the answer, or null.
void AppendRank(const DeltaExtras* extras, std::string* out);
// [{"version":…,"start":0,"end":8}, …]: the engine's spans, or one of all tokens. `version`: a JSON string.
void AppendWeightVersions(const DeltaExtras* extras, std::string_view version,
                          int32_t completion_tokens, std::string* out);

// SGLang's `spec_…` of an answer of so many tokens: a name and a JSON value each. Its TokenizerManager gives rates and
// lengths only where drafts were proposed.
std::vector<std::pair<std::string_view, std::string>> SpeculationMeta(
    const SpeculationCounts& counts, int32_t completion_tokens);

// Lists under construction, without their brackets.
struct LogprobLists {
  std::string tokens;  // [logprob,id,text],…
  std::string top;     // [[logprob,id,text],…],…
  std::string of_ids;  // the same for the tokens asked for by id
  int32_t count = 0;

  // `with_text`: else the texts are null.
  void Add(const TextPositionLogprobs& position, bool with_top, bool with_text,
           bool with_ids = false);
  size_t bytes() const { return tokens.size() + top.size() + of_ids.size(); }
};

}  // namespace portico::api::sglang
