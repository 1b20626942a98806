#include "app/load/model_output.h"

#include <filesystem>
#include <utility>

#include "app/read_file.h"
#include "base/log.h"
#include "parser/declared/families.h"
#include "parser/detect/detect.h"
#include "parser/reasoning/families.h"
#include "parser/tool/families.h"
#include "service/output/declared_format.h"
#include "text/json.h"

namespace portico {
namespace {

// Null where the folder has no such file, or it is no JSON.
Json JsonInFolder(const std::string& folder, const char* name) {
  const StatusOr<std::string> text = ReadFile((std::filesystem::path(folder) / name).string());
  if (!text.ok()) return Json();
  StatusOr<Json> json = Json::Parse(*text);
  return json.ok() ? *std::move(json) : Json();
}

// The parser that a checkpoint names; "auto" where it names none that exists.
std::string NamedParser(const Json& settings, const char* member,
                        bool (*exists)(std::string_view)) {
  const Json* const named = settings.Find(member);
  if (named == nullptr || named->is_null()) return "auto";
  const std::string name = settings.GetString(member);
  if (name == "auto" || name == "none" || parser::IsDeclaredName(name) || exists(name)) return name;
  LogWarning("the {} of the model's tokenizer_config.json is not used: there is no parser {}",
             member, named->Dump());
  return "auto";
}

}  // namespace

Status ReadOutputFormat(const ModelOptions& options, std::string_view chat_template,
                        const std::string& folder, ServingModel* model) {
  const Json settings = JsonInFolder(folder, "tokenizer_config.json");
  OutputFormatSource format;
  format.tool_call_parser = options.tool_call_parser;
  format.reasoning_parser = options.reasoning_parser;
  format.chat_template = chat_template;
  if (format.tool_call_parser == "auto") {
    format.tool_call_parser = NamedParser(settings, "tool_call_parser", [](std::string_view name) {
      return parser::FindToolFamily(name) != nullptr;
    });
  }
  if (format.reasoning_parser == "auto") {
    format.reasoning_parser = NamedParser(settings, "reasoning_parser", [](std::string_view name) {
      return parser::FindReasoning(name) != nullptr;
    });
  }
  if (chat_template.empty()) {
    const Json config = JsonInFolder(folder, "config.json");
    format.model_type = config.GetString("model_type");
    const Json* const names = config.Find("architectures");
    if (names != nullptr && names->is_array() && !names->as_array().empty() &&
        names->as_array()[0].is_string()) {
      format.architecture = names->as_array()[0].as_string();
    }
  }
  const Json* const declared = settings.Find("response_template");
  PORTICO_ASSIGN_OR_RETURN(
      model->output,
      MakeOutputFormat(format, declared == nullptr ? Json() : *declared, *model->tokenizer));
  model->forward_unknown_tools = options.forward_unknown_tools;
  if (model->output.tools != nullptr || model->output.reasoning != nullptr) {
    LogInfo("model `{}`: tool calls as {}, reasoning as {}", model->id,
            model->output.tools == nullptr ? "text" : model->output.tools->name,
            model->output.reasoning == nullptr ? "text" : model->output.reasoning->name);
  }
  if (format.tool_call_parser == "auto" && model->output.tools == nullptr) {
    const std::string like = parser::SuggestToolParser(chat_template);
    if (!like.empty()) {
      LogWarning(
          "model `{}`: its tool calls stay in the text, as no rule of auto knows their format; the "
          "chat template's "
          "look like {} (--tool-call-parser {})",
          model->id, like, like);
    }
  }
  return OkStatus();
}

}  // namespace portico
