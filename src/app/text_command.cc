#include "app/text_command.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace portico {

CLI::Option* AddTokenizerPath(CLI::App* app, std::string* path) {
  return app->add_option(
      "--tokenizer-path", *path,
      "A folder with tokenizer.json, or a tokenizer.json, tiktoken, .model or .gguf file");
}

void AddJsonLines(CLI::App* app, bool* jsonl) {
  app->add_flag("--jsonl", *jsonl,
                "Requests on standard input, answers on standard output, one a line");
}

std::optional<int> ParseWords(CLI::App* app, int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app->parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app->exit(error);
  }
  return std::nullopt;
}

}  // namespace portico
