#include "api/sglang/parse_handlers.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "api/model_name.h"
#include "api/openai/chat/tool_fields.h"
#include "api/planning.h"
#include "api/reply.h"
#include "parser/collector.h"
#include "parser/declared/families.h"
#include "parser/output_parser.h"
#include "service/output/parsed_output.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

constexpr size_t kMaxTextBytes = size_t{1} << 20;

StatusOr<std::string> TextField(const Json& body, std::string_view name) {
  const Json* value = body.Find(name);
  if (value == nullptr || value->is_null()) {
    return InvalidArgument(name, fmt::format("{} is required", name));
  }
  if (!value->is_string()) {
    return InvalidArgument(name, fmt::format("{} must be a string", name));
  }
  if (value->as_string().size() > kMaxTextBytes) {
    return InvalidArgument(name, fmt::format("{} must have at most {} bytes", name, kMaxTextBytes));
  }
  return value->as_string();
}

StatusOr<std::string> ParserField(const Json& body, std::string_view name) {
  const Json* value = body.Find(name);
  if (value == nullptr || value->is_null()) {
    return InvalidArgument(
        name, fmt::format("{} is required: a parser's name, or auto for the model's own", name));
  }
  return TextField(body, name);
}

StatusOr<Json> ReadObject(const std::string& body) {
  PORTICO_ASSIGN_OR_RETURN(Json value, Json::Parse(body));
  if (!value.is_object()) return InvalidArgument("", "the body must be a JSON object");
  return value;
}

// What the parsers make of a whole text.
parser::Collector Collect(const parser::OutputFormat& format, const parser::ToolSet& tools,
                          std::string_view text) {
  parser::Collector out;
  auto parser = parser::OutputParser::Make(format, tools, &out);
  parser->Feed(text);
  parser->Finish();
  return out;
}

// Names that stand for what the served model has: "auto", and "response_template" for what its checkpoint declares.
bool IsOfModel(std::string_view name) { return name == "auto" || parser::IsDeclaredName(name); }

// Null where the model has no parser, or none of that name.
template <typename Family>
const Family* OfModel(const Family* own, std::string_view name) {
  return own == nullptr || name == "auto" || parser::IsDeclaredName(own->name) ? own : nullptr;
}

StatusOr<const ServingModel*> ModelOf(const Json& body, const ApiContext& api) {
  PORTICO_ASSIGN_OR_RETURN(const std::string name, ModelInBody(body));
  return api.models->FindForRequest(name);
}

StatusOr<parser::Collector> ParseCalls(const Json& body, const ApiContext& api) {
  PORTICO_ASSIGN_OR_RETURN(const std::string text, TextField(body, "text"));
  PORTICO_ASSIGN_OR_RETURN(const std::string name, ParserField(body, "tool_call_parser"));
  parser::OutputFormat format;
  if (IsOfModel(name)) {
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, ModelOf(body, api));
    format.tools = OfModel(model->output.tools, name);
  } else {
    format.tools = parser::FindToolFamily(name);
  }
  if (format.tools == nullptr) {
    return InvalidArgument("tool_call_parser",
                           fmt::format("{} no tool-call parser \"{}\"",
                                       IsOfModel(name) ? "the model has" : "there is", name));
  }
  const Json* given = body.Find("tools");
  Json tools = given == nullptr ? Json() : *given;
  if (tools.is_array()) {
    for (Json& tool : tools.as_array()) {  // SGLang's default
      if (tool.is_object() && tool.Find("type") == nullptr) tool.Set("type", Json("function"));
    }
  }
  if (!tools.is_null()) PORTICO_RETURN_IF_ERROR(openai::CheckToolList(tools));
  parser::Collector out = Collect(format, parser::ToolSet(tools, false), text);
  int32_t number = 0;
  for (parser::Collector::Call& call : out.calls) {
    if (call.id.empty()) call.id = NewCallId(format.tools->ids, call.name, number);
    ++number;
  }
  return out;
}

