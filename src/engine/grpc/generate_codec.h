// What the workers' protocols say alike: chunks, last messages and log-probabilities have the same
// fields in all of them.
#pragma once

#include <algorithm>
#include <string>

#include "engine/grpc/token_wire.h"
#include "message/constraint.h"

namespace portico {

inline Status BadWorkerMessage(std::string_view what) {
  return Error(StatusCode::kInternal, "the worker's answer makes no sense: " + std::string(what));
}

// How many data-parallel ranks a server says that it has; 1 for what is no such number.
inline int32_t RankCount(double said) {
  constexpr double kMaxRanks = 1024;
  return said >= 1 && said <= kMaxRanks ? static_cast<int32_t>(said) : 1;
}

// For protocols without fields by which a prefill and a decode worker find each other.
inline Status RefusePair(const RequestExtras* extras) {
  if (extras == nullptr || !extras->bootstrap_room) return OkStatus();
  return InvalidArgument("bootstrap_room",
                         "bootstrap_room: this model's workers do not work in pairs");
}

// Where reasoning may begin and need not, a worker would apply nothing to an answer that begins without: there the grammar
// begins with the answer.
inline bool BeginsInReasoning(const Constraint& constraint) {
  return constraint.think_end >= 0 && constraint.think_start < 0;
}

template <typename TopLogProbs>
void ReadTop(const TopLogProbs& top, PositionLogprobs* position) {
  const int size = std::min(top.values_size(), top.token_ids_size());
  for (int i = 0; i < size; ++i) {
    position->top.push_back({static_cast<TokenId>(top.token_ids(i)), top.values(i)});
  }
}

// The last `tokens` positions: some workers repeat those before.
template <typename OutputLogProbs>
void ReadOutputLogprobs(const OutputLogProbs& from, int tokens, TokenDelta* out) {
  const int size = std::min(from.token_logprobs_size(), from.token_ids_size());
  for (int i = std::max(0, size - tokens); i < size; ++i) {
    PositionLogprobs& position = out->logprobs.emplace_back();
    position.chosen = {static_cast<TokenId>(from.token_ids(i)), from.token_logprobs(i)};
    if (i < from.top_logprobs_size()) ReadTop(from.top_logprobs(i), &position);
  }
}

// Which positions of the prompt a worker gives log-probabilities of.
enum class PromptPart { kFromStart, kWhole };

// From the position asked for on, or of all positions. The prompt's first comes without a value, and a
// TokenDelta has none of it.
template <typename InputLogProbs>
void ReadPromptLogprobs(const InputLogProbs& from, PromptPart part, StreamProgress* progress,
                        TokenDelta* out) {
  if (progress->prompt_logprobs_start < 0 || progress->told_prompt || from.token_ids_size() == 0) {
    return;
  }
  progress->told_prompt = true;
  const int size = std::min(from.token_logprobs_size(), from.token_ids_size());
  const int start = progress->prompt_logprobs_start;
  const int first = part == PromptPart::kWhole ? std::max(1, start) : (start > 0 ? 0 : 1);
  for (int i = first; i < size; ++i) {
    PositionLogprobs& position = out->prompt_logprobs.emplace_back();
    position.chosen = {static_cast<TokenId>(from.token_ids(i)), from.token_logprobs(i).value()};
    if (i < from.top_logprobs_size()) ReadTop(from.top_logprobs(i), &position);
  }
}

template <typename Message>
void ReadUsage(const Message& message, TokenDelta* out) {
  out->usage.prompt_tokens = static_cast<int32_t>(message.prompt_tokens());
  out->usage.completion_tokens = static_cast<int32_t>(message.completion_tokens());
  out->usage.cached_tokens = static_cast<int32_t>(message.cached_tokens());
}

template <typename Chunk>
Status ReadChunk(const Chunk& chunk, PromptPart part, StreamProgress* progress, TokenDelta* out) {
  for (const uint32_t id : chunk.token_ids()) out->tokens.push_back(static_cast<TokenId>(id));
  progress->received += chunk.token_ids_size();
  ReadUsage(chunk, out);
  if (chunk.has_output_logprobs()) {
    ReadOutputLogprobs(chunk.output_logprobs(), chunk.token_ids_size(), out);
  }
  if (chunk.has_input_logprobs()) ReadPromptLogprobs(chunk.input_logprobs(), part, progress, out);
  return OkStatus();
}

// `complete.output_ids` is the whole answer: what no chunk has brought is new.
template <typename Complete>
Status ReadComplete(const Complete& complete, PromptPart part, StreamProgress* progress,
                    TokenDelta* out) {
  const int size = complete.output_ids_size();
  if (size < progress->received && size > 0) return BadWorkerMessage("tokens were taken back");
  const int fresh = std::max(0, size - progress->received);
  for (int i = size - fresh; i < size; ++i) {
    out->tokens.push_back(static_cast<TokenId>(complete.output_ids(i)));
  }
  progress->received += fresh;
  ReadUsage(complete, out);
  if (fresh > 0 && complete.has_output_logprobs()) {
    ReadOutputLogprobs(complete.output_logprobs(), fresh, out);
  }
  if (complete.has_input_logprobs()) {
    ReadPromptLogprobs(complete.input_logprobs(), part, progress, out);
  }
  const std::string& reason = complete.finish_reason();
  if (reason == "stop") {
    out->finish = FinishReason::kStop;
    if (complete.matched_stop_case() == Complete::kMatchedTokenId) {
      out->matched_token = static_cast<TokenId>(complete.matched_token_id());
    }
  } else if (reason == "length") {
    out->finish = FinishReason::kLength;
  } else if (reason.starts_with("abort")) {
    out->finish = FinishReason::kAbort;
  } else {
    return BadWorkerMessage("finish reason `" + reason.substr(0, 40) + "`");
  }
  return OkStatus();
}

template <typename Response>
Status ReadResponse(const Response& response, PromptPart part, StreamProgress* progress,
                    TokenDelta* out) {
  if (response.has_chunk()) return ReadChunk(response.chunk(), part, progress, out);
  if (response.has_complete()) return ReadComplete(response.complete(), part, progress, out);
  return BadWorkerMessage("neither a chunk nor an end");
}

template <typename Response>
StatusOr<PoolingOutput> ReadEmbedding(const Response& response) {
  if (response.embedding_size() == 0) return BadWorkerMessage("an empty vector");
  PoolingOutput output;
  output.values.assign(response.embedding().begin(), response.embedding().end());
  output.prompt_tokens = static_cast<int32_t>(response.prompt_tokens());
  return output;
}

// As TokenWire::DecodeLoads().
template <typename Response>
StatusOr<TokenWorkerLoad> ReadLoads(const Response& response, int wanted) {
  if (response.loads_size() == 0) return BadWorkerMessage("no load");
  TokenWorkerLoad load{0, 0, 0, 0, 0, 0};
  bool found = false;
  for (const auto& rank : response.loads()) {
    if (wanted >= 0 && rank.dp_rank() != wanted) continue;
    found = true;
    load.running += rank.num_running_reqs();
    load.waiting += rank.num_waiting_reqs();
    load.used_tokens += rank.num_used_tokens();
    load.total_tokens += rank.max_total_num_tokens();
    load.throughput += rank.gen_throughput();
    load.token_usage = std::max(load.token_usage, static_cast<double>(rank.token_usage()));
  }
  if (!found) return BadWorkerMessage("no load of the rank");
  return load;
}

}  // namespace portico
