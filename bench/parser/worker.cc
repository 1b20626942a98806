// Reads lines {"tool_call_parser", "reasoning_parser", "in_reasoning", "tools", "chunks", "passes"}, takes the chunks through the
// parsers so often and writes {"ns", "content", "reasoning", "names", "arguments"}: processor time of one pass, sizes and names.
#include <time.h>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "parser/output_parser.h"
#include "text/json.h"

namespace portico::parser {
namespace {

// As a server does with what comes: it is copied.
class Counts final : public Sink {
 public:
  void Content(std::string_view text) override { Take(text, &content); }
  void Reasoning(std::string_view text) override { Take(text, &reasoning); }
  void BeginCall(std::string_view name, std::string_view) override { names.emplace_back(name); }
  void Arguments(std::string_view json) override { Take(json, &arguments); }
  void EndCall(bool) override {}

  size_t content = 0;
  size_t reasoning = 0;
  size_t arguments = 0;
  std::vector<std::string> names;

 private:
  void Take(std::string_view text, size_t* size) {
    copy_.assign(text);
    *size += copy_.size();
  }
  std::string copy_;
};

int64_t Now() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

std::string Answer(const Json& request) {
  OutputFormat format;
  format.tools = FindToolFamily(request.GetString("tool_call_parser"));
  format.reasoning = FindReasoning(request.GetString("reasoning_parser"));
  format.in_reasoning = request.GetBool("in_reasoning", false);
  if (format.tools == nullptr && format.reasoning == nullptr) return R"({"error":"no parser"})";
  const ToolSet tools(*request.Find("tools"), false);
  std::vector<std::string> chunks;
  for (const Json& chunk : request.Find("chunks")->as_array()) chunks.push_back(chunk.as_string());
  const int64_t passes = request.GetInt("passes", 1);
  Counts last;
  const int64_t start = Now();
  for (int64_t i = 0; i < passes; ++i) {
    Counts counts;
    auto parser = OutputParser::Make(format, tools, &counts);
    for (const std::string& chunk : chunks) parser->Feed(chunk);
    parser->Finish();
    last = std::move(counts);
  }
  const int64_t ns = (Now() - start) / passes;
  JsonArray names;
  for (const std::string& name : last.names) names.push_back(Json(name));
  return Json(JsonObject{{"ns", Json(ns)},
                         {"content", Json(static_cast<int64_t>(last.content))},
                         {"reasoning", Json(static_cast<int64_t>(last.reasoning))},
                         {"arguments", Json(static_cast<int64_t>(last.arguments))},
                         {"names", Json(std::move(names))}})
      .Dump();
}

}  // namespace
}  // namespace portico::parser

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    auto request = portico::Json::Parse(line);
    if (!request.ok()) return 1;
    std::cout << portico::parser::Answer(*request) << std::endl;
  }
}
