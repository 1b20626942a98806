#include "engine/llama/import/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/llama/import/cache/content_hash.h"
#include "engine/llama/import/cache/hash_memory.h"
#include "engine/llama/import/cache/import_cache.h"
#include "engine/llama/import/files/file.h"
#include "engine/llama/import/files/gguf_file.h"
#include "engine/llama/import/files/safetensors.h"
#include "engine/llama/import/plan/gguf_writer.h"
#include "engine/llama/import/plan/pooling_weights.h"
#include "engine/llama/import/quantize.h"

namespace portico::llama {
namespace {

namespace fs = std::filesystem;

// Part of every key: raise it when the same folder would be written differently.
constexpr char kRecipe[] = "portico import 2";
constexpr char kPoolingRecipe[] = "portico pooling import 2";

std::string DtypeName(ImportDtype dtype) {
  if (dtype == ImportDtype::kFloat32) return "float32";
  return dtype == ImportDtype::kBfloat16 ? "bfloat16" : "auto";
}

// A file that a library writes, removed unless it was committed.
class TempFile {
 public:
  explicit TempFile(std::string path) : path_(std::move(path)) {}
  ~TempFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Import {
 public:
  Import(const ImportOptions& options, const ImportProgress& progress, const WeightFiles& weights,
         const ImportPlan& plan, bool pools, ImportCache cache)
      : options_(options),
        progress_(progress),
        weights_(weights),
        plan_(plan),
        pools_(pools),
        cache_(std::move(cache)) {}

  struct Found {
    std::string file;
    ImportUse use;
  };

  StatusOr<Found> Run(const std::string& config_text) {
    PORTICO_ASSIGN_OR_RETURN(std::string before, Stamps());
    PORTICO_ASSIGN_OR_RETURN(std::string content, Content());
    const std::string dtype = DtypeName(options_.dtype);
    const std::string recipe = pools_ ? kPoolingRecipe : kRecipe;
    const std::string base_key = HashTexts({recipe, config_text, content, dtype, ""});
    std::string key = base_key;
    if (!options_.quantization.empty()) {
      key =
          HashTexts({recipe, config_text, content, dtype, options_.quantization, llama_version()});
    }
    if (auto use = Ready(key)) return Found{cache_.PathOf(key), *std::move(use)};

    PORTICO_ASSIGN_OR_RETURN(ImportLock lock, ImportLock::Acquire(cache_, key, [&] {
                               Report("waiting for another import", 0);
                             }));
    if (auto use = Ready(key)) return Found{cache_.PathOf(key), *std::move(use)};
    TempFile temp(cache_.TempPathOf(key));
    if (options_.quantization.empty()) {
      PORTICO_RETURN_IF_ERROR(Write(temp.path()));
    } else {
      PORTICO_RETURN_IF_ERROR(WriteQuantized(base_key, key, temp.path()));
    }
    PORTICO_ASSIGN_OR_RETURN(std::string after, Stamps());
    if (before != after) {
      return Error(StatusCode::kAborted, "the model's weights changed while they were imported");
    }
    PORTICO_RETURN_IF_ERROR(Seal(key, temp.path()));
    std::optional<ImportUse> use = ImportUse::Of(temp.path());
    if (!use) return FileError(temp.path(), "lock", errno);
    PORTICO_RETURN_IF_ERROR(CommitFile(temp.path(), cache_.PathOf(key)));
    return Found{cache_.PathOf(key), *std::move(use)};
  }

 private:
  void Report(std::string_view stage, double share) const {
    if (progress_) progress_(stage, share);
  }

  StatusOr<std::string> Content() const { return HashOf(weights_.files(), "reading weights"); }

  // Of files that nobody has touched since they were last read: from memory.
  StatusOr<std::string> HashOf(const std::vector<InputFile>& files, std::string_view stage) const {
    PORTICO_ASSIGN_OR_RETURN(HashMemory memory, HashMemory::Of(cache_.folder(), files));
    if (std::optional<std::string> known = memory.Find()) return *std::move(known);
    PORTICO_ASSIGN_OR_RETURN(
        std::string hash,
        HashFiles(files, options_.threads, [&](double share) { Report(stage, share); }));
    PORTICO_ASSIGN_OR_RETURN(HashMemory after, HashMemory::Of(cache_.folder(), files));
    if (after == memory) memory.Store(hash);
    return hash;
  }

  StatusOr<std::string> HashOfImport(const std::string& path) const {
    std::vector<InputFile> files;
    PORTICO_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
    files.push_back(std::move(file));
    return HashOf(files, "reading weights");
  }

  // Before the file gets its final name: what it must be for ever.
  Status Seal(const std::string& key, const std::string& path) const {
    PORTICO_ASSIGN_OR_RETURN(const std::string hash, HashOfImport(path));
    return cache_.WriteSeal(key, hash);
  }

  // A file under its final name was complete when it got it; the check is against what happened
  // since, to its head and to its weights.
  std::optional<ImportUse> Ready(const std::string& key) const {
    std::optional<ImportUse> use = ImportUse::Of(cache_.PathOf(key));
    if (!use) return use;
    const std::optional<std::string> seal = cache_.ReadSeal(key);
    if (!seal || !ReadGgufModel(cache_.PathOf(key)).ok()) return std::nullopt;
    const StatusOr<std::string> hash = HashOfImport(cache_.PathOf(key));
    if (!hash.ok() || *hash != *seal) return std::nullopt;
    return use;
  }

  StatusOr<std::string> Stamps() const {
    std::string all;
    for (const InputFile& file : weights_.files()) {
      PORTICO_ASSIGN_OR_RETURN(std::string stamp, file.Stamp());
      all += stamp + "\n";
    }
    return all;
  }

  Status Write(const std::string& path) const {
    Report("importing", 0);
    return WriteGguf(plan_, weights_, path, [&](double share) { Report("importing", share); });
  }

  // From the unquantized import if the cache has it, else from a temporary one.
  Status WriteQuantized(const std::string& base_key, const std::string& key,
                        const std::string& path) const {
    PORTICO_ASSIGN_OR_RETURN(llama_ftype ftype, ParseQuantization(options_.quantization));
    TempFile base(cache_.TempPathOf(key));
    std::string from = cache_.PathOf(base_key);
    const std::optional<ImportUse> use = Ready(base_key);
    if (!use) {
      PORTICO_RETURN_IF_ERROR(Write(base.path()));
      from = base.path();
    }
    PORTICO_RETURN_IF_ERROR(Reserve(path));
    Report("quantizing", 0);
    PORTICO_RETURN_IF_ERROR(Quantize(from, path, ftype, options_.threads,
                                     [&](double share) { Report("quantizing", share); }));
    return ReadGgufModel(path).status();
  }

  // Fails early when the disk cannot hold the quantized file; it is smaller than this.
  Status Reserve(const std::string& path) const {
    uint64_t bytes = 0;
    for (const PlannedTensor& tensor : plan_.tensors) {
      bytes += static_cast<uint64_t>(tensor.elements()) * (tensor.rows == 0 ? 32 : 10) / 8;
    }
    return OutputFile::Create(path, bytes).status();
  }

  const ImportOptions& options_;
  const ImportProgress& progress_;
  const WeightFiles& weights_;
  const ImportPlan& plan_;
  const bool pools_;
  const ImportCache cache_;
};

// Reads config.json and what stands beside it; fills all of `model` but the file, and `plan`.
Status Describe(const std::string& folder, const ConfigFields& config_json,
                const ImportOptions& options, const WeightFiles& weights, ImportPlan* plan,
                ImportedModel* model) {
  ConfigFields fields(config_json.object(), config_json.path());
  PORTICO_ASSIGN_OR_RETURN(Architecture architecture, ParseArchitecture(fields));
  PORTICO_ASSIGN_OR_RETURN(const std::optional<SentenceModules> modules,
                           ReadSentenceModules(folder));
  if (modules) {
    model->usual_context = modules->max_tokens;
    model->lower_case = modules->lower_case;
  }
  if (modules && architecture.top != Top::kScores) model->prompts = modules->prompts;
  if (IsEncoder(architecture.family)) {
    PORTICO_ASSIGN_OR_RETURN(const EncoderConfig config,
                             ParseEncoderConfig(architecture.family, &fields));
    PORTICO_RETURN_IF_ERROR(CheckContextLength(options.context_length, config.context_length()));
    PORTICO_ASSIGN_OR_RETURN(*plan, PlanImport(config, weights, options.dtype));
    PORTICO_ASSIGN_OR_RETURN(model->pooling, ReadPoolingModel(config, architecture.top, fields,
                                                              weights, modules, options.pooling));
    model->vocab_size = static_cast<int32_t>(config.vocab_size);
    model->max_context = config.context_length();
    return OkStatus();
  }
  if (architecture.top == Top::kLanguage) {
    if (modules) model->judge = modules->judge;
    const bool embeds = modules && !modules->judge;
    if (embeds || options.is_embedding) architecture.top = Top::kNothing;
  }
  PORTICO_ASSIGN_OR_RETURN(const HfConfig config, ParseHfConfig(architecture, &fields));
  PORTICO_RETURN_IF_ERROR(
      CheckContextLength(options.context_length, config.max_position_embeddings));
  PORTICO_ASSIGN_OR_RETURN(*plan, PlanImport(config, weights, options.dtype));
  if (architecture.top != Top::kLanguage) {
    PORTICO_ASSIGN_OR_RETURN(model->pooling,
                             ReadPoolingModel(config, fields, weights, modules, options.pooling));
  }
  model->vocab_size = static_cast<int32_t>(config.vocab_size);
  model->max_context = config.rope.max_context;
  return OkStatus();
}

}  // namespace

Status CheckContextLength(int64_t wanted, int64_t most) {
  if (wanted >= 0 && wanted <= most) return OkStatus();
  return InvalidArgument(
      "context_length",
      fmt::format("the context length {} is not from 1 to the model's {}", wanted, most));
}

StatusOr<ImportedModel> ImportFolder(const std::string& folder, const ImportOptions& options,
                                     const ImportProgress& progress) {
  const std::string config_path = (fs::path(folder) / "config.json").string();
  PORTICO_ASSIGN_OR_RETURN(std::string config_text, ReadTextFile(config_path));
  PORTICO_ASSIGN_OR_RETURN(Json config, ParseConfigJson(config_text, config_path));
  const ConfigFields fields(config, config_path);
  PORTICO_RETURN_IF_ERROR(ParseArchitecture(fields).status());
  PORTICO_ASSIGN_OR_RETURN(WeightFiles weights, WeightFiles::Open(folder));
  ImportPlan plan;
  ImportedModel model;
  PORTICO_RETURN_IF_ERROR(Describe(folder, fields, options, weights, &plan, &model));
  PORTICO_ASSIGN_OR_RETURN(ImportCache cache, ImportCache::Open());
  cache.RemoveLeftovers();
  const bool pools = model.pooling.has_value();
  PORTICO_ASSIGN_OR_RETURN(Import::Found found,
                           Import(options, progress, weights, plan, pools, cache).Run(config_text));
  cache.Trim(options.cache_bytes);
  model.file = std::move(found.file);
  model.use = std::move(found.use);
  model.notes = std::move(plan.notes);
  return model;
}

}  // namespace portico::llama
