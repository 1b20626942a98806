// What stands beside a vocabulary: named special tokens and chat templates.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace portico {

// From tokenizer_config.json, special_tokens_map.json, chat_template.jinja and
// additional_chat_templates/*.jinja of a folder, or from the metadata of a GGUF file. A token is
// its text; empty where it is not set.
struct TokenizerConfig {
  std::string bos_token;
  std::string eos_token;
  std::string unk_token;
  std::string pad_token;
  // Every other named special token ("sep_token", "image_token" …) in the order of the file, not
  // the four above.
  std::vector<std::pair<std::string, std::string>> other_tokens;
  std::vector<std::string> additional_special_tokens;

  // A lone template is named "default". chat_template.jinja wins over tokenizer_config.json.
  std::vector<std::pair<std::string, std::string>> chat_templates;

  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::string tokenizer_class;
  std::optional<double> model_max_length;

  // The special tokens that are set, under their names ("bos_token" …), as templates see them.
  std::vector<std::pair<std::string, std::string>> NamedSpecialTokens() const;

  // The template of that name, or null.
  const std::string* FindChatTemplate(std::string_view name) const;
};

// `path`: a folder, a file in it (tokenizer.json …), or FILE.gguf. Files that are not there leave
// their fields empty; files that cannot be read are errors.
StatusOr<TokenizerConfig> LoadTokenizerConfig(const std::string& path);

}  // namespace portico
