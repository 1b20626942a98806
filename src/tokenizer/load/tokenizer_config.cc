#include "tokenizer/load/tokenizer_config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/folder_entries.h"
#include "text/json.h"
#include "text/utf8.h"
#include "tokenizer/load/gguf.h"
#include "tokenizer/load/mapped_file.h"
#include "tokenizer/load/tokenizer_class.h"

namespace portico {
namespace {

namespace fs = std::filesystem;
using tokenizer::DefaultTokensOf;
using tokenizer::GgufMetadata;
using tokenizer::MappedFile;

constexpr std::string_view kDefault = "default";

// A token is its text, or an AddedToken object with it in "content".
std::optional<std::string> TokenText(const Json& value) {
  if (value.is_string()) return value.as_string();
  if (const Json* content = value.Find("content"); content && content->is_string()) {
    return content->as_string();
  }
  return std::nullopt;
}

void SetTemplate(std::string_view name, std::string text, TokenizerConfig* config) {
  for (auto& [known, value] : config->chat_templates) {
    if (known == name) {
      value = std::move(text);
      return;
    }
  }
  config->chat_templates.emplace_back(std::string(name), std::move(text));
}

void SetToken(std::string_view key, std::string text, TokenizerConfig* config) {
  if (key == "bos_token") {
    config->bos_token = std::move(text);
  } else if (key == "eos_token") {
    config->eos_token = std::move(text);
  } else if (key == "unk_token") {
    config->unk_token = std::move(text);
  } else if (key == "pad_token") {
    config->pad_token = std::move(text);
  } else {
    for (auto& [known, value] : config->other_tokens) {
      if (known == key) {
        value = std::move(text);
        return;
      }
    }
    config->other_tokens.emplace_back(std::string(key), std::move(text));
  }
}

void ClearToken(std::string_view key, TokenizerConfig* config) {
  std::erase_if(config->other_tokens, [&](const auto& named) { return named.first == key; });
  for (std::string_view known : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    if (key == known) SetToken(key, {}, config);
  }
}

void ReadTokens(const Json& json, TokenizerConfig* config) {
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.as_object()) {
    if (key == "additional_special_tokens" || key == "extra_special_tokens") {
      if (value.is_array()) {
        config->additional_special_tokens.clear();
        for (const Json& item : value.as_array()) {
          if (auto text = TokenText(item)) {
            config->additional_special_tokens.push_back(*std::move(text));
          }
        }
      } else if (value.is_object()) {
        for (const auto& [name, item] : value.as_object()) {
          if (auto text = TokenText(item)) SetToken(name, *std::move(text), config);
        }
      }
    } else if (key.ends_with("_token") && !key.starts_with("add_")) {
      if (value.is_null()) ClearToken(key, config);
      if (auto text = TokenText(value)) SetToken(key, *std::move(text), config);
    }
  }
}

Status ReadTemplates(const Json& json, TokenizerConfig* config) {
  const Json* value = json.Find("chat_template");
  if (value == nullptr || value->is_null()) return OkStatus();
  if (value->is_string()) {
    SetTemplate(kDefault, value->as_string(), config);
    return OkStatus();
  }
  auto malformed = [] {
    return Error(StatusCode::kInvalidArgument,
                 "chat_template must be a text or a list of {name, template}");
  };
  if (value->is_object()) {
    for (const auto& [name, text] : value->as_object()) {
      if (!text.is_string()) return malformed();
      SetTemplate(name, text.as_string(), config);
    }
    return OkStatus();
  }
  if (!value->is_array()) return malformed();
  for (const Json& item : value->as_array()) {
    const Json* name = item.Find("name");
    const Json* text = item.Find("template");
    if (!name || !name->is_string() || !text || !text->is_string()) return malformed();
    SetTemplate(name->as_string(), text->as_string(), config);
  }
  return OkStatus();
}

StatusOr<std::string> ReadText(const fs::path& path) {
  PORTICO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path.string()));
  return ToValidUtf8(file.text());
}

StatusOr<Json> ReadJson(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Json();
  PORTICO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path.string()));
  StatusOr<Json> json = Json::Parse(file.text());
  if (!json.ok()) {
    return Error(json.status().code(),
                 path.string() + ": " + std::string(MessageOf(json.status())));
  }
  return json;
}

void ReadSettings(const Json& json, TokenizerConfig* config) {
  auto flag = [&](std::string_view key) -> std::optional<bool> {
    const Json* value = json.Find(key);
    if (value == nullptr || !value->is_bool()) return std::nullopt;
    return value->as_bool();
  };
  config->add_bos_token = flag("add_bos_token");
  config->add_eos_token = flag("add_eos_token");
  config->tokenizer_class = json.GetString("tokenizer_class");
  const Json* longest = json.Find("model_max_length");
  if (longest && longest->is_number()) config->model_max_length = longest->as_double();
}

Status ReadTemplateFiles(const fs::path& folder, TokenizerConfig* config) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : FolderEntries(folder / "additional_chat_templates", &error)) {
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const bool has_default = fs::is_regular_file(folder / "chat_template.jinja", error);
  // Templates of files are instead of those of tokenizer_config.json.
  if (has_default || !files.empty()) config->chat_templates.clear();
  if (has_default) {
    PORTICO_ASSIGN_OR_RETURN(std::string text, ReadText(folder / "chat_template.jinja"));
    SetTemplate(kDefault, std::move(text), config);
  }
  for (const fs::path& file : files) {
    PORTICO_ASSIGN_OR_RETURN(std::string text, ReadText(file));
    SetTemplate(file.stem().string(), std::move(text), config);
  }
  return OkStatus();
}

