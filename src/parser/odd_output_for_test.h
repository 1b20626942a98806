// Tests of outputs that are given whole, at every split in two, and byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "parser/collector.h"
#include "parser/output_parser.h"

namespace portico::parser {

// What a parser makes of a text.
struct OddOutput {
  std::string_view family;
  std::string_view text;
  std::string_view expected;  // content|name(arguments)…; `…` behind an incomplete call
};

inline std::string ReadOdd(const OddOutput& odd, const ToolSet& tools,
                           const std::vector<std::string_view>& pieces) {
  OutputFormat format;
  format.tools = FindToolFamily(odd.family);
  if (format.tools->harmony) format.reasoning = FindReasoning(odd.family);
  Collector out;
  auto parser = OutputParser::Make(format, tools, &out);
  for (const std::string_view piece : pieces) parser->Feed(piece);
  parser->Finish();
  std::string text = out.content + "|";
  if (!out.reasoning.empty()) text += out.reasoning + "|";
  for (const Collector::Call& call : out.calls) {
    text += call.name + "(" + call.arguments + ")" + (call.complete ? "" : "…");
  }
  return text;
}

inline void ExpectAtEverySplit(const std::vector<OddOutput>& outputs,
                               const ToolSet& tools = ToolSet()) {
  for (const OddOutput& odd : outputs) {
    SCOPED_TRACE(std::string(odd.family) + ": " + std::string(odd.text));
    const std::string_view text = odd.text;
    EXPECT_EQ(ReadOdd(odd, tools, {text}), odd.expected);
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      bytes.push_back(text.substr(i, 1));
      EXPECT_EQ(ReadOdd(odd, tools, {text.substr(0, i), text.substr(i)}), odd.expected)
          << "split at " << i;
    }
    EXPECT_EQ(ReadOdd(odd, tools, bytes), odd.expected) << "byte by byte";
  }
}

}  // namespace portico::parser
