// What the commands that work on text (tokenize, detokenize, render) take alike.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace portico {

CLI::Option* AddTokenizerPath(CLI::App* app, std::string* path);
// --added-tokens: whose a folder's are. These commands start from what its files say of a token: kFolder.
void AddAddedTokens(CLI::App* app, AddedTokensRule* rule);
void AddJsonLines(CLI::App* app, bool* jsonl);

// Parses the words behind the command's name. An exit status where the command ends here: for --help, or after it has
// said what is wrong; `more_words`: what helps where there are more words than the command takes.
std::optional<int> ParseWords(CLI::App* app, int argc, char** argv,
                              std::string_view more_words = {});

}  // namespace portico
