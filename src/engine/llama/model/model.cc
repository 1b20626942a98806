#include "engine/llama/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>

#include "base/processors.h"
#include "engine/llama/import/files/file.h"
#include "engine/llama/import/files/gguf_file.h"
#include "engine/llama/import/importer.h"
#include "engine/llama/import/quantize.h"
#include "engine/llama/kv/kv_type.h"
#include "engine/llama/model/gguf_pooling.h"
#include "engine/llama/model/llama_log.h"
#include "engine/llama/model/model_folder.h"

namespace portico::llama {
namespace {

std::atomic<int64_t> loaded_bytes{0};

StatusOr<ImportDtype> ParseDtype(const std::string& name) {
  if (name == "auto") return ImportDtype::kAuto;
  if (name == "float32") return ImportDtype::kFloat32;
  if (name == "bfloat16") return ImportDtype::kBfloat16;
  return InvalidArgument(
      "dtype", fmt::format("the dtype '{}' is not known; there are auto, float32, bfloat16", name));
}

std::string TypeName(ggml_type type) {
  if (type == GGML_TYPE_F32) return "float32";
  if (type == GGML_TYPE_F16) return "float16";
  if (type == GGML_TYPE_BF16) return "bfloat16";
  std::string name = ggml_type_name(type);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// The type that holds most bytes; for a mix that quantization makes, the mix's name.
std::string WeightType(const GgufInfo& gguf) {
  std::map<int32_t, uint64_t> bytes;
  for (const GgufTensor& tensor : gguf.tensors) bytes[tensor.type] += tensor.bytes;
  int32_t most = GGML_TYPE_F32;
  for (const auto& [type, sum] : bytes) {
    if (sum > bytes[most]) most = type;
  }
  ggml_type type = static_cast<ggml_type>(most);
  auto found = gguf.metadata.find("general.file_type");
  if (ggml_is_quantized(type) && found != gguf.metadata.end()) {
    const int64_t* ftype = std::get_if<int64_t>(&found->second);
    std::optional<std::string> name = ftype ? QuantizationName(*ftype) : std::nullopt;
    if (name) return *name;
  }
  return TypeName(type);
}

// Values of keys and of values that one token adds to the cache, all layers together.
int64_t KvValuesPerCell(const GgufInfo& gguf, const llama_model* model) {
  const int64_t layers = llama_model_n_layer(model);
  const int64_t heads = std::max(1, llama_model_n_head(model));
  const int64_t plain = llama_model_n_embd(model) / heads;
  const int64_t per_head = gguf.Int("attention.key_length").value_or(plain) +
                           gguf.Int("attention.value_length").value_or(plain);
  auto per_layer = gguf.arrays.find(gguf.architecture() + ".attention.head_count_kv");
  if (per_layer == gguf.arrays.end()) return layers * llama_model_n_head_kv(model) * per_head;
  int64_t total = 0;
  for (int64_t kv_heads : per_layer->second) total += kv_heads * per_head;
  return total;
}

// All tokens that libllama takes for an end of generation.
std::vector<TokenId> GgufEos(const llama_model* model) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  std::vector<TokenId> ids;
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) return ids;
  for (TokenId id = 0; id < llama_vocab_n_tokens(vocab); ++id) {
    if (llama_vocab_is_eog(vocab, id)) ids.push_back(id);
  }
  return ids;
}

Status CheckGenerates(const std::string& path, const llama_model* model, const GgufInfo& gguf) {
  auto causal = gguf.metadata.find(gguf.architecture() + ".attention.causal");
  bool both_ways = causal != gguf.metadata.end() && causal->second == GgufValue(false);
  const char* reason = nullptr;
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model) || both_ways) {
    reason = "an encoder, which does not generate text";
  } else if (llama_model_is_diffusion(model)) {
    reason = "a diffusion model, which does not generate token by token";
  } else if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model)) {
    reason = "recurrent: requests cannot share its state";
  }
  if (reason == nullptr) return OkStatus();
  return Error(StatusCode::kUnimplemented,
               fmt::format("{}: the architecture '{}' is {}", path, gguf.architecture(), reason));
}

bool ReportLoading(float fraction, void* data) {
  const Progress& progress = *static_cast<const Progress*>(data);
  if (progress) progress("loading", fraction);
  return true;
}

