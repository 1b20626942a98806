#include "app/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <vector>

#include "app/options_table.h"

namespace portico {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;

// What the command line says, before any of it is looked at.
struct CommandLine {
  std::vector<std::pair<const Option*, std::string>> values;
  std::string config;
  bool help = false;
};

Status Bad(std::string message) { return Error(StatusCode::kInvalidArgument, std::move(message)); }

Status UnknownArgument(const std::string& argument) {
  if (argument.empty() || argument[0] != '-') {
    return Bad(fmt::format("unexpected argument `{}`; options begin with --", argument));
  }
  const std::string flag = argument.substr(0, argument.find('='));
  const size_t dashes = flag.find_first_not_of('-');
  const std::string_view nearest =
      dashes == std::string::npos ? "" : NearestOption(std::string_view(flag).substr(dashes));
  if (nearest.empty()) return Bad(fmt::format("unknown flag {}; --help lists all", flag));
  return Bad(fmt::format("unknown flag {}; did you mean --{}?", flag, nearest));
}

std::string FlagNames(const Option& option) {
  return option.alias.empty() ? fmt::format("--{}", option.name)
                              : fmt::format("--{},--{}", option.name, option.alias);
}

// CLI11 gives an option the argument behind it, be that another flag.
bool IsFlag(const std::string& argument) {
  return argument == "--config" || argument == "--help" ||
         (argument.starts_with("--") &&
          FindOption(argument.substr(2, argument.find('=') - 2)) != nullptr);
}

StatusOr<std::string> ValueOf(const CLI::Option& flag) {
  std::string value = flag.results().back();
  if (IsFlag(value)) return Bad(fmt::format("{}: needs a value", flag.get_name()));
  return value;
}

// CLI11 splits the arguments; values stay text, so that the table alone says what they mean.
StatusOr<CommandLine> SplitCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  std::vector<std::pair<const Option*, CLI::Option*>> flags;
  CLI::App app;
  try {
    app.set_help_flag();
    app.allow_extras();
    CLI::Option* help = app.add_flag("--help,-h");
    CLI::Option* config = app.add_option("--config");
    config->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->allow_extra_args(false);
    for (const Option& option : ServeOptionTable()) {
      CLI::Option* flag =
          option.is_flag() ? app.add_flag(FlagNames(option)) : app.add_option(FlagNames(option));
      if (!option.is_flag()) flag->allow_extra_args(false);
      flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as argparse does
      flags.emplace_back(&option, flag);
    }
    app.parse(argc, argv);
    for (const auto& [option, flag] : flags) {
      if (flag->count() == 0) continue;
      PORTICO_ASSIGN_OR_RETURN(std::string value, ValueOf(*flag));
      line.values.emplace_back(option, std::move(value));
    }
    if (config->count() > 0) {
      PORTICO_ASSIGN_OR_RETURN(line.config, ValueOf(*config));
    }
    line.help = help->count() > 0;
    if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
      return UnknownArgument(extras.front());
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
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(StatusCode::kNotFound, fmt::format("--config: cannot read {}", path));
  std::string text(kMaxConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad())
    return Error(StatusCode::kNotFound, fmt::format("--config: cannot read {}", path));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxConfigBytes) {
    return Bad(fmt::format("--config: {} is larger than {} bytes", path, kMaxConfigBytes));
  }
  return text;
}

}  // namespace

StatusOr<ParsedOptions> ParseServeOptions(int argc, const char* const* argv) {
  PORTICO_ASSIGN_OR_RETURN(const CommandLine line, SplitCommandLine(argc, argv));
  ParsedOptions parsed;
  if (line.help) {
    parsed.print_and_exit = OptionsHelp();
    return parsed;
  }
  if (!line.config.empty()) {
    PORTICO_ASSIGN_OR_RETURN(const std::string text, ReadConfig(line.config));
    PORTICO_RETURN_IF_ERROR(ApplyOptionsYaml(text, line.config, &parsed.options));
  }
  for (const auto& [option, text] : line.values) {
    if (const Status status = SetOption(*option, text, &parsed.options); !status.ok()) {
      return Bad(fmt::format("--{}: {}", option->name, MessageOf(status)));
    }
  }
  PORTICO_RETURN_IF_ERROR(CheckOptions(parsed.options));
  return parsed;
}

}  // namespace portico
