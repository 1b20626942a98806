// Hugging Face folder → GGUF file in the user's cache, done once for each content.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/cache/import_cache.h"
#include "engine/llama/import/plan/import_plan.h"
#include "engine/llama/model/pooling_model.h"
#include "message/embedding_prompts.h"
#include "message/judge_tokens.h"
#include "message/pooling.h"

namespace portico::llama {

using ImportProgress = std::function<void(std::string_view stage, double fraction)>;

struct ImportOptions {
  ImportDtype dtype = ImportDtype::kAuto;  // of matrices; vectors are float32
  std::string quantization;                // "" or a name that ParseQuantization() takes
  int threads = 1;
  int32_t context_length = 0;  // wanted of the model; 0: what it has
  uint64_t cache_bytes = kDefaultImportCacheBytes;
  // A model that generates is imported for its vectors, as one is with sentence-transformers' files.
  bool is_embedding = false;
  std::optional<Pooling> pooling;  // of a model that gives vectors; absent: what the folder says
};

// INVALID_ARGUMENT with both numbers if a context of `wanted` tokens is more than a model has; 0 wants none.
Status CheckContextLength(int64_t wanted, int64_t most);

struct ImportedModel {
  std::string file;              // the GGUF, complete and checked
  std::optional<ImportUse> use;  // keeps it there
  int32_t vocab_size = 0;
  int64_t max_context = 0;              // of the rotation or the positions; 0: no such bound
  int64_t usual_context = 0;            // what texts are meant to have at most; 0: it does not say
  std::optional<PoolingModel> pooling;  // unless it generates
  EmbeddingPrompts prompts;             // of one that gives vectors
  bool lower_case = false;              // its tokenizer makes texts lower case first
  std::optional<JudgeTokens> judge;     // of one that ranks by its next token
  std::vector<std::string> notes;
};

// Reads config.json and all weights' headers, hashes the content unless its hash is remembered, and
// writes the GGUF unless the cache has it. Then the least recently used imports go, down to
// cache_bytes. Several processes may import the same folder at once: one works, the others wait
// for it. A write that was interrupted leaves nothing under the final name, and its remains are
// removed by the next import. Memory stays bounded by one slice of a tensor (libllama's own bound
// while quantizing). Errors: as ParseHfConfig(), WeightFiles::Open(), PlanImport();
// RESOURCE_EXHAUSTED when the disk is full.
StatusOr<ImportedModel> ImportFolder(const std::string& folder, const ImportOptions& options,
                                     const ImportProgress& progress);

}  // namespace portico::llama