StatusOr<llama_model*> LoadFile(const std::string& file, bool deterministic,
                                const Progress& progress) {
  llama_model_params params = llama_model_default_params();
  if (deterministic) params.use_extra_bufts = false;
  params.progress_callback = ReportLoading;
  params.progress_callback_user_data = const_cast<Progress*>(&progress);
  LlamaErrors errors;
  llama_model* model = llama_model_load_from_file(file.c_str(), params);
  if (model != nullptr) return model;
  return Error(StatusCode::kInternal,
               fmt::format("{}: libllama cannot load it: {}", file, errors.Text()));
}

}  // namespace

StatusOr<std::unique_ptr<LlamaModel>> LlamaModel::Load(const ModelOptions& options,
                                                       const Progress& progress) {
  StartLlama();
  ImportOptions import;
  PORTICO_ASSIGN_OR_RETURN(import.dtype, ParseDtype(options.dtype));
  PORTICO_ASSIGN_OR_RETURN(const std::optional<ggml_type> kv_type,
                           ParseKvType(options.kv_cache_dtype));
  import.quantization = options.quantization;
  if (!import.quantization.empty()) {
    PORTICO_ASSIGN_OR_RETURN(llama_ftype ftype, ParseQuantization(import.quantization));
    import.quantization = *QuantizationName(ftype);
  }
  import.threads = options.threads > 0 ? options.threads : UsableProcessors();
  import.context_length = options.context_length;
  import.cache_bytes = options.cache_bytes;
  import.is_embedding = options.is_embedding;
  import.pooling = options.pooling;
  PORTICO_ASSIGN_OR_RETURN(ModelSource source, FindModel(options.path));

  ModelInfo info;
  info.kv_type = kv_type.value_or(info.kv_type);
  info.path = options.path;
  info.tokenizer_path = source.path;
  info.file = source.path;
  ImportedModel imported;
  if (source.is_folder) {
    PORTICO_ASSIGN_OR_RETURN(FolderGeneration generation, ReadGeneration(source.path));
    info.eos_token_ids = std::move(generation.eos_token_ids);
    info.defaults = generation.defaults;
    PORTICO_ASSIGN_OR_RETURN(imported, ImportFolder(source.path, import, progress));
    info.file = imported.file;
    info.notes = std::move(imported.notes);
    info.prompts = std::move(imported.prompts);
    info.judge = imported.judge;
    info.lower_case = imported.lower_case;
    info.vocab_size = imported.vocab_size;
  } else if (!import.quantization.empty() || import.dtype == ImportDtype::kBfloat16) {
    return InvalidArgument(import.quantization.empty() ? "dtype" : "quantization",
                           source.path +
                               ": a GGUF file's weights are used as they are; only "
                               "folders are converted");
  }

  PORTICO_ASSIGN_OR_RETURN(GgufInfo gguf, ReadGgufModel(info.file));
  if (const std::optional<int64_t> most = gguf.Int("context_length"); most.has_value()) {
    PORTICO_RETURN_IF_ERROR(CheckContextLength(options.context_length, *most));
  }
  PORTICO_ASSIGN_OR_RETURN(llama_model * loaded,
                           LoadFile(info.file, options.deterministic, progress));
  std::unique_ptr<LlamaModel> model(new LlamaModel(loaded));
  model->info_ = std::move(info);
  model->options_ = options;
  model->import_use_ = std::move(imported.use);
  model->pooling_ = std::move(imported.pooling);
  if (!source.is_folder) {
    PORTICO_ASSIGN_OR_RETURN(
        model->pooling_,
        ReadGgufPooling(source.path, gguf, loaded, options.is_embedding, options.pooling));
  }
  if (options.pooling && !model->pooling_) {
    return InvalidArgument("pooling", options.path +
                                          ": --pooling is for models that give vectors; "
                                          "--is-embedding makes one of a model that generates");
  }
  PORTICO_RETURN_IF_ERROR(model->Describe(options, gguf));
  PORTICO_RETURN_IF_ERROR(
      model->ChooseContext(options, gguf, imported.max_context, imported.usual_context));
  return model;
}

