// Any bytes as a model's output, through a parser that the first bytes choose: the result does not depend on how the
// text is cut, and a call that was finished has JSON arguments.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "parser/collector.h"
#include "parser/harmony/harmony_parser.h"
#include "parser/output_parser.h"
#include "text/json.h"
#include "text/utf8.h"

namespace portico::parser {
namespace {

Collector Parse(const OutputFormat& format, const ToolSet& tools, std::string_view text,
                uint8_t step) {
  Collector out;
  auto parser = OutputParser::Make(format, tools, &out);
  for (size_t at = 0; at < text.size();) {
    // Pieces of one to eight bytes, or all at once.
    size_t size = step == 0 ? text.size() : 1 + (at * step) % 8;
    parser->Feed(text.substr(at, size));
    at += size;
  }
  parser->Finish();
  return out;
}

// The same with Harmony's special tokens told apart.
Collector ParseTokens(const OutputFormat& format, const ToolSet& tools, std::string_view text) {
  Collector out;
  auto parser = OutputParser::Make(format, tools, &out);
  while (!text.empty()) {
    const MarkerSet::Match match = HarmonyMarkers().Find(text, /*final=*/true);
    if (match.begin > 0) parser->FeedPlain(text.substr(0, match.begin));
    text.remove_prefix(match.begin);
    if (match.kind != MarkerSet::Kind::kFound) continue;
    parser->FeedMarker(text.substr(0, match.length));
    text.remove_prefix(match.length);
  }
  parser->Finish();
  return out;
}

void Compare(const Collector& a, const Collector& b) {
  bool same =
      a.content == b.content && a.reasoning == b.reasoning && a.calls.size() == b.calls.size();
  for (size_t i = 0; same && i < a.calls.size(); ++i) {
    same = a.calls[i].name == b.calls[i].name && a.calls[i].arguments == b.calls[i].arguments &&
           a.calls[i].complete == b.calls[i].complete;
  }
  if (!same) std::abort();
}

}  // namespace
}  // namespace portico::parser

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace portico::parser;
  if (size < 4) return 0;
  OutputFormat format;
  const auto tools = ToolFamilyNames();
  const auto reasoning = ReasoningNames();
  format.tools = FindToolFamily(tools[data[0] % tools.size()]);
  if (data[1] % 4 != 0) format.reasoning = FindReasoning(reasoning[data[1] % reasoning.size()]);
  format.in_reasoning = (data[2] & 1) != 0;
  static const ToolSet* const kAny = new ToolSet();
  static const ToolSet* const kSome =
      new ToolSet(*portico::Json::Parse(R"([{"function":{"name":"f","parameters":{"properties":{
          "a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"object"},"d":{"type":["array","null"]}}}}}])"),
                  false);
  static const ToolSet* const kNoList = new ToolSet(portico::Json(), false);
  const ToolSet& known = (data[2] & 2) != 0 ? *kSome : (data[2] & 4) != 0 ? *kNoList : *kAny;
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const Collector whole = Parse(format, known, text, 0);
  Compare(whole, Parse(format, known, text, 1));
  Compare(whole, Parse(format, known, text, static_cast<uint8_t>(data[3] | 1)));
  Compare(whole, ParseTokens(format, known, text));
  if (!portico::IsValidUtf8(text)) return 0;
  for (const Collector::Call& call : whole.calls) {
    portico::Json::Limits deep{.max_depth = 100'000};
    if (call.complete && call.arguments.size() < 512 &&
        !portico::Json::Parse(call.arguments, deep).ok())
      std::abort();
  }
  return 0;
}
