// A model in memory, ready for libllama contexts. Loading takes a GGUF file as it is, and a Hugging
// Face folder through an import to GGUF that is kept in the user's cache (../import/importer.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/cache/import_cache.h"
#include "engine/llama/model/pooling_model.h"
#include "llama.h"
#include "message/embedding_prompts.h"
#include "message/generation_defaults.h"
#include "message/judge_tokens.h"
#include "message/sampling.h"

namespace portico::llama {

struct GgufInfo;

// Called now and then while a model is read, imported and loaded: what is being done ("reading
// weights", "importing", "quantizing", "loading") and how much of that stage is done, 0 to 1.
// Called from the loading thread only.
using Progress = std::function<void(std::string_view stage, double fraction)>;

struct ModelOptions {
  std::string path;  // a GGUF file, a Hugging Face folder, or a hub id ("org/name") in its cache
  // auto | float32 | bfloat16: of an imported folder's matrices (auto: as stored). float32 also
  // makes the arithmetic float32 throughout, for a GGUF file too, whose weights stay as they are.
  std::string dtype = "auto";
  std::string quantization;                         // "" for none, or q8_0, q4_k_m, …; folders only
  int32_t context_length = 0;                       // 0: the model's own
  int32_t threads = 0;                              // for import and quantization; 0: all cores
  uint64_t cache_bytes = kDefaultImportCacheBytes;  // of imports that nobody uses (importer.h)
  bool is_embedding = false;                        // a model that generates is to give vectors
  std::optional<Pooling> pooling;  // of a model that gives vectors; absent: its own
  // Of the values in the KV cache (../kv/kv_type.h); auto: float32 if the arithmetic is, else float16.
  std::string kv_cache_dtype = "auto";
  // Answers have the same bits whatever else is computed, in every dtype (ModelRunner). Weights stay in their file's order,
  // which is slower with some quantizations.
  bool deterministic = false;
};

struct ModelInfo {
  std::string path;            // as given
  std::string file;            // the GGUF file that libllama reads
  std::string tokenizer_path;  // the folder, or the GGUF file itself
  std::string architecture;    // "llama", "mistral", "qwen2", "qwen3", … as the publisher names it
  std::string dtype;           // of most of the weights in memory: "float32", "bfloat16", "q8_0", …
  int32_t vocab_size = 0;      // ids below it are known; rows of logits, if it generates
  int32_t context_length = 0;  // usable: after --context-length and the sliding window's cap
  int32_t train_context_length = 0;  // what the publisher names
  // Of a model with a table of positions, such as GPT-2: libllama ends the process at those beyond.
  std::optional<int32_t> positions;
  int32_t hidden_size = 0;
  int32_t layers = 0;
  int64_t parameters = 0;
  int64_t size_bytes = 0;             // of the weights
  ggml_type kv_type = GGML_TYPE_F16;  // of keys and values in the cache
  std::string kv_dtype;               // its name
  int64_t kv_bytes_per_cell = 0;      // of all layers
  bool float32 = false;               // the arithmetic is float32 throughout
  // Of generation_config.json and of config.json; else the GGUF's own.
  std::vector<TokenId> eos_token_ids;
  GenerationDefaults defaults;
  EmbeddingPrompts prompts;
  bool lower_case = false;           // texts are made lower case before they are tokenized
  std::optional<JudgeTokens> judge;  // of a model that ranks documents by its next token
  std::vector<std::string>
      notes;  // sentences to print at the start, e.g. that the context is capped
};

// Immutable once loaded; may be shared by threads and contexts, and must outlive its contexts.
class LlamaModel {
 public:
  // Errors: NOT_FOUND (no such path), INVALID_ARGUMENT (damaged, or cannot be imported, or a bad
  // option), UNIMPLEMENTED (a model that neither generates token by token nor gives vectors),
  // RESOURCE_EXHAUSTED (the disk is full), INTERNAL (libllama refused it). The message is one sentence that names the file
  // and the fault. Blocks; may take minutes for a first import.
  static StatusOr<std::unique_ptr<LlamaModel>> Load(const ModelOptions& options,
                                                    const Progress& progress);
  ~LlamaModel();
  LlamaModel(const LlamaModel&) = delete;
  LlamaModel& operator=(const LlamaModel&) = delete;

  llama_model* get() const { return model_; }
  const ModelInfo& info() const { return info_; }
  // Null for a model that generates.
  const PoolingModel* pooling() const { return pooling_ ? &*pooling_ : nullptr; }
  // Of all models of the process, in bytes: mapped, and in use.
  static int64_t LoadedBytes();
  // What it was loaded with.
  const ModelOptions& options() const { return options_; }

  // Where every context of this model starts from: libllama's defaults plus what the model needs:
  // cache types, no flash attention when the arithmetic is float32, else libllama's choice, YaRN's numbers that libllama does not read from the file, one unified cache. The
  // caller sets n_ctx (KV cells in all), n_batch, n_ubatch, n_seq_max (≤ 256) and threads; a
  // sequence must not grow beyond info().context_length.
  llama_context_params ContextParams() const;

 private:
  explicit LlamaModel(llama_model* model);
  Status Describe(const ModelOptions& options, const GgufInfo& gguf);
  // max_context and usual_context as ImportedModel's.
  Status ChooseContext(const ModelOptions& options, const GgufInfo& gguf, int64_t max_context,
                       int64_t usual_context);

  llama_model* model_;
  std::optional<ImportUse> import_use_;
  std::optional<PoolingModel> pooling_;
  ModelInfo info_;
  ModelOptions options_;
  float yarn_beta_fast_ = -1.0f;  // negative: libllama's own
  float yarn_beta_slow_ = -1.0f;
};

}  // namespace portico::llama
