// What goes into an engine and what comes out: token ids, never text (DESIGN: GenerateRequest, TokenDelta).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/clock.h"
#include "base/status.h"
#include "message/constraint.h"
#include "message/request_extras.h"
#include "message/request_media.h"
#include "message/sampling.h"
#include "message/trace_context.h"

namespace portico {

// Names one stream of tokens in this process; never used twice.
using StreamId = uint64_t;
StreamId NextStreamId();
// The first of `count` that follow each other.
StreamId NextStreamIds(uint64_t count);

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };
// "stop", "length", "abort", "error"; "" for kNone.
std::string_view FinishReasonName(FinishReason reason);

struct GenerateRequest {
  StreamId stream = 0;
  std::string rid;                                     // the client's name for the request
  std::shared_ptr<const std::vector<TokenId>> prompt;  // not empty; shared between choices
  std::shared_ptr<const SamplingParams> sampling;      // not null; shared between choices
  int32_t max_new_tokens = 128;
  int32_t choice = 0;  // index among the n answers to one prompt
  // The stream of choice 0, where a prompt has several answers. They are submitted one after the other, choice 0 first.
  StreamId first_choice = 0;

  bool return_logprobs = false;  // of output tokens
  int32_t top_logprobs = 0;      // alternatives a position
  // Tokens whose log-probability is wanted at every position, within the vocabulary; null: none.
  std::shared_ptr<const std::vector<TokenId>> logprob_ids;
  // First prompt position whose log-probability is wanted, or -1 for none. Position 0 has none (no context).
  int32_t prompt_logprobs_start = -1;

  // When the client stops waiting. The service aborts the stream then; an engine may use it to order its queue, and
  // passes it on where its worker takes one.
  std::optional<TimePoint> deadline;
  int32_t priority = 0;  // greater: earlier; 0 unless EngineCapabilities::priorities
  TraceContext trace;    // not valid(): the request is part of none

  std::shared_ptr<const Constraint> constraint;  // null: none
  std::shared_ptr<const RequestExtras> extras;   // null: none
};

// A copy of the request's parameters, or new ones, that this request alone has and that can be changed.
SamplingParams& OwnSampling(GenerateRequest* request);

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;  // natural log; of a prompt the model's own, of an answer see sampler.h
};

// One position: the token there, the best alternatives, best first, and those asked for by id.
struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
  std::vector<TokenLogprob> of_ids;  // in the order of GenerateRequest::logprob_ids
};

// Engine-side counts of one stream.
struct TokenUsage {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
  int32_t completion_tokens = 0;
  int32_t retractions = 0;        // how often it was sent back to the queue
  int32_t reasoning_tokens = -1;  // of the completion; -1: nobody tells them apart
  std::array<int32_t, kMediaKinds> media_tokens{};  // of the prompt, by MediaKind

  int32_t Of(MediaKind kind) const { return media_tokens[static_cast<size_t>(kind)]; }
};

// With which weights the tokens [begin, end) of an answer were computed.
struct WeightVersionSpan {
  std::string version;
  int32_t begin = 0;
  int32_t end = 0;
};

// Of an answer whose tokens a draft model proposed, all steps together.
struct SpeculationCounts {
  int64_t verifications = 0;               // steps of the model itself
  int64_t proposed = 0;                    // draft tokens
  int64_t correct = 0;                     // of them
  int64_t capped = 0;                      // what bounds left of the drafts; 0: there are none
  std::vector<int64_t> correct_histogram;  // steps by correct drafts
  std::vector<int64_t> cap_histogram;      // steps by bound
};

// What few deltas carry.
struct DeltaExtras {
  // SGLang's nesting: of the prompt a list of rows, of each new token a row. With "last" rows only.
  struct HiddenStates {
    bool is_prompt = false;
    std::vector<std::vector<float>> rows;  // one, unless is_prompt
  };
  std::vector<HiddenStates> hidden_states;
  std::vector<WeightVersionSpan> weight_versions;  // with the last message
  int32_t data_parallel_rank = -1;
  // Of cached_tokens: where they were found; -1: unknown.
  int32_t cached_on_device = -1;
  int32_t cached_on_host = -1;
  int32_t cached_in_storage = -1;
  std::string storage_backend;                   // of cached_in_storage
  std::optional<SpeculationCounts> speculation;  // with the last message
  std::string matched_text;  // with kStop: the stop string that the engine itself has found
};

// What is new in a stream since the last message. The last one has `finish` set, comes exactly once and
// carries the usage. It may be the first: a stream can end before it begins, and then nothing that the request asked
// for has come.
struct TokenDelta {
  StreamId stream = 0;
  absl::InlinedVector<TokenId, 4> tokens;
  std::vector<PositionLogprobs> logprobs;         // one a token, where asked for
  std::vector<PositionLogprobs> prompt_logprobs;  // with the first message that has any, from
      // max(prompt_logprobs_start, 1) to the prompt's end
  FinishReason finish = FinishReason::kNone;
  // With kStop: the token that ended the stream. It is the last of `tokens`; the detokenizer leaves it out.
  TokenId matched_token = -1;
  TokenUsage usage;
  Status error;                         // with kError
  std::unique_ptr<DeltaExtras> extras;  // null: none
};

}  // namespace portico