StatusOr<parser::Collector> ParseReasoning(const Json& body, const ApiContext& api) {
  PORTICO_ASSIGN_OR_RETURN(const std::string text, TextField(body, "text"));
  PORTICO_ASSIGN_OR_RETURN(const std::string name, ParserField(body, "reasoning_parser"));
  parser::OutputFormat format;
  bool found = false;  // so that the prompt alone says whether an answer begins inside
  if (IsOfModel(name)) {
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, ModelOf(body, api));
    format.reasoning = OfModel(model->output.reasoning, name);
    found = model->output.reasoning_found;
  } else {
    format.reasoning = parser::FindReasoning(name);
  }
  if (format.reasoning == nullptr) {
    return InvalidArgument("reasoning_parser",
                           fmt::format("{} no reasoning parser \"{}\"",
                                       IsOfModel(name) ? "the model has" : "there is", name));
  }
  format.in_reasoning = format.reasoning->inside && !found;
  return Collect(format, parser::ToolSet(), text);
}

// {"normal_text", "calls": [{"tool_index", "name", "parameters"}]}
std::string SglangCalls(const parser::Collector& out) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("normal_text").String(out.content).Key("calls").BeginArray();
  for (size_t i = 0; i < out.calls.size(); ++i) {
    w.BeginObject().Key("tool_index").Int(static_cast<int64_t>(i));
    w.Key("name").String(out.calls[i].name);
    w.Key("parameters").String(out.calls[i].arguments).EndObject();
  }
  w.EndArray().EndObject();
  return body;
}

// {"remaining_text", "tool_calls": [{"id", "type", "function": {"name", "arguments"}}], "success"}
std::string SmgCalls(const parser::Collector& out) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("remaining_text").String(out.content).Key("tool_calls").BeginArray();
  for (const parser::Collector::Call& call : out.calls) {
    w.BeginObject().Key("id").String(call.id);
    w.Key("type").String("function").Key("function").BeginObject();
    w.Key("name").String(call.name).Key("arguments").String(call.arguments).EndObject().EndObject();
  }
  w.EndArray().Key("success").Bool(true).EndObject();
  return body;
}

std::string SglangReasoning(const parser::Collector& out) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("reasoning_text").String(out.reasoning);
  w.Key("text").String(out.content).EndObject();
  return body;
}

std::string SmgReasoning(const parser::Collector& out) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("normal_text").String(out.content);
  w.Key("reasoning_text").String(out.reasoning).Key("success").Bool(true).EndObject();
  return body;
}

// A route; long texts are parsed on the CPU pool.
template <StatusOr<parser::Collector> (*kParse)(const Json&, const ApiContext&),
          std::string (*kBody)(const parser::Collector&)>
struct ParseApi {
  using Planned = std::string;  // the answer

  static StatusOr<std::string> Prepare(const std::string& body, simdjson::dom::parser&,
                                       const PlanContext& context) {
    PORTICO_ASSIGN_OR_RETURN(const Json object, ReadObject(body));
    PORTICO_ASSIGN_OR_RETURN(const parser::Collector out, kParse(object, context.api));
    return kBody(out);
  }
  static void Answer(ExchangePtr exchange, ShardContext& shard, std::string answer) {
    ReplyJson(*exchange, shard.api, 200, std::move(answer));
  }
};

}  // namespace

void AddParseRoutes(RouteTable& routes) {
  routes.Add("POST", "/parse_function_call", Access::kKey,
             HandlePlanned<ParseApi<ParseCalls, SglangCalls>>);
  routes.Add("POST", "/parse/function_call", Access::kKey,
             HandlePlanned<ParseApi<ParseCalls, SmgCalls>>);
  routes.Add("POST", "/separate_reasoning", Access::kKey,
             HandlePlanned<ParseApi<ParseReasoning, SglangReasoning>>);
  routes.Add("POST", "/parse/reasoning", Access::kKey,
             HandlePlanned<ParseApi<ParseReasoning, SmgReasoning>>);
}

}  // namespace portico::api
