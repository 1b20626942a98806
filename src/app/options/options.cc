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
  std::vector<std::string> rest;  // behind --
};

Status Bad(std::string message) { return Error(StatusCode::kInvalidArgument, std::move(message)); }

// What users of other servers type, and the option that it is here.
struct ForeignFlag {
  std::string_view flag;
  std::string_view option;
};

constexpr ForeignFlag kForeignFlags[] = {
    {"-m", "model-path"},
    {"-hf", "model-path"},
    {"-hfr", "model-path"},
    {"-a", "served-model-name"},
    {"-c", "context-length"},
    {"--ctx-size", "context-length"},
    {"--max-model-len", "context-length"},
    {"-t", "threads"},
    {"-np", "max-running-requests"},
    {"--parallel", "max-running-requests"},
    {"--max-num-seqs", "max-running-requests"},
    {"--timeout-graceful-shutdown", "drain-timeout"},
    {"-ub", "chunked-prefill-size"},
    {"--ubatch-size", "chunked-prefill-size"},
    {"--max-num-batched-tokens", "chunked-prefill-size"},
    {"-ctk", "kv-cache-dtype"},
    {"--cache-type-k", "kv-cache-dtype"},
    {"-ctv", "kv-cache-dtype"},
    {"--cache-type-v", "kv-cache-dtype"},
    {"--hf-repo", "model-path"},
    {"--alias", "served-model-name"},
    {"--chat-template-file", "chat-template"},
    {"--embedding", "is-embedding"},
    {"--embeddings", "is-embedding"},
    {"--threads-http", "shards"},
};
// Those of SGLang's own scheduler.
constexpr std::string_view kEngineFlags[] = {
    "--tp",
    "--tp-size",
    "--tensor-parallel-size",
    "--pp-size",
    "--mem-fraction-static",
    "--attention-backend",
    "--cuda-graph-max-bs",
    "--enable-lora",
    "--lora-paths",
    "--schedule-policy",
    "--speculative-algorithm",
};

// What needs no option here, and why.
struct NeedlessFlag {
  std::string_view flag;
  std::string_view why;
};

constexpr NeedlessFlag kNeedlessFlags[] = {
    {"-ngl", "the embedded engine computes on the CPU"},
    {"--n-gpu-layers", "the embedded engine computes on the CPU"},
    {"--gpu-layers", "the embedded engine computes on the CPU"},
    {"--gpu-memory-utilization",
     "the embedded engine computes on the CPU; --max-total-tokens bounds its KV cache"},
    {"--temp", "sampling parameters are the requests' own"},
    {"-n", "the length of an answer is its request's max_tokens"},
    {"--n-predict", "the length of an answer is its request's max_tokens"},
    {"-cb", "requests are always batched"},
    {"--cont-batching", "requests are always batched"},
    {"-fa", "attention needs no option (docs/llama.md)"},
    {"--flash-attn", "attention needs no option (docs/llama.md)"},
    {"--jinja", "chat templates are always rendered"},
    {"--trust-remote-code", "no code of a model's folder is run"},
    {"--enable-prefix-caching", "prefixes are kept unless --disable-radix-cache is given"},
    {"--enable-auto-tool-choice", "tool calls are read unless --tool-call-parser is none"},
    {"--metrics", "metrics are always served, at /metrics"},
    {"--disable-log-requests", "requests are logged only with --log-requests"},
    {"--dp", "portico launch --dp-size starts several servers and a gateway"},
    {"--dp-size", "portico launch --dp-size starts several servers and a gateway"},
    {"--data-parallel-size", "portico launch --dp-size starts several servers and a gateway"},
};

std::string_view OptionOf(std::string_view flag) {
  for (const ForeignFlag& foreign : kForeignFlags) {
    if (foreign.flag == flag) return foreign.option;
  }
  const size_t dashes = flag.find_first_not_of('-');
  return dashes == std::string_view::npos ? "" : NearestOption(flag.substr(dashes));
}

Status UnknownArgument(const std::string& argument) {
  if (argument.empty() || argument[0] != '-') {
    return Bad(fmt::format(
        "unexpected argument `{}`; options begin with --, and --model-path names a model",
        argument));
  }
  const std::string flag = argument.substr(0, argument.find('='));
  if (std::find(std::begin(kEngineFlags), std::end(kEngineFlags), flag) != std::end(kEngineFlags)) {
    return Bad(fmt::format(
        "unknown flag {}; with --engine sglang, SGLang's own options follow a final --", flag));
  }
  for (const NeedlessFlag& needless : kNeedlessFlags) {
    if (needless.flag == flag) return Bad(fmt::format("unknown flag {}: {}", flag, needless.why));
  }
  const std::string_view nearest = OptionOf(flag);
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
      if (flag == help) continue;
      PORTICO_ASSIGN_OR_RETURN(std::string value, ValueOf(*flag, times[flag]++));
      if (flag == config) {
        line.config = std::move(value);
      } else {
        line.values.emplace_back(flags.at(flag), std::move(value));
      }
    }
    line.help = help->count() > 0;
    if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
      std::string extra = extras.front();
      // CLI11 takes the h of -hf for a flag of its own.
      if (extra.starts_with("-f") &&
          std::find(argv, argv + argc, "-h" + extra.substr(1)) != argv + argc) {
        extra.insert(1, "h");
      }
      return UnknownArgument(extra);
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
  ParsedOptions parsed;
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
