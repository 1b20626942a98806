// The files by which sentence-transformers says how a folder's model makes its vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/llama/layers/pooling_head.h"
#include "message/embedding_prompts.h"
#include "message/judge_tokens.h"
#include "message/pooling.h"

namespace portico::llama {

struct SentenceModules {
  std::optional<Pooling> pooling;
  std::string pooling_fault;  // why there is none: a way of pooling that is not known here
  bool normalized = false;
  std::vector<DenseLayer> dense;
  int64_t max_tokens = 0;   // of a text; 0: it does not say
  bool lower_case = false;  // texts are made lower case before they are tokenized
  EmbeddingPrompts prompts;
  std::optional<JudgeTokens> judge;  // it generates, and ranks documents by what it would say next
  bool pools_prompt = true;          // a prompt's tokens count in the vector
};

// modules.json and the files that it names. Nothing if the folder has none. INVALID_ARGUMENT for files that
// cannot be read and modules that are not known here.
StatusOr<std::optional<SentenceModules>> ReadSentenceModules(const std::string& folder);

}  // namespace portico::llama
