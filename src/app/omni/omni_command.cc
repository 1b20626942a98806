#include "app/omni/omni_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_tools.h"
#include "app/omni/omni_stage_command.h"
#include "app/omni/start_pipeline.h"
#include "app/options/options.h"
#include "app/serve/serve_command.h"
#include "text/json.h"

namespace portico {
namespace {

constexpr char kUsage[] =
    R"(usage: portico omni VERB [CONFIG] [--STAGE.KEY VALUE ...] [FLAGS]

  serve        run the pipeline behind OpenAI's API; FLAGS as of `portico serve`
  check        check the file, the graph and the installed packages without starting anything
  resolve      print every value and mark those that come from the command line
  explain      print where one value comes from: portico omni explain say.factory.voice [CONFIG]
  stage        serve stages of the file to a pipeline on another host

CONFIG is a PipelineConfig in YAML or JSON; without it the bundled pipelines/demo.yaml runs:
speech, transcriptions and chat by voice from flite and PocketSphinx. Dotted flags override values
of the file, e.g. --say.factory.voice rms or --processes.voice.num_replicas 2; so do --timeout_s,
--max_in_flight and --entry_stage.

  --allowed-media-domain NAME     let chats name audio by http and https URLs of this host; *.NAME
                                  for its subdomains, * for all hosts. May be repeated. Private
                                  addresses are rejected unless NAME is one.
  --allowed-local-media-path DIR  let chats name audio files below DIR
)";

struct Arguments {
  std::string config;
  pipeline::Overrides overrides;
  std::vector<std::string> flags;  // of `portico serve`
};

// "--say.factory.voice": the part before "=" has a dot, or is a value of the pipeline itself.
bool IsOverride(std::string_view argument) {
  constexpr std::string_view kOwn[] = {"--entry_stage", "--max_in_flight", "--timeout_s"};
  if (!argument.starts_with("--")) return false;
  const std::string_view flag = argument.substr(0, argument.find('='));
  return flag.find('.') != std::string_view::npos ||
         std::find(std::begin(kOwn), std::end(kOwn), flag) != std::end(kOwn);
}

StatusOr<Arguments> Split(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (i == 0 && !word.starts_with("-")) {
      arguments.config = word;
    } else if (!IsOverride(word)) {
      arguments.flags.push_back(word);
    } else if (const size_t equals = word.find('='); equals != std::string::npos) {
      arguments.overrides.emplace_back(word.substr(2, equals - 2), word.substr(equals + 1));
    } else if (i + 1 == words.size()) {
      return Error(StatusCode::kInvalidArgument, fmt::format("{}: needs a value", word));
    } else {
      arguments.overrides.emplace_back(word.substr(2), words[++i]);
    }
  }
  return arguments;
}

// Moves what is the pipeline's own out of the flags.
Status TakeMediaFlags(std::vector<std::string>* flags, pipeline::Overrides* overrides) {
  constexpr std::string_view kDomain = "--allowed-media-domain";
  constexpr std::string_view kFolder = "--allowed-local-media-path";
  std::vector<std::string> kept;
  std::string domains;
  for (size_t i = 0; i < flags->size(); ++i) {
    const std::string& word = (*flags)[i];
    const std::string_view flag = std::string_view(word).substr(0, word.find('='));
    if (flag != kDomain && flag != kFolder) {
      kept.push_back(word);
      continue;
    }
    const bool joined = flag.size() < word.size();
    if (!joined && i + 1 == flags->size()) {
      return Error(StatusCode::kInvalidArgument, fmt::format("{}: needs a value", word));
    }
    const std::string value = joined ? word.substr(flag.size() + 1) : (*flags)[++i];
    if (value.empty() || (!joined && value.starts_with("--"))) {
      return Error(StatusCode::kInvalidArgument, fmt::format("{}: needs a value", flag));
    }
    if (flag == kDomain) {
      domains += (domains.empty() ? "" : ", ") + Json(value).Dump();
    } else {
      const std::string folder = std::filesystem::absolute(value).string();
      overrides->emplace_back("allowed_local_media_path", Json(folder).Dump());
    }
  }
  if (!domains.empty()) overrides->emplace_back("allowed_media_domains", "[" + domains + "]");
  *flags = std::move(kept);
  return OkStatus();
}

int FailVerb(std::string_view verb, const Status& status, int code = kFailed) {
  return Fail(fmt::format("omni {}", verb), MessageOf(status), code);
}

// Why the usage is shown; empty without a verb.
std::string WrongArguments(std::string_view verb, bool known,
                           const std::vector<std::string>& flags) {
  if (verb.empty()) return "";
  if (!known) return fmt::format("portico omni: there is no verb `{}`\n\n", verb);
  if (!flags.empty()) {
    const std::string& word = flags.front();
    return word.starts_with('-')
               ? fmt::format("portico omni {}: unknown flag {}\n\n", verb, word)
               : fmt::format("portico omni {}: unexpected argument `{}`\n\n", verb, word);
  }
  return fmt::format("portico omni {}: needs the path of a value\n\n", verb);
}