LlamaModel::LlamaModel(llama_model* model) : model_(model) {
  loaded_bytes += static_cast<int64_t>(llama_model_size(model_));
}

LlamaModel::~LlamaModel() {
  loaded_bytes -= static_cast<int64_t>(llama_model_size(model_));
  llama_model_free(model_);
}

int64_t LlamaModel::LoadedBytes() { return loaded_bytes; }

Status LlamaModel::Describe(const ModelOptions& options, const GgufInfo& gguf) {
  if (!pooling_) PORTICO_RETURN_IF_ERROR(CheckGenerates(info_.file, model_, gguf));
  info_.architecture = gguf.Text("portico.family");
  if (info_.architecture.empty()) info_.architecture = gguf.architecture();
  info_.dtype = WeightType(gguf);
  info_.float32 =
      options.dtype == "float32" || (options.dtype == "auto" && info_.dtype == "float32");
  if (info_.vocab_size == 0) {
    info_.vocab_size = llama_vocab_n_tokens(llama_model_get_vocab(model_));
  }
  if (info_.vocab_size <= 0) return BadFile(info_.file, "does not say how many tokens there are");
  for (const GgufTensor& tensor : gguf.tensors) {
    if (tensor.name == "position_embd.weight") {
      info_.positions = static_cast<int32_t>(tensor.rows);
    }
  }
  info_.hidden_size = llama_model_n_embd(model_);
  info_.layers = llama_model_n_layer(model_);
  info_.parameters = static_cast<int64_t>(llama_model_n_params(model_));
  info_.size_bytes = static_cast<int64_t>(llama_model_size(model_));
  if (info_.float32 && options.kv_cache_dtype == "auto") info_.kv_type = GGML_TYPE_F32;
  info_.kv_dtype = TypeName(info_.kv_type);
  info_.kv_bytes_per_cell = KvValuesPerCell(gguf, model_) *
                            static_cast<int64_t>(ggml_type_size(info_.kv_type)) /
                            ggml_blck_size(info_.kv_type);
  if (gguf.Text("tokenizer.ggml.model") != "none") info_.eos_token_ids = GgufEos(model_);
  size_t named = info_.eos_token_ids.size();
  std::erase_if(info_.eos_token_ids, [&](TokenId id) { return id >= info_.vocab_size; });
  if (info_.eos_token_ids.size() < named) {
    info_.notes.push_back("An end token outside the vocabulary is ignored.");
  }
  yarn_beta_fast_ = static_cast<float>(gguf.Float("rope.scaling.yarn_beta_fast").value_or(-1));
  yarn_beta_slow_ = static_cast<float>(gguf.Float("rope.scaling.yarn_beta_slow").value_or(-1));
  return OkStatus();
}

Status LlamaModel::ChooseContext(const ModelOptions& options, const GgufInfo& gguf,
                                 int64_t max_context, int64_t usual_context) {
  info_.train_context_length = llama_model_n_ctx_train(model_);
  int64_t limit = info_.train_context_length;
  if (max_context > 0) limit = std::min(limit, max_context);
  int64_t window = gguf.Int("attention.sliding_window").value_or(0);
  if (window > 0 && window < limit && llama_model_n_swa(model_) == 0) {
    limit = window;
    info_.notes.push_back(fmt::format(
        "The context is capped at {} tokens: the model attends through a sliding window of that "
        "size, which libllama does not apply to '{}' models (it was made for {} tokens).",
        window, info_.architecture, info_.train_context_length));
  }
  PORTICO_RETURN_IF_ERROR(CheckContextLength(options.context_length, limit));
  const int64_t usual = usual_context > 0 ? std::min(limit, usual_context) : limit;
  info_.context_length =
      static_cast<int32_t>(options.context_length > 0 ? options.context_length : usual);
  return OkStatus();
}

llama_context_params LlamaModel::ContextParams() const {
  llama_context_params params = llama_context_default_params();
  params.kv_unified = true;
  params.swa_full = true;
  params.no_perf = true;
  params.type_k = params.type_v = info_.kv_type;
  params.flash_attn_type =
      info_.float32 ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_AUTO;
  params.yarn_beta_fast = yarn_beta_fast_;
  params.yarn_beta_slow = yarn_beta_slow_;
  return params;
}

}  // namespace portico::llama
