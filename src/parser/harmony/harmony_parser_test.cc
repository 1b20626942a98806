#include "parser/harmony/harmony_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "parser/collector.h"
#include "parser/output_parser.h"

namespace portico::parser {
namespace {

OutputFormat Harmony() {
  OutputFormat format;
  format.tools = FindToolFamily("gpt-oss");
  format.reasoning = FindReasoning("gpt-oss");
  return format;
}

const ToolSet kNoTools;  // it outlives the parsers

std::string Said(const Collector& out) {
  std::string said = out.reasoning + "|" + out.content;
  for (const Collector::Call& call : out.calls) {
    said += "|" + call.name + call.arguments + (call.complete ? "" : "…");
  }
  return said;
}

Collector AsText(std::string_view text) {
  Collector out;
  auto parser = OutputParser::Make(Harmony(), kNoTools, &out);
  parser->Feed(text);
  parser->Finish();
  return out;
}

// Every marker of the text as a special token, other text in pieces of so many bytes.
Collector AsTokens(std::string_view text, size_t step) {
  Collector out;
  auto parser = OutputParser::Make(Harmony(), kNoTools, &out);
  while (!text.empty()) {
    const MarkerSet::Match match = HarmonyMarkers().Find(text, /*final=*/true);
    for (size_t at = 0; at < match.begin; at += step) {
      parser->FeedPlain(text.substr(at, std::min(step, match.begin - at)));
    }
    text.remove_prefix(match.begin);
    if (match.kind != MarkerSet::Kind::kFound) continue;
    parser->FeedMarker(text.substr(0, match.length));
    text.remove_prefix(match.length);
  }
  parser->Finish();
  return out;
}

TEST(HarmonyParser, TokensAndTextGiveOneResult) {
  for (const std::string_view text :
       {"<|channel|>analysis<|message|>Hm "
        "<|e<|end|><|start|>assistant<|channel|>final<|message|>Yes<|return|>",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\":1}<|call|>",
        " to=functions.f<|channel|>analysis stray<|message|>{\"a\":[1,2", "assistant<|channel|>",
        "plain text", "<|start|><|start|><|message|><|message|><|end|><|end|>text",
        "<|channel|>final<|message|>a<|constrain|>b"}) {
    const std::string said = Said(AsText(text));
    for (const size_t step : {size_t{1}, size_t{3}, size_t{100}}) {
      EXPECT_EQ(Said(AsTokens(text, step)), said) << text << " in steps of " << step;
    }
  }
}

// A model that wrote a text about this format, or a file with it, ended its own call.
TEST(HarmonyParser, TextThatSpellsASpecialTokenIsTextWhereTokensAreKnown) {
  Collector out;
  auto parser = OutputParser::Make(Harmony(), kNoTools, &out);
  const auto marker = [&](std::string_view text) { parser->FeedMarker(text); };
  marker("<|channel|>");
  parser->FeedPlain("commentary to=functions.write ");
  marker("<|constrain|>");
  parser->FeedPlain("json");
  marker("<|message|>");
  parser->FeedPlain(R"({"text":"a <|end|><|start|> b"})");
  marker("<|call|>");
  parser->Finish();
  EXPECT_EQ(Said(out), R"(||write{"text":"a <|end|><|start|> b"})");
}

}  // namespace
}  // namespace portico::parser
