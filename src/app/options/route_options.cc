#include "app/options/route_options.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "app/options/key_variable.h"
#include "app/options/nearest_name.h"
#include "app/options/options_table.h"
#include "app/options/route_options_models.h"
#include "app/options/route_options_table.h"
#include "app/read_file.h"
#include "pipeline/config/yaml_value.h"

namespace portico {
namespace {

// Somebody may be writing it: it does not mean that there are no workers any more.
constexpr std::string_view kEmptyFile = ": it is empty";

Status Bad(std::string message) { return Error(StatusCode::kInvalidArgument, std::move(message)); }

std::vector<std::string_view> RouteOptionNames() {
  std::vector<std::string_view> names;
  for (const RouteOption& option : RouteOptionTable()) names.push_back(option.name);
  return names;
}

// A flag, or one that Portico does not have.
struct Found {
  const RouteOption* option = nullptr;
  std::string_view name;
};

// As argparse: the name itself, or the one name that begins so.
StatusOr<Found> FindFlag(std::string_view name, std::string_view prefix) {
  std::vector<Found> matches;
  const auto look = [&](const RouteOption* option, std::string_view full) {
    if (full == name) return true;
    if (full.starts_with(name)) matches.push_back({option, full});
    return false;
  };
  for (const RouteOption& option : RouteOptionTable()) {
    if (look(&option, option.name)) return Found{&option, option.name};
  }
  for (const std::string_view missing : MissingRouteFlags()) {
    if (look(nullptr, missing)) return Found{nullptr, missing};
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    const std::string nearest =
        DidYouMean(name, RouteOptionNames(), fmt::format("--{}", prefix), "");
    return Bad(fmt::format("there is no flag --{}{}{}", prefix, name,
                           nearest.empty() ? "; portico route --help lists all" : nearest));
  }
  std::string names;
  for (const Found& match : matches) names += fmt::format(" --{}{}", prefix, match.name);
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
  const std::string flag = fmt::format("--{}{}", prefix, found.name);
  if (found.option == nullptr) return Bad(flag + ": portico does not have this yet");
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

// An endpoint, or what the server's own --kv-events-config says, as text or as a mapping.
Status SetKvEvents(const YAML::Node& node, router::WorkerSpec* spec) {
  Json value = JsonObject{};
  if (node.IsScalar()) {
    value = Json(node.as<std::string>());
  } else {
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      const YAML::Node& member = entry.second;
      if (member.IsNull()) {
        value.Set(key, nullptr);
      } else if (key == "dp_size") {
        value.Set(key, member.as<int64_t>());
      } else if (key == "bind") {
        value.Set(key, member.as<bool>());
      } else {
        value.Set(key, member.as<std::string>());
      }
    }
  }
  auto address = router::ReadKvAddress(value);
  if (!address.ok()) return Bad(fmt::format("kv-events: {}", MessageOf(address.status())));
  if (spec->protocol == router::Protocol::kGrpc) {
    return Bad("kv-events: grpc workers send them over gRPC");
  }
  spec->kv_events = *std::move(address);
  return OkStatus();
}

std::string DashedKey(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Status ReadWorkerField(const std::string& key, const YAML::Node& value, router::WorkerSpec* spec) {
  if (key == "url") return OkStatus();
  if (key == "role") return SetRole(value.as<std::string>(), spec);
  if (key == "bootstrap-port") return SetBootstrapPort(value.as<std::string>(), spec);
  if (key == "kv-events") return SetKvEvents(value, spec);
  if (key == "api-key") {
    spec->api_key = value.as<std::string>();
    if (!router::IsHeaderKey(spec->api_key)) return Bad("api-key has other than printable ASCII");
  } else if (key == "models") {
    spec->models = value.as<std::vector<std::string>>();
  } else if (key == "max-requests") {
    spec->max_requests = value.as<int64_t>();
    if (spec->max_requests < 0 || spec->max_requests > router::kMaxWorkerRequests) {
      return Bad(fmt::format("max-requests is not in 0..{}", router::kMaxWorkerRequests));
    }
  } else if (key == "labels") {
    if (!value.IsMap()) return Bad("labels must be a mapping");
    for (const auto& label : value) {
      spec->labels.emplace_back(label.first.as<std::string>(), label.second.as<std::string>());
    }
  } else {
    constexpr std::string_view kKeys[] = {"url",     "role",         "bootstrap-port", "kv-events",
                                          "api-key", "max-requests", "models",         "labels"};
    return Bad(fmt::format("there is no key `{}` of a worker{}", key, DidYouMean(key, kKeys)));
  }
  return OkStatus();
}

// *line becomes that of what is wrong.
StatusOr<router::WorkerSpec> ReadWorker(const YAML::Node& node, int* line) {
  *line = node.Mark().line;
  if (node.IsScalar()) return router::ParseWorkerUrl(node.as<std::string>());
  if (!node.IsMap() || !node["url"] || !node["url"].IsScalar()) {
    return Bad("each of `workers` must be a URL, or have a `url`");
  }
  PORTICO_ASSIGN_OR_RETURN(router::WorkerSpec spec,
                           router::ParseWorkerUrl(node["url"].as<std::string>()));
  std::set<std::string> seen;
  for (const auto& entry : node) {
    *line = entry.first.Mark().line;
    const std::string key = DashedKey(entry.first.as<std::string>());
    if (!seen.insert(key).second) return Bad(fmt::format("`{}` of a worker is set twice", key));
    try {
      PORTICO_RETURN_IF_ERROR(ReadWorkerField(key, entry.second, &spec));
    } catch (const YAML::Exception& error) {
      return Bad(fmt::format("{} of a worker: {}", key, error.msg));
    }
  }
  return spec;
}

Status NoSuchKey(std::string_view name) {
  const std::string why = "there is no such key";
  if (FindOption(name) == nullptr) {
    std::vector<std::string_view> names = RouteOptionNames();
    names.push_back("workers");
    names.push_back("models");
    return Bad(why + DidYouMean(name, names));
  }
  return Bad(why + "; it is one of `portico serve`, and this file is for `portico route`");
}

// *line is that of the key, and becomes that of what is wrong below it.
Status ApplyEntry(const std::string& key, const YAML::Node& value, const std::string& file,
                  RouteOptions* options, int* line) {
  if (key == "workers") {
    if (!value.IsSequence()) return Bad("must be a list");
    for (const YAML::Node& node : value) {
      PORTICO_ASSIGN_OR_RETURN(router::WorkerSpec spec, ReadWorker(node, line));
      options->workers.push_back(std::move(spec));
    }
    return OkStatus();
  }
  if (key == "models") return ReadModelTexts(value, file, options, line);
  const std::string name = DashedKey(key);
  if (name == "aliases" && value.IsMap()) {
    for (const auto& entry : value) {
      options->model_aliases.push_back(
          fmt::format("{}={}", entry.first.as<std::string>(), entry.second.as<std::string>()));
    }
    return OkStatus();
  }
  for (const RouteOption& option : RouteOptionTable()) {
    if (option.name != name || name == "config") continue;
    if (name == "prometheus-port") options->prometheus_port_given = true;
    if (name == "policy") options->policy_given = true;
    if (value.IsSequence() && option.is_list()) {
      return SetRouteOption(option, value.as<std::vector<std::string>>(), options);
    }
    if (!value.IsScalar()) return Bad("must be one value");
    return SetRouteOption(option, {value.as<std::string>()}, options);
  }
  return NoSuchKey(name);
}

}  // namespace

Status ApplyRouteYaml(const std::string& text, const std::string& file, RouteOptions* options) {
  try {
    const YAML::Node root = pipeline::LoadOneDocument(text);
    if (root.IsNull()) return Bad(fmt::format("{}{}", file, kEmptyFile));
    if (!root.IsMap()) return Bad(file + ": it is not a mapping");
    std::set<std::string> seen;
    for (const auto& entry : root) {
      const std::string key = entry.first.as<std::string>();
      int line = entry.first.Mark().line;
      const auto bad = [&](std::string_view why) {
        return Bad(fmt::format("{}:{}: {}: {}", file, line + 1, key, why));
      };
      if (!seen.insert(DashedKey(key)).second) return bad("the key is there twice");
      try {
        const Status applied = ApplyEntry(key, entry.second, file, options, &line);
        if (!applied.ok()) return bad(MessageOf(applied));
      } catch (const YAML::Exception& error) {
        return bad(error.msg);
      }
    }
  } catch (const YAML::Exception& error) {
    return Bad(fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
  return OkStatus();
}

StatusOr<std::vector<router::WorkerSpec>> ReadWorkerList(const std::string& text,
                                                         const std::string& file) {
  try {
    const YAML::Node root = pipeline::LoadOneDocument(text);
    if (root.IsNull()) return Bad(fmt::format("{}{}", file, kEmptyFile));
    if (!root.IsSequence()) return Bad(file + ": it is not a list of workers");
    std::vector<router::WorkerSpec> workers;
    for (const YAML::Node& node : root) {
      int line = 0;
      auto spec = ReadWorker(node, &line);
      if (!spec.ok()) {
        return Bad(fmt::format("{}:{}: {}", file, line + 1, MessageOf(spec.status())));
      }
      workers.push_back(*std::move(spec));
    }
    return workers;
  } catch (const YAML::Exception& error) {
    return Bad(fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
}

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
      return Bad(fmt::format("`{}` is not a flag", word));
    }
    const size_t from = at;
    PORTICO_RETURN_IF_ERROR(TakeFlag(words, &at, prefix, &line));
    mine.insert(mine.end(), words.begin() + static_cast<std::ptrdiff_t>(from),
                words.begin() + static_cast<std::ptrdiff_t>(at));
  }
  if (!line.config.empty()) {
    PORTICO_ASSIGN_OR_RETURN(const std::string text, ReadFile(line.config));
    PORTICO_RETURN_IF_ERROR(ApplyRouteYaml(text, line.config, &parsed.options));
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
  PORTICO_RETURN_IF_ERROR(ServiceOptionsOf(parsed.options).status());
  PORTICO_RETURN_IF_ERROR(WorkersOf(parsed.options).status());
  return parsed;
}

bool IsRouteFlag(std::string_view word) {
  if (!word.starts_with("--")) return false;
  const std::string_view name = word.substr(2, word.find('=') - 2);
  const auto begins = [name](std::string_view full) { return full.starts_with(name); };
  const auto options = RouteOptionTable();
  const auto missing = MissingRouteFlags();
  return !name.empty() && (std::any_of(options.begin(), options.end(),
                                       [&](const RouteOption& one) { return begins(one.name); }) ||
                           std::any_of(missing.begin(), missing.end(), begins));
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