// Whether the folder's tokenizer.json pre-tokenizes as bytes. Files name pre_tokenizer before the model, the longest.
bool IsByteLevel(const fs::path& folder) {
  StatusOr<MappedFile> file = MappedFile::Open((folder / "tokenizer.json").string());
  if (!file.ok()) return false;
  const std::string_view text = file->text();
  const size_t begin = text.find("\"pre_tokenizer\"");
  const size_t end = text.find("\"model\"", begin == text.npos ? text.size() : begin);
  return end != text.npos && text.substr(begin, end - begin).find("\"ByteLevel\"") != text.npos;
}

StatusOr<TokenizerConfig> FromFolder(const fs::path& folder) {
  TokenizerConfig config;
  PORTICO_ASSIGN_OR_RETURN(Json json, ReadJson(folder / "tokenizer_config.json"));
  // special_tokens_map.json is the older place. Where tokenizer_config.json has the added tokens too it is not asked; else
  // it counts, as in transformers.
  Json map;
  if (json.Find("added_tokens_decoder") == nullptr) {
    PORTICO_ASSIGN_OR_RETURN(map, ReadJson(folder / "special_tokens_map.json"));
  }
  ReadTokens(json, &config);
  ReadTokens(map, &config);
  ReadSettings(json, &config);
  // transformers takes no class made for SentencePiece-like models for one that works on bytes.
  const bool is_llama = config.tokenizer_class.find("Llama") != std::string::npos;
  if (!is_llama || !IsByteLevel(folder)) {
    for (const auto& [key, text] : DefaultTokensOf(config.tokenizer_class)) {
      const bool named = json.Find(key) != nullptr || map.Find(key) != nullptr;
      if (!named) SetToken(key, std::string(text), &config);
    }
  }
  PORTICO_RETURN_IF_ERROR(ReadTemplates(json, &config));
  PORTICO_ASSIGN_OR_RETURN(Json chat, ReadJson(folder / "chat_template.json"));
  if (config.chat_templates.empty()) PORTICO_RETURN_IF_ERROR(ReadTemplates(chat, &config));
  PORTICO_RETURN_IF_ERROR(ReadTemplateFiles(folder, &config));
  return config;
}

StatusOr<TokenizerConfig> FromGguf(const fs::path& path) {
  PORTICO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path.string()));
  PORTICO_ASSIGN_OR_RETURN(GgufMetadata metadata, GgufMetadata::Parse(file.text()));
  TokenizerConfig config;
  std::vector<std::string_view> tokens = metadata.Texts("tokenizer.ggml.tokens");
  auto token = [&](std::string_view key) -> std::string {
    std::optional<int64_t> id = metadata.Integer("tokenizer.ggml." + std::string(key));
    if (!id || *id < 0 || static_cast<size_t>(*id) >= tokens.size()) return {};
    return std::string(tokens[static_cast<size_t>(*id)]);
  };
  config.bos_token = token("bos_token_id");
  config.eos_token = token("eos_token_id");
  config.unk_token = token("unknown_token_id");
  config.pad_token = token("padding_token_id");
  config.add_bos_token = metadata.Flag("tokenizer.ggml.add_bos_token");
  config.add_eos_token = metadata.Flag("tokenizer.ggml.add_eos_token");
  if (std::string_view text = metadata.Text("tokenizer.chat_template"); !text.empty()) {
    SetTemplate(kDefault, ToValidUtf8(text), &config);
  }
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  for (std::string_view name : metadata.Texts("tokenizer.chat_templates")) {
    std::string_view text = metadata.Text(std::string(kNamed) + std::string(name));
    if (!text.empty()) SetTemplate(name, ToValidUtf8(text), &config);
  }
  return config;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> TokenizerConfig::NamedSpecialTokens() const {
  std::vector<std::pair<std::string, std::string>> tokens;
  auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) tokens.emplace_back(name, text);
  };
  add("bos_token", bos_token);
  add("eos_token", eos_token);
  add("unk_token", unk_token);
  add("pad_token", pad_token);
  tokens.insert(tokens.end(), other_tokens.begin(), other_tokens.end());
  return tokens;
}

const std::string* TokenizerConfig::FindChatTemplate(std::string_view name) const {
  for (const auto& [known, text] : chat_templates) {
    if (known == name) return &text;
  }
  return nullptr;
}

StatusOr<TokenizerConfig> LoadTokenizerConfig(const std::string& path) {
  std::error_code error;
  fs::path place(path);
  if (fs::is_directory(place, error)) {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      if (fs::exists(place / name, error)) return FromFolder(place);
    }
    for (const auto& entry : FolderEntries(place, &error)) {
      if (entry.path().extension() == ".gguf") return FromGguf(entry.path());
    }
    return FromFolder(place);
  }
  if (!fs::exists(place, error)) {
    return Error(StatusCode::kNotFound, "there is no file " + path);
  }
  if (place.extension() == ".gguf") return FromGguf(place);
  return FromFolder(place.has_parent_path() ? place.parent_path() : fs::path("."));
}

}  // namespace portico
