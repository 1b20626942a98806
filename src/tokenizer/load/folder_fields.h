// What the files of a tokenizer's folder say of added tokens, as transformers' from_pretrained() (5.23) collects it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/load/token_fields.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {

inline constexpr std::string_view kSettingsFile = "tokenizer_config.json";
inline constexpr std::string_view kConfigFile = "config.json";

struct FolderFields {
  TokenFields fields;    // the class's arguments that concern tokens
  TokenFields specific;  // model_specific_special_tokens, which come behind them
  // added_tokens_decoder; without it added_tokens.json and the tokenizer.json's own, by their ids.
  std::map<int64_t, NamedToken> numbered;
};

// Whether there is a file that may name tokens, or the class that does.
bool HasOtherFiles(const std::filesystem::path& folder);

// Null where there is no such file.
StatusOr<Json> ReadFolderJson(const std::filesystem::path& folder, std::string_view name);

// `settings`: the tokenizer_config.json, or null. `parts`: of the tokenizer's file; `is_json`: a tokenizer.json.
StatusOr<FolderFields> ReadFolderFields(const std::filesystem::path& folder, const Json& settings,
                                        const PipelineParts& parts, bool is_json);

}  // namespace portico::tokenizer
