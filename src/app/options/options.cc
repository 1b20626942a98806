#include "app/options/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "app/options/engine_arguments.h"
#include "app/options/foreign_flags.h"
#include "app/options/key_variable.h"
#include "app/options/options_table.h"
#include "app/read_file.h"

namespace portico {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;

// What the command line says, in its order, before any of it is looked at.
struct CommandLine {
  std::vector<std::pair<const Option*, std::string>> values;
  std::string config;
  bool help = false;
  bool check = false;
  std::vector<std::string> unknown;  // what is no flag, or the value of one that is none
  std::vector<std::string> rest;     // behind --
};

Status Bad(std::string message) { return Error(StatusCode::kInvalidArgument, std::move(message)); }

// A number is a value, also a negative one.
bool LooksLikeFlag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9');
}

// What is wrong with the words that CLI11 has left over: every unknown flag, whose values stand behind it, and the first of other
// words.
Status UnknownArguments(const std::vector<std::string>& extras, bool sglang) {
  std::vector<std::string> flags;
  std::string stray;
  for (const std::string& extra : extras) {
    if (LooksLikeFlag(extra)) {
      std::string flag = extra.substr(0, extra.find('='));
      if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
        flags.push_back(std::move(flag));
      }
    } else if (flags.empty() && stray.empty()) {
      stray = fmt::format(
          "unexpected argument `{}`; options begin with --, and --model-path names a model", extra);
    }
  }
  if (flags.empty()) return Bad(stray);
  std::string text = fmt::format("{}{}unknown flag", stray, stray.empty() ? "" : "; ");
  if (flags.size() == 1) {
    const FlagHint hint = HintOf(flags[0], sglang);
    text += fmt::format(" {}{} {}", flags[0], hint.is_reason ? ":" : ";", hint.text);
    if (!hint.note.empty()) text += fmt::format(" ({})", hint.note);
    return Bad(std::move(text));
  }
  for (size_t i = 0; i < flags.size(); ++i) {
    text += fmt::format("{} {} ({})", i == 0 ? "s:" : ",", flags[i], HintOf(flags[i], sglang).text);
  }
  return Bad(std::move(text));
}

std::string FlagNames(const Option& option) {
  return option.alias.empty() ? fmt::format("--{}", option.name)
                              : fmt::format("--{},--{}", option.name, option.alias);
}

// CLI11 gives an option the argument behind it, be that another flag.
bool IsFlag(const std::string& argument) {
  return argument == "--config" || argument == "--help" || argument == "--check" ||
         (argument.starts_with("--") &&
          FindOption(argument.substr(2, argument.find('=') - 2)) != nullptr);
}

// The value that the flag has where it stands for the `nth` time.
StatusOr<std::string> ValueOf(const CLI::Option& flag, size_t nth) {
  std::string value = flag.results().at(nth);
  if (IsFlag(value)) return Bad(fmt::format("{}: needs a value", flag.get_name()));
  return value;
}

// CLI11 splits the arguments; values stay text, so that the table alone says what they mean.
StatusOr<CommandLine> SplitCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    line.rest.assign(argv + i + 1, argv + argc);
    argc = i;
    break;
  }
  std::map<const CLI::Option*, const Option*> flags;
  CLI::App app;
  try {
    app.set_help_flag();
    app.allow_extras();
    CLI::Option* help = app.add_flag("--help,-h");
    CLI::Option* check = app.add_flag("--check");
    CLI::Option* config = app.add_option("--config");
    config->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->allow_extra_args(false);
    for (const Option& option : ServeOptionTable()) {
      CLI::Option* flag =
          option.is_flag() ? app.add_flag(FlagNames(option)) : app.add_option(FlagNames(option));
      if (!option.is_flag()) flag->allow_extra_args(false);
      flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as argparse does
      flags.emplace(flag, &option);
    }
    app.parse(argc, argv);
    std::map<const CLI::Option*, size_t> times;
    for (const CLI::Option* flag : app.parse_order()) {
      if (flag == help || flag == check) continue;
      PORTICO_ASSIGN_OR_RETURN(std::string value, ValueOf(*flag, times[flag]++));
      if (flag == config) {
        line.config = std::move(value);
      } else {
        line.values.emplace_back(flags.at(flag), std::move(value));
      }
    }
    line.help = help->count() > 0;
    line.check = check->count() > 0;
    line.unknown = app.remaining();
    for (std::string& word : line.unknown) {
      // CLI11 takes the h of -hf for a flag of its own.
      if (word.starts_with("-f") &&
          std::find(argv, argv + argc, "-h" + word.substr(1)) != argv + argc) {
        word.insert(1, "h");
      }
    }
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();
    return Bad(fmt::format("{}: needs a value", message.substr(0, message.find(':'))));
  } catch (const CLI::Error& error) {
    return Bad(error.what());
  }
  return line;
}

