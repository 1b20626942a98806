#include "engine/llama/import/config/sentence_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "engine/llama/import/config/config_fields.h"
#include "engine/llama/import/files/file.h"
#include "engine/llama/import/plan/pooling_weights.h"

namespace portico::llama {
namespace {

namespace fs = std::filesystem;

std::string Join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

StatusOr<Json> ReadObject(const std::string& path) {
  PORTICO_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
  return ParseConfigJson(text, path);
}

// config.json names one way (newer) or has a flag for each.
Status ReadPooling(const std::string& folder, SentenceModules* modules) {
  const std::string path = Join(folder, "config.json");
  PORTICO_ASSIGN_OR_RETURN(Json json, ReadObject(path));
  modules->pools_prompt = json.GetBool("include_prompt", true);
  std::string modes;
  int count = 0;
  const auto use = [&](const std::string& name) {
    modes += (count++ == 0 ? "" : ", ") + name;
    if (name == "cls" || name == "cls_token") modules->pooling = Pooling::kCls;
    if (name == "mean" || name == "mean_tokens") modules->pooling = Pooling::kMean;
    if (name == "lasttoken") modules->pooling = Pooling::kLast;
  };
  constexpr std::string_view kFlag = "pooling_mode_";
  if (const Json* mode = json.Find("pooling_mode"); mode != nullptr && mode->is_string()) {
    use(mode->as_string());
  } else {
    for (const auto& [key, value] : json.as_object()) {
      if (key.starts_with(kFlag) && value == Json(true)) use(key.substr(kFlag.size()));
    }
  }
  if (count == 1 && modules->pooling) return OkStatus();
  modules->pooling.reset();
  modules->pooling_fault = fmt::format(
      "{}: the pooling '{}' is not known (mean, cls and lasttoken are); --pooling takes "
      "another",
      path, modes);
  return OkStatus();
}

StatusOr<DenseLayer> ReadDense(const std::string& folder) {
  const std::string path = Join(folder, "config.json");
  PORTICO_ASSIGN_OR_RETURN(Json json, ReadObject(path));
  const std::string weights_path = Join(folder, "model.safetensors");
  if (!Exists(weights_path)) {
    return BadFile(weights_path, "is missing: the dense layer is read from safetensors only");
  }
  PORTICO_ASSIGN_OR_RETURN(WeightFiles weights, WeightFiles::OpenFile(weights_path));
  PORTICO_ASSIGN_OR_RETURN(DenseLayer layer, ReadDenseLayer(weights, "linear"));
  const std::string activation = json.GetString("activation_function");
  if (activation.ends_with(".Tanh")) {
    layer.activation = Activation::kTanh;
  } else if (activation.ends_with(".ReLU")) {
    layer.activation = Activation::kRelu;
  } else if (!activation.ends_with(".Identity")) {
    return BadFile(path, fmt::format("the activation '{}' is not known", activation));
  }
  return layer;
}

Status ReadLogitScore(const std::string& folder, SentenceModules* modules) {
  const std::string path = Join(folder, "config.json");
  PORTICO_ASSIGN_OR_RETURN(Json json, ReadObject(path));
  ConfigFields fields(json, path);
  int64_t yes = -1, no = -1;
  fields.Int("true_token_id", &yes, 0);
  fields.Int("false_token_id", &no, 0);
  PORTICO_RETURN_IF_ERROR(fields.status());
  if (yes < 0 || no < 0) {
    return BadFile(path, "must name both true_token_id and false_token_id");
  }
  modules->judge = JudgeTokens{static_cast<TokenId>(yes), static_cast<TokenId>(no)};
  return OkStatus();
}

// config_sentence_transformers.json.
Status ReadPrompts(const std::string& folder, SentenceModules* modules) {
  const std::string path = Join(folder, "config_sentence_transformers.json");
  if (!Exists(path)) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(Json json, ReadObject(path));
  ConfigFields fields(json, path);
  EmbeddingPrompts& prompts = modules->prompts;
  if (const Json* named = fields.Find("prompts"); named != nullptr) {
    if (!named->is_object()) return fields.Bad("prompts", "must be an object");
    for (const auto& [name, text] : named->as_object()) {
      if (!text.is_string()) return fields.Bad("prompts", fmt::format("{} is not a text", name));
      if (text.as_string().empty() || modules->pools_prompt) {
        prompts.texts.emplace_back(name, text.as_string());
        continue;
      }
      return fields.Bad(
          "prompts", "are to be left out of the vector (include_prompt), which is not known here");
    }
  }
  fields.Text("default_prompt_name", &prompts.default_name);
  PORTICO_RETURN_IF_ERROR(fields.status());
  if (prompts.default_name.empty() || prompts.Find(prompts.default_name) != nullptr) {
    return OkStatus();
  }
  return fields.Bad("default_prompt_name",
                    fmt::format("('{}') is none of the prompts", prompts.default_name));
}

// What the Transformer module says of its texts, in today's file or in one that older versions named after the
// model. As sentence-transformers reads them: the first that says anything.
Status ReadTextConfig(const std::string& folder, SentenceModules* modules) {
  constexpr std::string_view kModels[] = {"bert",   "roberta",     "distilbert", "camembert",
                                          "albert", "xlm-roberta", "xlnet"};
  for (const std::string_view model : kModels) {
    const std::string path = Join(folder, fmt::format("sentence_{}_config.json", model));
    if (!Exists(path)) continue;
    PORTICO_ASSIGN_OR_RETURN(Json json, ReadObject(path));
    if (json.as_object().empty()) continue;
    ConfigFields fields(json, path);
    fields.Int("max_seq_length", &modules->max_tokens);
    fields.Bool("do_lower_case", &modules->lower_case);
    return fields.status();
  }
  return OkStatus();
}

Status ReadModule(const std::string& folder, const Json& module, const std::string& list,
                  SentenceModules* modules) {
  const std::string type = module.GetString("type");
  const std::string path = Join(folder, module.GetString("path"));
  if (type.ends_with(".Transformer")) return OkStatus();
  if (type.ends_with(".LogitScore")) return ReadLogitScore(path, modules);
  if (type.ends_with(".Pooling")) return ReadPooling(path, modules);
  if (type.ends_with(".Normalize")) {
    modules->normalized = true;
    return OkStatus();
  }
  if (type.ends_with(".Dense")) {
    PORTICO_ASSIGN_OR_RETURN(DenseLayer layer, ReadDense(path));
    modules->dense.push_back(std::move(layer));
    return OkStatus();
  }
  return BadFile(list, fmt::format("the module '{}' is not known: Transformer, Pooling, Dense, "
                                   "Normalize and LogitScore are",
                                   type));
}

}  // namespace

StatusOr<std::optional<SentenceModules>> ReadSentenceModules(const std::string& folder) {
  const std::string list = Join(folder, "modules.json");
  if (!Exists(list)) return std::optional<SentenceModules>();
  PORTICO_ASSIGN_OR_RETURN(std::string text, ReadTextFile(list));
  StatusOr<Json> json = Json::Parse(text);
  if (!json.ok() || !json->is_array()) return BadFile(list, "is not a JSON list");
  SentenceModules modules;
  for (const Json& module : json->as_array()) {
    if (!module.is_object()) return BadFile(list, "has a module that is not a JSON object");
    PORTICO_RETURN_IF_ERROR(ReadModule(folder, module, list, &modules));
  }
  PORTICO_RETURN_IF_ERROR(ReadPrompts(folder, &modules));
  PORTICO_RETURN_IF_ERROR(ReadTextConfig(folder, &modules));
  return std::optional(std::move(modules));
}

}  // namespace portico::llama
