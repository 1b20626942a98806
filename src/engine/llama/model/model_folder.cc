#include "engine/llama/model/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/folder_entries.h"
#include "engine/llama/import/config/config_fields.h"
#include "engine/llama/import/files/file.h"
#include "engine/llama/import/files/gguf_file.h"
#include "text/json.h"

namespace portico::llama {
namespace {

namespace fs = std::filesystem;

bool IsHubName(std::string_view part) {
  if (part.empty() || part == "." || part == "..") return false;
  return std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

// "org/name" split, if it is one.
std::optional<std::pair<std::string, std::string>> SplitHubId(const std::string& id) {
  size_t slash = id.find('/');
  if (slash == std::string::npos) return std::nullopt;
  std::string org = id.substr(0, slash), name = id.substr(slash + 1);
  if (!IsHubName(org) || !IsHubName(name)) return std::nullopt;
  return std::pair(org, name);
}

// huggingface_hub's rule (constants.py).
fs::path HubCache() {
  auto variable = [](const char* name) -> std::optional<fs::path> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return fs::path(value);
  };
  if (auto cache = variable("HF_HUB_CACHE")) return *cache;
  if (auto home = variable("HF_HOME")) return *home / "hub";
  if (auto xdg = variable("XDG_CACHE_HOME")) return *xdg / "huggingface" / "hub";
  return variable("HOME").value_or("/") / ".cache" / "huggingface" / "hub";
}

StatusOr<std::string> FindInHubCache(const std::string& org, const std::string& name) {
  const std::string id = org + "/" + name;
  const fs::path cache = HubCache();
  const fs::path repository = cache / fmt::format("models--{}--{}", org, name);
  StatusOr<std::string> revision = ReadTextFile((repository / "refs" / "main").string(), 1024);
  if (revision.ok()) {
    std::string commit = *revision;
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
    fs::path snapshot = repository / "snapshots" / commit;
    std::error_code ignored;
    if (IsHubName(commit) && fs::is_directory(snapshot, ignored)) return snapshot.string();
  }
  return Error(
      StatusCode::kNotFound,
      fmt::format("'{}' is neither a file or folder here nor in the Hugging Face cache ({}); "
                  "download it with: hf download {}",
                  id, cache.string(), id));
}

StatusOr<ModelSource> FindInFolder(const std::string& folder) {
  std::error_code failure;
  if (fs::exists(fs::path(folder) / "config.json", failure)) return ModelSource{true, folder};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : FolderEntries(folder, &failure)) {
    std::string file = entry.path().string();
    // Of a model in parts the first stands for all.
    size_t of = file.rfind("-of-");
    bool later_part = of != std::string::npos && of >= 5 && file.compare(of - 5, 5, "00001") != 0;
    if (file.ends_with(".gguf") && !later_part) files.push_back(file);
  }
  if (failure) return FileError(folder, "read", failure.value());
  if (files.size() == 1) return ModelSource{false, files.front()};
  if (files.size() > 1) {
    return BadFile(folder, fmt::format("holds {} GGUF files: name one of them", files.size()));
  }
  return BadFile(folder, "has neither config.json nor a GGUF file");
}

StatusOr<Json> ReadJsonObject(const std::string& path) {
  PORTICO_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
  return ParseConfigJson(text, path);
}

Status ReadEos(const ConfigFields& fields, std::vector<TokenId>* ids) {
  const Json* value = fields.Find("eos_token_id");
  if (value == nullptr) return OkStatus();
  JsonArray list = value->is_array() ? value->as_array() : JsonArray{*value};
  for (const Json& id : list) {
    if (!id.is_int() || id.as_int() > INT32_MAX) {
      return fields.Bad("eos_token_id", "must be a token id or a list of them");
    }
    const auto token = static_cast<TokenId>(id.as_int());
    const bool known = std::find(ids->begin(), ids->end(), token) != ids->end();
    if (id.as_int() >= 0 && !known) ids->push_back(token);
  }
  return OkStatus();
}

// The value of a number within [min, max], else an error that names it.
Status ReadFloat(const ConfigFields& fields, const char* name, double min, double max,
                 std::optional<float>* out) {
  const Json* value = fields.Find(name);
  if (value == nullptr) return OkStatus();
  if (!value->is_number() || !(value->as_double() >= min && value->as_double() <= max)) {
    return fields.Bad(name, fmt::format("must be a number from {} to {}", min, max));
  }
  *out = static_cast<float>(value->as_double());
  return OkStatus();
}

Status ReadDefaults(ConfigFields* fields, GenerationDefaults* defaults) {
  bool sample = true;
  fields->Bool("do_sample", &sample);
  PORTICO_RETURN_IF_ERROR(fields->status());
  if (!sample) return OkStatus();
  PORTICO_RETURN_IF_ERROR(ReadFloat(*fields, "temperature", 0, 1e6, &defaults->temperature));
  PORTICO_RETURN_IF_ERROR(ReadFloat(*fields, "top_p", 0, 1, &defaults->top_p));
  PORTICO_RETURN_IF_ERROR(ReadFloat(*fields, "min_p", 0, 1, &defaults->min_p));
  PORTICO_RETURN_IF_ERROR(
      ReadFloat(*fields, "repetition_penalty", 0, 2, &defaults->repetition_penalty));
  if (fields->Has("top_k")) {
    int64_t top_k = 0;
    fields->Int("top_k", &top_k, -1, INT32_MAX);
    // transformers writes 0 for "all".
    defaults->top_k = top_k <= 0 ? -1 : static_cast<int32_t>(top_k);
  }
  // Zero is outside the range of requests: no value at all.
  if (defaults->top_p == 0.0f) defaults->top_p.reset();
  if (defaults->repetition_penalty == 0.0f) defaults->repetition_penalty.reset();
  return fields->status();
}

}  // namespace

StatusOr<ModelSource> FindModel(const std::string& path) {
  std::error_code failure;
  fs::file_status status = fs::status(path, failure);
  if (fs::is_directory(status)) return FindInFolder(path);
  if (fs::exists(status)) {
    if (LooksLikeGguf(path)) return ModelSource{false, path};
    return BadFile(path, "is neither a GGUF file nor a model folder");
  }
  if (auto id = SplitHubId(path)) {
    PORTICO_ASSIGN_OR_RETURN(std::string snapshot, FindInHubCache(id->first, id->second));
    return FindInFolder(snapshot);
  }
  return Error(StatusCode::kNotFound, path + ": there is no such model file or folder");
}

StatusOr<FolderGeneration> ReadGeneration(const std::string& folder) {
  FolderGeneration generation;
  std::error_code ignored;
  const std::string path = (fs::path(folder) / "generation_config.json").string();
  if (fs::exists(path, ignored)) {
    PORTICO_ASSIGN_OR_RETURN(Json json, ReadJsonObject(path));
    ConfigFields fields(json, path);
    PORTICO_RETURN_IF_ERROR(ReadEos(fields, &generation.eos_token_ids));
    PORTICO_RETURN_IF_ERROR(ReadDefaults(&fields, &generation.defaults));
  }
  const std::string config_path = (fs::path(folder) / "config.json").string();
  PORTICO_ASSIGN_OR_RETURN(Json json, ReadJsonObject(config_path));
  PORTICO_RETURN_IF_ERROR(ReadEos(ConfigFields(json, config_path), &generation.eos_token_ids));
  return generation;
}

}  // namespace portico::llama
