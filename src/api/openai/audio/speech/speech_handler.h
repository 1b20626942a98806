// POST /v1/audio/speech.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/context.h"
#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

void HandleSpeech(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);
// GET /v1/audio/speech/{request_id}: how a speech has ended (pipeline/outcomes.h). By the id of the speech or of its request: the former
// is the latter behind `speech-`.
inline constexpr std::string_view kSpeechPath = "/v1/audio/speech/";
void HandleSpeechOutcome(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

// `{"input_tokens":3,…}`
std::string SpeechUsage(int64_t prompt_tokens, int64_t completion_tokens);

// INVALID_ARGUMENT or NOT_FOUND (field "model") unless it is empty, the pipeline's or a model's.
Status CheckSpeechModel(const ApiContext& api, std::string_view model);

}  // namespace portico::api::openai
