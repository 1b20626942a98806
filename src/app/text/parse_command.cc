#include "app/text/parse_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "app/command_tools.h"
#include "app/options/parser_names.h"
#include "app/text/line_io.h"
#include "app/text/text_command.h"
#include "base/status.h"
#include "parser/collector.h"
#include "parser/declared/families.h"
#include "parser/output_parser.h"
#include "parser/reasoning/families.h"
#include "parser/tool/families.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace portico {
namespace {

constexpr char kExamples[] =
    R"(One request per line: {"id", "text", "chunks"?, "tool_call_parser"?, "reasoning_parser"?, "tools"?, "in_reasoning"?}.
`chunks`, a list of texts, is parsed as a stream. Without `tools` any name is taken for a tool's, and a call counts once it is
finished. A request may have a "response_template", as in a checkpoint's tokenizer_config.json; both parsers may then be
response_template.

Example:
  echo '{"id":1,"text":"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"}' |
    portico parse --tool-call-parser hermes --jsonl
)";

struct ParseArguments {
  std::string tool_call_parser;
  std::string reasoning_parser;
  bool forward_unknown_tools = false;
  bool jsonl = false;
};

std::string NameIn(const Json& request, std::string_view key, const std::string& fallback) {
  const Json* value = request.Find(key);
  std::string name = value == nullptr ? fallback : value->is_string() ? value->as_string() : "";
  return name == "none" ? "" : name;
}

// A name that no parser has; requests may define the format of response_template themselves.
Status CheckParserNames(const ParseArguments& arguments) {
  PORTICO_RETURN_IF_ERROR(CheckToolCallParser("--tool-call-parser", arguments.tool_call_parser,
                                              OtherParserNames::kNone));
  return CheckReasoningParser("--reasoning-parser", arguments.reasoning_parser,
                              OtherParserNames::kNone);
}

// What the request's own response_template makes.
struct Declared {
  std::optional<parser::DeclaredTools> tools;
  std::optional<parser::DeclaredReasoning> reasoning;
};

Status ReadDeclared(const Json& request, Declared* out) {
  const Json* json = request.Find("response_template");
  if (json == nullptr) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<const parser::ResponseTemplate> format,
                           parser::ResponseTemplate::Load(*json));
  out->tools.emplace(parser::kDeclaredName, format);
  out->reasoning.emplace(parser::kDeclaredName, format);
  return OkStatus();
}

// `declared` outlives the format.
StatusOr<parser::OutputFormat> FormatOf(const Json& request, const ParseArguments& arguments,
                                        const Declared& declared) {
  parser::OutputFormat format;
  std::string name = NameIn(request, "tool_call_parser", arguments.tool_call_parser);
  if (declared.tools && parser::IsDeclaredName(name)) {
    format.tools = &*declared.tools;
  } else if (!name.empty()) {
    format.tools = parser::FindToolFamily(name);
    if (format.tools == nullptr) {
      return InvalidArgument("tool_call_parser", "there is no tool-call parser `" + name + "`");
    }
  }
  name = NameIn(request, "reasoning_parser", arguments.reasoning_parser);
  if (declared.reasoning && parser::IsDeclaredName(name)) {
    format.reasoning = &*declared.reasoning;
  } else if (!name.empty()) {
    format.reasoning = parser::FindReasoning(name);
    if (format.reasoning == nullptr) {
      return InvalidArgument("reasoning_parser", "there is no reasoning parser `" + name + "`");
    }
  }
  format.in_reasoning =
      request.GetBool("in_reasoning", format.reasoning != nullptr && format.reasoning->inside);
  return format;
}

void Write(const parser::Collector& out, JsonWriter* w) {
  w->Key("content").String(out.content);
  w->Key("reasoning_content").String(out.reasoning);
  w->Key("tool_calls").BeginArray();
  for (const parser::Collector::Call& call : out.calls) {
    w->BeginObject().Key("name").String(call.name);
    w->Key("arguments").String(call.arguments).EndObject();
  }
  w->EndArray();
}

Status ParseRequest(const Json& request, const ParseArguments& arguments, JsonWriter* w) {
  Declared declared;
  PORTICO_RETURN_IF_ERROR(ReadDeclared(request, &declared));
  PORTICO_ASSIGN_OR_RETURN(parser::OutputFormat format, FormatOf(request, arguments, declared));
  const Json* tools = request.Find("tools");
  const parser::ToolSet known(tools == nullptr ? Json() : *tools, arguments.forward_unknown_tools);
  const Json* text = request.Find("text");
  const Json* chunks = request.Find("chunks");
  const bool streams = chunks != nullptr && chunks->is_array();
  if (!streams && (text == nullptr || !text->is_string())) {
    return InvalidArgument("text", "`text` must be a string, or `chunks` a list of strings");
  }
  parser::Collector out;
  std::unique_ptr<parser::OutputParser> parser;
  if (format.tools != nullptr || format.reasoning != nullptr) {
    parser = parser::OutputParser::Make(format, known, &out);
  }
  auto feed = [&](const std::string& piece) {
    if (parser == nullptr) {
      out.Content(piece);
    } else {
      parser->Feed(piece);
    }
  };
  if (streams) {
    for (const Json& chunk : chunks->as_array()) {
      if (!chunk.is_string()) return InvalidArgument("chunks", "`chunks` must hold strings");
      feed(chunk.as_string());
    }
  } else {
    feed(text->as_string());
  }
  if (parser != nullptr) parser->Finish();
  Write(out, w);
  return OkStatus();
}

bool AnswerLine(InputLine line, const ParseArguments& arguments, std::string* out) {
  JsonWriter w(out);
  w.BeginObject();
  auto request = Json::Parse(line.text);
  const bool is_object = request.ok() && request->is_object();
  const Json* id = request.ok() ? request->Find("id") : nullptr;
  w.Key("id").Raw(id == nullptr ? "null" : id->Dump());
  if (!is_object) {
    w.Key("error").String(NoObject(line, request.status()));
  } else if (Status status = ParseRequest(*request, arguments, &w); !status.ok()) {
    w.Key("error").String(MessageOf(status));
  }
  w.EndObject();
  return is_object;
}

}  // namespace

int ParseCommand(int argc, char** argv) {
  ParseArguments arguments;
  CLI::App app("Splits a model's output into content, reasoning and tool calls.", "portico parse");
  app.footer(kExamples);
  app.add_option("--tool-call-parser", arguments.tool_call_parser,
                 "Format of tool calls for requests that name none");
  app.add_option("--reasoning-parser", arguments.reasoning_parser,
                 "Format of reasoning for requests that name none");
  app.add_flag("--forward-unknown-tools", arguments.forward_unknown_tools,
               "Treat calls of tools that are not in `tools` as calls");
  AddJsonLines(&app, &arguments.jsonl);
  if (std::optional<int> status = ParseWords(&app, argc, argv)) return *status;
  if (!arguments.jsonl) {
    return Fail("parse", "--jsonl is required (--help shows an example)", kUsageError);
  }
  if (const Status known = CheckParserNames(arguments); !known.ok()) {
    return Fail("parse", MessageOf(known), kUsageError);
  }
  return AnswerEachLine("parse", stdin, stdout, [&](InputLine line, std::string* out) {
    return AnswerLine(line, arguments, out);
  });
}

}  // namespace portico
