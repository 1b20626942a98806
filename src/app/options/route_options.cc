#include "app/options/route_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "app/options/key_variable.h"
#include "app/options/nearest_name.h"
#include "app/options/route_flag_hints.h"
#include "app/options/route_options_table.h"
#include "app/read_file.h"

namespace portico {
namespace {

Status Bad(std::string message) { return Error(StatusCode::kInvalidArgument, std::move(message)); }

std::vector<std::string_view> RouteOptionNames() {
  std::vector<std::string_view> names;
  for (const RouteOption& option : RouteOptionTable()) names.push_back(option.name);
  return names;
}

// A flag, or one of sglang-router's that Portico does not have.
struct Found {
  const RouteOption* option = nullptr;
  const RouteFlagHint* missing = nullptr;
  std::string_view name() const { return option != nullptr ? option->name : missing->name; }
};

// As argparse: the name itself, or the one name that begins so.
StatusOr<Found> FindFlag(std::string_view name, std::string_view prefix) {
  std::vector<Found> matches;
  const auto look = [&](const Found& found) {
    if (found.name() != name && found.name().starts_with(name)) matches.push_back(found);
    return found.name() == name;
  };
  for (const RouteOption& option : RouteOptionTable()) {
    if (const Found found{.option = &option}; look(found)) return found;
  }
  for (const RouteFlagHint& missing : SglangRouterFlagHints()) {
    if (const Found found{.missing = &missing}; look(found)) return found;
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    if (const RouteFlagHint* of_smg = FindSmgFlagHint(name)) {
      return Bad(NoSuchRouteFlag(name, *of_smg, prefix));
    }
    const std::string nearest =
        DidYouMean(name, RouteOptionNames(), fmt::format("--{}", prefix), "");
    return Bad(fmt::format("unknown flag --{}{}{}", prefix, name,
                           nearest.empty() ? "; portico route --help lists all" : nearest));
  }
  std::string names;
  for (const Found& match : matches) names += fmt::format(" --{}{}", prefix, match.name());
  return Bad(fmt::format("--{}{} could be any of{}", prefix, name, names));
}

bool IsFlag(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

// Takes one flag with its values off `words` from `at` on.
Status TakeFlag(const std::vector<std::string>& words, size_t* at, std::string_view prefix,
                RouteOptions* options) {
  std::string_view word = words[(*at)++];
  word.remove_prefix(2 + prefix.size());
  const size_t equals = word.find('=');
  PORTICO_ASSIGN_OR_RETURN(const Found found, FindFlag(word.substr(0, equals), prefix));
  if (found.missing != nullptr) {
    return Bad(NoSuchRouteFlag(found.name(), *found.missing, prefix));
  }
  const std::string flag = fmt::format("--{}{}", prefix, found.name());
  const RouteOption& option = *found.option;
  std::vector<std::string> values;
  if (equals != std::string_view::npos) {
    if (option.is_switch()) return Bad(flag + " takes no value");
    values.emplace_back(word.substr(equals + 1));
  } else if (option.is_list()) {
    while (*at < words.size() && !IsFlag(words[*at])) values.push_back(words[(*at)++]);
    // An unset variable of a shell would start a gateway without workers, or without keys.
    if (values.empty()) return Bad(flag + " needs a value");
  } else if (!option.is_switch()) {
    if (*at >= words.size() || IsFlag(words[*at])) return Bad(flag + " needs a value");
    values.push_back(words[(*at)++]);
  }
  if (option.name == "prometheus-port") options->prometheus_port_given = true;
  if (option.name == "policy") options->policy_given = true;
  const Status set = SetRouteOption(option, values, options);
  if (!set.ok()) return Bad(fmt::format("{}: {}", flag, MessageOf(set)));
  return OkStatus();
}

// What is wrong with the options together, `line` those of the command line: at the key's line if it is the file's.
Status AtKey(const Status& status, const RouteKeyLines& lines, const RouteOptions& line) {
  const std::string message(MessageOf(status));
  if (status.ok() || !message.starts_with("--")) return status;
  const std::string name = message.substr(2, message.find_first_of(": ") - 2);
  const auto key = lines.find(name);
  const RouteOption* option = RouteOptionOfKey(name);
  if (key == lines.end() || option == nullptr ||
      RouteOptionText(*option, line) != RouteOptionText(*option, RouteOptions())) {
    return status;
  }
  const bool of_key = message.compare(2 + name.size(), 1, ":") == 0;
  return Bad(
      fmt::format("{}:{}: {}", line.config, key->second, of_key ? message.substr(2) : message));
}

}  // namespace

StatusOr<ParsedRouteOptions> ParseRouteOptions(const std::vector<std::string>& words,
                                               std::string_view prefix,
                                               std::vector<std::string>* others) {
  ParsedRouteOptions parsed;
  const std::string begin = fmt::format("--{}", prefix);
  RouteOptions line;
  std::vector<std::string> mine;
  for (size_t at = 0; at < words.size();) {
    const std::string& word = words[at];
    if (others == nullptr && (word == "--help" || word == "-h")) {
      parsed.print_and_exit = RouteOptionsHelp();
      return parsed;
    }
    if (others != nullptr && !word.starts_with(begin)) {
      others->push_back(words[at++]);
      continue;
    }
    if (!word.starts_with(begin) || word == begin) {
      return Bad(fmt::format("unexpected argument `{}`", word));
    }
    const size_t from = at;
    PORTICO_RETURN_IF_ERROR(TakeFlag(words, &at, prefix, &line));
    mine.insert(mine.end(), words.begin() + static_cast<std::ptrdiff_t>(from),
                words.begin() + static_cast<std::ptrdiff_t>(at));
  }
  RouteKeyLines lines;
  if (!line.config.empty()) {
    PORTICO_ASSIGN_OR_RETURN(const std::string text, ReadFile(line.config));
    PORTICO_RETURN_IF_ERROR(ApplyRouteYaml(text, line.config, &parsed.options, &lines));
    // The command line's lists replace the file's.
    if (!line.worker_urls.empty()) parsed.options.workers.clear();
    for (const RouteOption& option : RouteOptionTable()) {
      if (const auto* list = std::get_if<std::vector<std::string> RouteOptions::*>(&option.member);
          list != nullptr && !(line.**list).empty()) {
        (parsed.options.**list).clear();
      }
    }
  }
  for (size_t at = 0; at < mine.size();) {
    PORTICO_RETURN_IF_ERROR(TakeFlag(mine, &at, prefix, &parsed.options));
  }
  parsed.options.key_given = !parsed.options.api_key.empty();
  PORTICO_RETURN_IF_ERROR(TakeKeyVariable(&parsed.options.api_key));
  PORTICO_RETURN_IF_ERROR(AtKey(ServiceOptionsOf(parsed.options).status(), lines, line));
  PORTICO_RETURN_IF_ERROR(AtKey(WorkersOf(parsed.options).status(), lines, line));
  return parsed;
}

bool IsRouteFlag(std::string_view word) {
  if (!word.starts_with("--")) return false;
  const std::string_view name = word.substr(2, word.find('=') - 2);
  const auto begins = [name](std::string_view full) { return full.starts_with(name); };
  const auto options = RouteOptionTable();
  const auto missing = SglangRouterFlagHints();
  const auto begins_so = [&](const auto& one) { return begins(one.name); };
  const RouteFlagHint* of_smg = FindSmgFlagHint(name);
  if (of_smg != nullptr && name.starts_with(of_smg->name)) return true;  // whole
  return !name.empty() && (std::any_of(options.begin(), options.end(), begins_so) ||
                           std::any_of(missing.begin(), missing.end(), begins_so));
}

namespace {

// In lines of at most 100 columns.
void AppendIndented(std::string_view text, std::string* out) {
  constexpr size_t kRouteHelpIndent = 6;
  constexpr size_t kRouteHelpWidth = 100;
  size_t column = kRouteHelpWidth;
  const std::vector<std::string> words = absl::StrSplit(std::string(text), ' ');
  for (const std::string& word : words) {
    if (column + 1 + word.size() > kRouteHelpWidth) {
      if (out->back() != '\n') out->push_back('\n');
      out->append(kRouteHelpIndent - 1, ' ');
      column = kRouteHelpIndent - 1;
    }
    out->push_back(' ');
    out->append(word);
    column += 1 + word.size();
  }
  out->push_back('\n');
}

}  // namespace

std::string RouteOptionsHelp() {
  std::string text =
      "usage: portico route --worker-urls URL [URL ...] [FLAGS]\n\n"
      "Puts one address in front of many workers that speak OpenAI's or SGLang's HTTP API, or take "
      "tokens\n"
      "over gRPC. BYTES may have a unit: 64KiB, 8MiB, 1GiB.\n";
  const RouteOptions defaults;
  std::string_view group;
  for (const RouteOption& option : RouteOptionTable()) {
    if (option.group != group) text += fmt::format("\n{}\n", group = option.group);
    text += fmt::format("  --{}{}{}{}\n", option.name, option.metavar.empty() ? "" : " ",
                        option.metavar, option.is_list() ? " ..." : "");
    std::string help(option.help);
    if (!option.choices.empty()) {
      help += fmt::format(" One of {}.",
                          absl::StrReplaceAll(std::string(option.choices), {{"|", ", "}}));
    }
    const std::string value = RouteOptionText(option, defaults);
    if (!option.is_switch() && !value.empty()) help += fmt::format(" [{}]", value);
    AppendIndented(help, &text);
  }
  return text;
}

}  // namespace portico
