// The tokens that the other files of a tokenizer's folder add: added_tokens_decoder and the special tokens of
// tokenizer_config.json, added_tokens.json, special_tokens_map.json, and those that the tokenizer's class has by itself.
// The rule is that of transformers' AutoTokenizer (5.23): PreTrainedTokenizerBase.from_pretrained, then the class's
// __init__ (auto_class.h).
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/pipeline.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {

// Adds them to `parts`, which are those of the folder's tokenizer file. `tokenizer_json` is its text, or empty where it is
// no tokenizer.json. A folder that AutoTokenizer cannot load leaves them as they are, but for `added_tokens_note`.
void AddFolderTokens(const std::string& folder, std::string_view tokenizer_json,
                     AddedTokensRule rule, PipelineParts* parts);

}  // namespace portico::tokenizer