StatusOr<std::string> ReadConfig(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const auto unreadable = [&path] {
    const Status why = CannotRead(path, errno);
    return Error(why.code(), fmt::format("--config: {}", MessageOf(why)));
  };
  if (!file) return unreadable();
  std::string text(kMaxConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return unreadable();
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxConfigBytes) {
    return Bad(fmt::format("--config: {} is larger than {} bytes", path, kMaxConfigBytes));
  }
  return text;
}

bool IsModelPath(const Option& option) { return option.name == "model-path"; }

Status SetFlag(const Option& option, const std::string& text, ServeOptions* server,
               ModelOptions* model) {
  const Status status = SetOption(option, text, server, model);
  if (status.ok()) return status;
  return Bad(fmt::format("--{}: {}", option.name, MessageOf(status)));
}

// Whether a model is SGLang's, as far as it can be told of a command line with a mistake.
bool NamesSglang(const CommandLine& line) {
  OptionLayers layers;
  if (!line.config.empty()) {
    const auto text = ReadConfig(line.config);
    if (text.ok()) ApplyOptionsYaml(*text, line.config, &layers).IgnoreError();
  }
  const auto is_sglang = [](const ModelOptions& model) { return model.engine == "sglang"; };
  return is_sglang(layers.every_model) ||
         std::any_of(layers.listed.begin(), layers.listed.end(), is_sglang) ||
         std::any_of(line.values.begin(), line.values.end(), [](const auto& value) {
           return value.first->name == "engine" && value.second == "sglang";
         });
}

// Each --model-path begins a model, from what is said of every one. Of several values for one option
// the last counts, as with argparse; but where there are several models the other may have been
// meant for another.
StatusOr<std::vector<ModelOptions>> ApplyCommandLine(const CommandLine& line,
                                                     OptionLayers* layers) {
  const auto named = std::count_if(line.values.begin(), line.values.end(),
                                   [](const auto& value) { return IsModelPath(*value.first); });
  if (named > 0 && !layers->listed.empty()) {
    return Bad(fmt::format("--model-path: {} lists models too; name all of them in one place",
                           line.config));
  }
  std::vector<ModelOptions> models;
  std::set<const Option*> seen;
  for (const auto& [option, text] : line.values) {
    if (IsModelPath(*option)) {
      models.push_back(layers->every_model);
      seen.clear();
    }
    if (named > 1 && option->is_model() && !seen.insert(option).second) {
      return Bad(models.empty() ? fmt::format("--{}: is given twice before the first --model-path",
                                              option->name)
                                : fmt::format("--{}: is given twice for the model at {}",
                                              option->name, models.back().model_path));
    }
    ModelOptions* model = models.empty() ? &layers->every_model : &models.back();
    PORTICO_RETURN_IF_ERROR(SetFlag(*option, text, &layers->server, model));
    if (!option->is_model()) continue;
    for (ModelOptions& listed : layers->listed) {
      PORTICO_RETURN_IF_ERROR(SetFlag(*option, text, &layers->server, &listed));
    }
  }
  if (!models.empty()) return models;
  if (!layers->listed.empty()) return layers->listed;
  return std::vector<ModelOptions>{layers->every_model};
}

}  // namespace

std::string ModelId(const ModelOptions& options) {
  if (!options.served_model_name.empty()) return options.served_model_name;
  if (!options.model_path.empty()) return options.model_path;
  // The mock engine needs no more than a tokenizer.
  return options.engine == "mock" && !options.tokenizer_path.empty() ? options.tokenizer_path
                                                                     : "demo";
}

StatusOr<ParsedOptions> ParseServeOptions(int argc, const char* const* argv) {
  PORTICO_ASSIGN_OR_RETURN(const CommandLine line, SplitCommandLine(argc, argv));
  if (!line.unknown.empty()) return UnknownArguments(line.unknown, NamesSglang(line));
  ParsedOptions parsed;
  parsed.check_only = line.check;
  if (line.help) {
    parsed.print_and_exit = OptionsHelp();
    return parsed;
  }
  OptionLayers layers;
  if (!line.config.empty()) {
    PORTICO_ASSIGN_OR_RETURN(const std::string text, ReadConfig(line.config));
    PORTICO_RETURN_IF_ERROR(ApplyOptionsYaml(text, line.config, &layers));
  }
  PORTICO_ASSIGN_OR_RETURN(std::vector<ModelOptions> models, ApplyCommandLine(line, &layers));
  parsed.options = std::move(layers.server);
  PORTICO_RETURN_IF_ERROR(TakeKeyVariable(&parsed.options.api_key));
  parsed.options.models = std::move(models);
  if (!line.rest.empty()) {
    std::set<const Option*> given;
    for (const auto& [option, text] : line.values) given.insert(option);
    PORTICO_RETURN_IF_ERROR(GiveToEngine(line.rest, std::move(given), &parsed.options));
  }
  PORTICO_RETURN_IF_ERROR(CheckOptions(parsed.options));
  return parsed;
}

}  // namespace portico
