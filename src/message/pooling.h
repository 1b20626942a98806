// What goes into an engine that gives one vector, or one row of class logits, for a text, and what comes out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "message/generate.h"

namespace portico {

// What a model gives.
enum class ModelTask {
  kGenerate,  // tokens
  kEmbed,     // a vector
  kClassify,  // a logit for each label: sequence classes, a reward, the relevance of a pair
};

// What a classifier's logits say of its labels; transformers' problem_type.
enum class ProblemType {
  kSingleLabel,  // one of them holds: probabilities by softmax, of one label alone by sigmoid
  kMultiLabel,   // each holds or does not: a sigmoid each
  kRegression,   // they are numbers, and no probabilities
};

// How the hidden states of a text's tokens become one vector.
enum class Pooling { kMean, kCls, kLast };
// "mean", "cls", "last": the names of --pooling and of /v1/models.
std::string_view PoolingName(Pooling pooling);
// INVALID_ARGUMENT for another name.
StatusOr<Pooling> ParsePooling(std::string_view name);

// One text.
struct PoolingRequest {
  StreamId stream = 0;
  std::string rid;                                     // the client's name for the request
  std::shared_ptr<const std::vector<TokenId>> tokens;  // not empty
  std::vector<uint8_t> token_types;                    // one a token, or empty: all 0
  std::string lora_path;                               // the adapter's name; empty: none
  int32_t data_parallel_rank = -1;                     // -1: the engine chooses
};

// Weights by index, as the engine gives them; the others are 0.
using SparseVector = std::vector<std::pair<int64_t, float>>;

// The answer to one text; exactly one comes for each.
struct PoolingOutput {
  StreamId stream = 0;
  // kEmbed: the pooled vector, EngineInfo::embedding_size long, not normalized. kClassify: the raw logits, one a
  // label. Empty unless `finish` is kStop.
  std::vector<float> values;
  std::optional<SparseVector> sparse;  // kEmbed: in place of `values`, from models that weigh words
  FinishReason finish = FinishReason::kStop;  // kStop, kAbort or kError
  int32_t prompt_tokens = 0;
  Status error;  // with kError
};

}  // namespace portico
