#include "app/text/text_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "app/command_tools.h"
#include "app/options/nearest_name.h"

namespace portico {
namespace {

// "; did you mean --seconds?" of "secs": by its spelling, or by its first letters.
std::string FlagMeant(const CLI::App& app, std::string_view name) {
  constexpr size_t kFirstLetters = 3;
  std::vector<std::string_view> names;
  std::vector<std::string_view> alike;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& each : option->get_lnames()) {
      names.emplace_back(each);
      if (name.size() >= kFirstLetters && each.starts_with(name.substr(0, kFirstLetters))) {
        alike.emplace_back(each);
      }
    }
  }
  std::string meant = DidYouMean(name, names, "--", "");
  if (!meant.empty() || alike.size() != 1) return meant;
  return fmt::format("; did you mean --{}?", alike.front());
}

// Helps in the form of the other commands': the usage first, "--count N … [default: 0]" for "--count INT:INT in [0 - 9]=0".
class HelpFormat final : public CLI::Formatter {
 public:
  HelpFormat() {
    label("Usage", "usage");
    label("OPTIONS", "FLAGS");
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return fmt::format("{}\n{}{}{}\n{}", make_usage(app, std::move(name)), make_description(app),
                       make_positionals(app), make_groups(app, mode), make_footer(app));
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0 && !option->get_positional()) {
      const std::string type = option->get_type_name();  // "INT:INT in [0 - 9]", "TEXT:{text,json}"
      const size_t choices = type.find(":{");
      std::string shown = type.substr(0, type.find(':'));
      if (choices != std::string::npos) {
        shown = type.substr(choices + 2, type.size() - choices - 3);
        std::replace(shown.begin(), shown.end(), ',', '|');
      }
      text = " " + shown;
    }
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string value = option->get_default_str();
    if (value.empty()) return option->get_description();
    return fmt::format("{} [default: {}]", option->get_description(), value);
  }
};

// What is left of a command line, where the command takes no more.
std::string WhyUnexpected(const CLI::App& app, std::string_view more_words) {
  const std::vector<std::string> left = app.remaining();
  const std::string& word = left.front();
  if (word.starts_with('-')) {
    const std::string flag = word.substr(0, word.find('='));
    const size_t name = flag.find_first_not_of('-');
    const std::string meant = name == std::string::npos ? "" : FlagMeant(app, flag.substr(name));
    return fmt::format("unknown flag {}{}", flag, meant.empty() ? "; --help lists all" : meant);
  }
  return fmt::format("unexpected argument `{}`{}{}", word, more_words.empty() ? "" : "; ",
                     more_words);
}

}  // namespace

CLI::Option* AddTokenizerPath(CLI::App* app, std::string* path) {
  return app->add_option(
      "--tokenizer-path", *path,
      "A folder with tokenizer.json, or a tokenizer.json, tiktoken, .model or .gguf file");
}

void AddAddedTokens(CLI::App* app, AddedTokensRule* rule) {
  *rule = AddedTokensRule::kFolder;
  app->add_option_function<std::string>(
         "--added-tokens",
         [rule](const std::string& value) {
           *rule = value == "file"     ? AddedTokensRule::kFile
                   : value == "folder" ? AddedTokensRule::kFolder
                                       : AddedTokensRule::kAutoTokenizer;
         },
         "A folder's added tokens: auto (those of transformers' AutoTokenizer, as in serve), "
         "folder "
         "(the same, but with the flags that the files give them; the default) or file (those of "
         "the tokenizer's file)")
      ->check(CLI::IsMember({"auto", "folder", "file"}));
}

void AddJsonLines(CLI::App* app, bool* jsonl) {
  app->add_flag(
      "--jsonl", *jsonl,
      "Read requests from standard input and write answers to standard output, one per line");
}

std::optional<int> ParseWords(CLI::App* app, int argc, char** argv, std::string_view more_words) {
  std::vector<std::string> words(argv, argv + argc);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app->formatter(std::make_shared<HelpFormat>());
  try {
    app->parse(std::move(words));
  } catch (const CLI::Success& help) {
    return app->exit(help);
  } catch (const CLI::ExtrasError&) {
    const std::string why = WhyUnexpected(*app, more_words);
    std::fprintf(stderr, "%s: %s\n", app->get_name().c_str(), why.c_str());
    return kUsageError;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s\n", app->get_name().c_str(), error.what());
    return kUsageError;
  }
  return std::nullopt;
}

}  // namespace portico
