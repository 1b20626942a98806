#include "app/options/engine_arguments.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "app/read_file.h"
#include "pipeline/config/yaml_value.h"

namespace portico {
namespace {

// Taken from a file, and refused behind --: SGLang's front end does not run, so that a key that is given to it would leave
// the server open.
constexpr std::string_view kOfAccess[] = {"api-key",      "admin-api-key", "ssl-keyfile",
                                          "ssl-certfile", "ssl-ca-certs",  "ssl-keyfile-password"};
// The same, but behind -- they are taken where SGLang's front end may run after all.
constexpr std::string_view kOfFrontEnd[] = {"served-model-name",   "chat-template",
                                            "tool-call-parser",    "preferred-sampling-params",
                                            "allow-auto-truncate", "limit-mm-data-per-request"};
// Taken from both. SGLang's schedulers need some of them too.
constexpr std::string_view kOfBoth[] = {"host",
                                        "port",
                                        "tokenizer-path",
                                        "reasoning-parser",
                                        "weight-version",
                                        "stream-interval",
                                        "log-requests",
                                        "sampling-defaults",
                                        "incremental-streaming-output"};
constexpr std::string_view kModelPathKey = "model-path";

Status Refused(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

bool IsIn(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Both spellings are read here; SGLang says which of them it takes.
std::string Dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

class EngineArguments {
 public:
  EngineArguments(std::set<const Option*> given, ServeOptions* server, ModelOptions* model)
      : given_(std::move(given)), server_(server), model_(model) {}

  Status TakeWords(const std::vector<std::string>& words);
  Status TakeFile(const std::string& path);

 private:
  Status Refuse(const std::string& name) const;
  Status TakeEntry(const YAML::Node& key, const YAML::Node& value, const std::string& file);
  Status Take(const Option& option, const std::string& value);

  std::set<const Option*> given_;
  ServeOptions* server_;
  ModelOptions* model_;
};

Status EngineArguments::Take(const Option& option, const std::string& value) {
  model_->engine_options_taken.emplace_back(option.name);
  if (!given_.insert(&option).second ||
      OptionText(option, *server_, *model_) != OptionText(option, ServeOptions(), ModelOptions())) {
    return OkStatus();
  }
  return SetOption(option, value, server_, model_);
}

// `name`: a flag, perhaps cut short, which argparse takes too.
Status EngineArguments::Refuse(const std::string& name) const {
  const auto check = [&](std::span<const std::string_view> names) {
    const auto full = std::find_if(names.begin(), names.end(), [&](std::string_view each) {
      return !name.empty() && each.starts_with(name);
    });
    if (full == names.end()) return OkStatus();
    const std::string said = name == *full ? "" : fmt::format("--{}: ", name);
    return Refused(
        fmt::format("{}--{} is an option of this server: give it before the --", said, *full));
  };
  PORTICO_RETURN_IF_ERROR(check(kOfAccess));
  return model_->sglang_fallback == "http" ? OkStatus() : check(kOfFrontEnd);
}

Status EngineArguments::TakeWords(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const size_t equals = words[i].find('=');
    const std::string name = Dashes(words[i].substr(2, equals - 2));
    PORTICO_RETURN_IF_ERROR(Refuse(name));
    if (name == "config" && equals != std::string::npos) {
      return Refused(
          "--config behind the --: SGLang reads the file only where its name is a word of its own");
    }
    const Option* option = FindOption(name);
    if (option == nullptr || (!IsIn(kOfBoth, name) && !IsIn(kOfFrontEnd, name))) continue;
    std::string value = "true";
    if (equals != std::string::npos) {
      value = words[i].substr(equals + 1);
    } else if (!option->is_flag()) {
      if (i + 1 == words.size()) continue;  // SGLang says so
      value = words[i + 1];
    }
    if (const Status status = Take(*option, value); !status.ok()) {
      return Refused(fmt::format("--{} behind the --: {}", name, MessageOf(status)));
    }
  }
  return OkStatus();
}

// The value as SGLang's reader would make a word of it.
StatusOr<std::string> WordOf(const Option& option, const YAML::Node& value,
                             const std::string& file) {
  if (value.IsNull()) return Refused("has no value");
  if (value.IsMap()) {
    PORTICO_ASSIGN_OR_RETURN(const Json json, pipeline::YamlFile(file).ToJson(value));
    return json.Dump();
  }
  if (!value.IsScalar()) return Refused("takes one value, not a list");
  bool flag = false;
  if (option.is_flag() && YAML::convert<bool>::decode(value, flag)) return flag ? "true" : "false";
  return value.Scalar();
}

Status EngineArguments::TakeEntry(const YAML::Node& key, const YAML::Node& value,
                                  const std::string& file) {
  if (!key.IsScalar()) return OkStatus();  // SGLang says so
  const std::string name = Dashes(key.Scalar());
  const Option* option = FindOption(name);
  if (option == nullptr || (!IsIn(kOfAccess, name) && !IsIn(kOfFrontEnd, name) &&
                            !IsIn(kOfBoth, name) && option->name != kModelPathKey)) {
    return OkStatus();
  }
  StatusOr<std::string> word = WordOf(*option, value, file);
  const Status status = word.ok() ? Take(*option, *word) : word.status();
  if (status.ok()) return status;
  return Refused(
      fmt::format("{}:{}: {}: {}", file, key.Mark().line + 1, key.Scalar(), MessageOf(status)));
}

Status EngineArguments::TakeFile(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(path);
  if (!text.ok())
    return Refused(fmt::format("--config behind the --: {}", MessageOf(text.status())));
  try {
    const YAML::Node root = pipeline::LoadOneDocument(*text);
    if (!root.IsMap()) return OkStatus();  // SGLang says so, or it is empty
    for (const auto& entry : root) {
      PORTICO_RETURN_IF_ERROR(TakeEntry(entry.first, entry.second, path));
    }
  } catch (const YAML::Exception& error) {
    return Refused(fmt::format("{}:{}: {}", path, error.mark.line + 1, error.msg));
  }
  return OkStatus();
}

}  // namespace

Status GiveToEngine(const std::vector<std::string>& arguments, std::set<const Option*> given,
                    ServeOptions* options) {
  ModelOptions* taker = nullptr;
  for (ModelOptions& model : options->models) {
    if (model.engine != "sglang" || !model.attach.empty()) continue;
    if (taker != nullptr) return Refused("--: several models have the engine sglang");
    taker = &model;
  }
  if (taker == nullptr) return Refused("--: only --engine sglang takes arguments of its engine");
  taker->engine_arguments = arguments;
  EngineArguments engine(std::move(given), options, taker);
  PORTICO_RETURN_IF_ERROR(engine.TakeWords(arguments));
  const auto config = std::find(arguments.begin(), arguments.end(), "--config");
  if (config == arguments.end() || std::next(config) == arguments.end()) return OkStatus();
  return engine.TakeFile(*std::next(config));
}

}  // namespace portico