int Check(const Arguments& arguments) {
  auto config = LoadPipelineConfig(arguments.config, arguments.overrides);
  if (!config.ok()) return FailVerb("check", config.status());
  std::fputs(pipeline::GraphText(*config).c_str(), stdout);
  ServeOptions options;
  options.speech = true;
  options.pipeline = arguments.config;
  options.pipeline_overrides = arguments.overrides;
  if (const Status stages = CheckPipeline(options); !stages.ok()) return FailVerb("check", stages);
  Registry registry;
  auto started = StartPipeline(options, EngineStageContext{}, &registry);
  if (!started.ok()) return FailVerb("check", started.status());
  std::fputs("ready: every stage has what it needs\n", stdout);
  return 0;
}

int Serve(const Arguments& arguments) {
  const auto config = LoadPipelineConfig(arguments.config, arguments.overrides);
  if (!config.ok()) return FailVerb("serve", config.status());
  auto parsed = OmniServeOptions(arguments.config, arguments.overrides, arguments.flags);
  if (!parsed.ok()) return FailVerb("serve", parsed.status(), kUsageError);
  if (parsed->print_and_exit) {
    std::fputs(kUsage, stdout);
    std::fputs(parsed->print_and_exit->c_str(), stdout);
    return 0;
  }
  if (parsed->check_only) return Check(arguments);
  return ServeWith(parsed->options, "omni serve");
}

// For verbs that start no stage: a flag that its stage does not take must not look as if it had set something.
StatusOr<pipeline::PipelineConfig> LoadWithFlags(const Arguments& arguments) {
  PORTICO_ASSIGN_OR_RETURN(pipeline::PipelineConfig config,
                           LoadPipelineConfig(arguments.config, arguments.overrides));
  PORTICO_RETURN_IF_ERROR(pipeline::Pipeline::CheckFlags(config, StageKinds(EngineStageContext{})));
  return config;
}

int Resolve(const Arguments& arguments) {
  auto config = LoadWithFlags(arguments);
  if (!config.ok()) return FailVerb("resolve", config.status());
  std::fputs(pipeline::ResolvedConfig(*config, arguments.overrides).c_str(), stdout);
  return 0;
}

int Explain(const std::string& path, const Arguments& arguments) {
  auto config = LoadWithFlags(arguments);
  if (!config.ok()) return FailVerb("explain", config.status());
  auto text = pipeline::ExplainValue(*config, path, arguments.overrides);
  if (!text.ok()) return FailVerb("explain", text.status(), kUsageError);
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace

StatusOr<ParsedOptions> OmniServeOptions(const std::string& config, pipeline::Overrides overrides,
                                         std::vector<std::string> flags) {
  PORTICO_RETURN_IF_ERROR(TakeMediaFlags(&flags, &overrides));
  PORTICO_ASSIGN_OR_RETURN(const pipeline::PipelineConfig pipeline,
                           LoadPipelineConfig(config, overrides));
  std::vector<std::string> words{"omni"};
  if (UsesModel(pipeline) && !pipeline.model_path.empty()) {
    words.push_back("--model-path");
    words.push_back(pipeline.model_path);
  }
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  PORTICO_ASSIGN_OR_RETURN(ParsedOptions parsed,
                           ParseServeOptions(static_cast<int>(argv.size()), argv.data()));
  ServeOptions& options = parsed.options;
  options.speech = true;
  if (!config.empty()) options.pipeline = config;
  options.pipeline_overrides = std::move(overrides);
  ServeAlone(pipeline, &options);
  return parsed;
}

int OmniCommand(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  const std::string verb = words.empty() ? "" : words.front();
  if (verb == "--help" || verb == "-h" || verb == "help") {
    std::fputs(kUsage, stdout);
    std::fputs(kOmniStageUsage, stdout);
    return 0;
  }
  if (!words.empty()) words.erase(words.begin());
  if (verb != "serve" && !words.empty() && (words.back() == "--help" || words.back() == "-h")) {
    std::fputs(kUsage, stdout);
    std::fputs(kOmniStageUsage, stdout);
    return 0;
  }
  std::string path;
  if (verb == "explain" && !words.empty()) {
    path = words.front();
    words.erase(words.begin());
  }
  auto arguments = Split(words);
  if (arguments.ok()) {
    const Status taken = TakeMediaFlags(&arguments->flags, &arguments->overrides);
    if (!taken.ok()) arguments = taken;
  }
  if (!arguments.ok()) return FailVerb(verb, arguments.status(), kUsageError);
  if (verb == "serve") return Serve(*arguments);
  if (verb == "stage") {
    bool usage = false;
    const Status ended =
        OmniStage(arguments->config, arguments->overrides, arguments->flags, &usage);
    if (ended.ok()) return 0;
    return FailVerb(verb, ended, usage ? kUsageError : kFailed);
  }
  const bool known = verb == "check" || verb == "resolve" || verb == "explain";
  if (!known || !arguments->flags.empty() || (verb == "explain" && path.empty())) {
    std::fputs(WrongArguments(verb, known, arguments->flags).c_str(), stderr);
    std::fputs(kUsage, stderr);
    return kUsageError;
  }
  if (verb == "check") return Check(*arguments);
  if (verb == "resolve") return Resolve(*arguments);
  return Explain(path, *arguments);
}

}  // namespace portico
