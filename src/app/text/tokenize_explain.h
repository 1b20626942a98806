// What a person should know about a tokenizer before comparing its ids with another program's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/json.h"
#include "tokenizer/load/tokenizer_config.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// One line an added token, by id: the id, the text, its flags, and the file that names it; before them why other files
// than the tokenizer's own name none, where that is so.
std::vector<std::string> AddedTokenOrigins(const Tokenizer& tokenizer);

// Sentences on what transformers' AutoTokenizer (5.23) makes of this tokenizer.json in another way than the file says,
// and Portico and the package `tokenizers` follow. AutoTokenizer builds the tokenizers of some classes anew from the
// vocabulary. `normalizer` is the file's; `has_spm`: the folder has the class's own .spm files.
std::vector<std::string> AutoTokenizerDifferences(std::string_view tokenizer_class,
                                                  const Json& normalizer, bool has_spm);

// The same for a folder or a file in it; empty where there is no tokenizer.json.
std::vector<std::string> AutoTokenizerDifferencesOf(const std::string& path);

}  // namespace portico
