#include "app/options/route_options_models.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "app/load/load_model.h"
#include "app/options/nearest_name.h"
#include "app/options/parser_names.h"

namespace portico {
namespace {

Status BadModel(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

struct ModelTextKey {
  std::string_view name;
  std::string ModelTexts::* member;
};
constexpr ModelTextKey kModelTextKeys[] = {{"model-path", &ModelTexts::model_path},
                                           {"tokenizer-path", &ModelTexts::tokenizer_path},
                                           {"chat-template", &ModelTexts::chat_template},
                                           {"tool-call-parser", &ModelTexts::tool_call_parser},
                                           {"reasoning-parser", &ModelTexts::reasoning_parser}};

Status CheckParsers(const ModelOptions& model, std::string_view where) {
  PORTICO_RETURN_IF_ERROR(CheckToolCallParser(fmt::format("{}tool-call-parser", where),
                                              model.tool_call_parser, OtherParserNames::kAuto));
  return CheckReasoningParser(fmt::format("{}reasoning-parser", where), model.reasoning_parser,
                              OtherParserNames::kAuto);
}

// The folder or file of the tokenizer must be there before a worker that takes tokens is.
Status CheckTextsExist(const ModelOptions& model, std::string_view where) {
  const bool tokenizer = !model.tokenizer_path.empty();
  const std::string& path = tokenizer ? model.tokenizer_path : model.model_path;
  std::error_code ignored;
  if (path.empty() || std::filesystem::exists(path, ignored)) return OkStatus();
  return BadModel(fmt::format("{}{}: {}: there is no such file or folder", where,
                              tokenizer ? "tokenizer-path" : "model-path", path));
}

bool NamesTokenWorkers(const RouteOptions& options) {
  const auto grpc = [](const std::vector<std::string>& urls) {
    return std::any_of(urls.begin(), urls.end(), [](const std::string& url) {
      return url.starts_with("grpc://") || url.starts_with("grpcs://");
    });
  };
  return grpc(options.worker_urls) || grpc(options.prefill) || grpc(options.decode) ||
         std::any_of(options.workers.begin(), options.workers.end(),
                     [](const auto& spec) { return spec.protocol == router::Protocol::kGrpc; });
}

}  // namespace

Status ReadModelTexts(const YAML::Node& models, const std::string& file, RouteOptions* options,
                      int* line) {
  if (!models.IsMap()) {
    return BadModel(
        "must be a mapping by the models' names (a list of models is one of `portico serve`)");
  }
  for (const auto& entry : models) {
    *line = entry.first.Mark().line;
    const auto model = entry.first.as<std::string>();
    if (!entry.second.IsMap()) return BadModel(fmt::format("`{}` must be a mapping", model));
    ModelTexts& texts = options->model_texts[model];
    texts.place = fmt::format("{}:{}: ", file, *line + 1);
    for (const auto& field : entry.second) {
      *line = field.first.Mark().line;
      auto key = field.first.as<std::string>();
      std::replace(key.begin(), key.end(), '_', '-');
      const auto* known = std::find_if(std::begin(kModelTextKeys), std::end(kModelTextKeys),
                                       [&](const ModelTextKey& one) { return one.name == key; });
      if (known == std::end(kModelTextKeys)) {
        std::vector<std::string_view> keys;
        for (const ModelTextKey& one : kModelTextKeys) keys.push_back(one.name);
        return BadModel(
            fmt::format("`{}`: unknown key `{}` of a model{}", model, key, DidYouMean(key, keys)));
      }
      if (!field.second.IsScalar()) {
        return BadModel(fmt::format("`{}`: {} must be one value", model, key));
      }
      texts.*known->member = field.second.as<std::string>();
    }
  }
  return OkStatus();
}

Status SetModels(const RouteOptions& options, GatewayServiceOptions* service) {
  ModelOptions& all = service->model;
  all.model_path = options.model_path;
  all.tokenizer_path = options.tokenizer_path;
  all.chat_template = options.chat_template;
  all.tool_call_parser = options.tool_call_parser;
  all.reasoning_parser = options.reasoning_parser;
  PORTICO_RETURN_IF_ERROR(CheckParsers(all, "--"));
  PORTICO_RETURN_IF_ERROR(CheckBeforeLoading(all));
  if (NamesTokenWorkers(options)) PORTICO_RETURN_IF_ERROR(CheckTextsExist(all, "--"));
  for (const auto& [name, texts] : options.model_texts) {
    ModelOptions& model = service->named_models.emplace(name, all).first->second;
    if (!texts.model_path.empty() || !texts.tokenizer_path.empty()) {
      model.model_path = texts.model_path;
      model.tokenizer_path = texts.tokenizer_path;
    }
    if (!texts.chat_template.empty()) model.chat_template = texts.chat_template;
    if (!texts.tool_call_parser.empty()) model.tool_call_parser = texts.tool_call_parser;
    if (!texts.reasoning_parser.empty()) model.reasoning_parser = texts.reasoning_parser;
    const std::string where = fmt::format("{}models: `{}`: ", texts.place, name);
    PORTICO_RETURN_IF_ERROR(CheckParsers(model, where));
    // What only a flag names concerns workers of HTTP too, whose users give it without a need.
    const bool own = !texts.model_path.empty() || !texts.tokenizer_path.empty();
    if (own) PORTICO_RETURN_IF_ERROR(CheckTextsExist(model, where));
    if (const Status good = CheckBeforeLoading(model); !good.ok()) {
      return BadModel(fmt::format("{}{}", where, MessageOf(good)));
    }
  }
  return OkStatus();
}

}  // namespace portico
