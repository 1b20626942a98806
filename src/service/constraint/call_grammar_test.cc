// What the grammars of calls admit, drawn at random from their masks, is what the parsers read as calls of the schemas.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "grammar/compile/grammar_text.h"
#include "parser/collector.h"
#include "parser/output_parser.h"
#include "service/constraint/call_constraint.h"
#include "service/output/output_plan.h"

namespace portico {
namespace {

using Mode = ToolChoice::Mode;

constexpr char kDrawnTools[] =
    R"([{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object",)"
    R"("additionalProperties":false,"required":["s","n"],"properties":{)"
    R"("s":{"type":"string","description":"a text"},"n":{"type":"integer","minimum":0,"maximum":99},)"
    R"("e":{"enum":["red","green"]},"u":{"anyOf":[{"type":"string"},{"type":"null"}]},"y":{"type":"boolean"}}}}},)"
    R"({"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{)"
    R"("l":{"type":"array","items":{"type":"integer"}},)"
    R"("o":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}}}},)"
    R"({"type":"function","function":{"name":"h","parameters":{"type":"object"}}},)"
    R"({"type":"function","function":{"name":"i","parameters":{"type":"object","not":{"required":["q"]},)"
    R"("properties":{"s":{"type":"string"}}}}}])";

bool IsArgumentsOf(std::string_view name, const Json& arguments) {
  if (!arguments.is_object()) return false;
  const auto is = [&](const char* key, auto&& fits) {
    const Json* const value = arguments.Find(key);
    return value == nullptr || fits(*value);
  };
  const auto is_string = [](const Json& v) { return v.is_string(); };
  const auto is_integer = [](const Json& v) { return v.is_int() || v.is_big_int(); };
  if (name == "f") {
    return arguments.Find("s") != nullptr && arguments.Find("n") != nullptr && is("s", is_string) &&
           is("n",
              [](const Json& v) { return v.is_int() && v.as_int() >= 0 && v.as_int() < 100; }) &&
           is("e", [](const Json& v) { return v == Json("red") || v == Json("green"); }) &&
           is("u", [](const Json& v) { return v.is_string() || v.is_null(); }) &&
           is("y", [](const Json& v) { return v.is_bool(); });
  }
  if (name == "g") {
    return is("l",
              [&](const Json& v) {
                return v.is_array() &&
                       std::all_of(v.as_array().begin(), v.as_array().end(), is_integer);
              }) &&
           is("o", [](const Json& v) {
             const Json* const x = v.Find("x");
             return x != nullptr && x->is_string();
           });
  }
  return false;
}

bool IsCallOf(std::string_view name, const std::string& text) {
  if (name == "h" || name == "i") return text.starts_with('{');  // numbers in it may have any size
  const auto arguments = Json::Parse(text);
  return arguments.ok() && IsArgumentsOf(name, *arguments);
}

class NoEngine final : public Engine {
 public:
  NoEngine() { info_.can.compiles_grammars = true; }
  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest, TokenSink*) override { return OkStatus(); }
  void Abort(StreamId, ShardIndex) override {}
  EngineLoad load() const override { return {}; }
  void Stop() override {}

 private:
  EngineInfo info_;
};

// A model whose tokens are bytes, pieces of the family's form, and what of it is special.
class Writer {
 public:
  Writer(const std::string& family, const std::vector<std::string>& special) {
    for (int byte = 0; byte < 256; ++byte) Add(std::string(1, static_cast<char>(byte)));
    stop_ = Add("\xFF<stop>");
    vocabulary_.stops = {stop_};
    vocabulary_.special = {stop_};
    std::string added;
    for (const std::string& text : special) {
      const TokenId id = Add("\xFF" + text);
      vocabulary_.special.push_back(id);
      std::string quoted = Json(text).Dump();
      added += fmt::format(
          R"({}{{"id":{},"content":{},"special":true,"single_word":false,"lstrip":false,)"
          R"("rstrip":false,"normalized":false}})",
          added.empty() ? "" : ",", id, quoted);
    }
    model_.engine = std::make_unique<NoEngine>();
    std::string words;
    for (TokenId id = 0; id <= stop_; ++id) {
      words += fmt::format(R"({}"w{}":{})", id == 0 ? "" : ",", id, id);
    }
    model_.tokenizer = *Tokenizer::FromJson(
        R"({"version":"1.0","truncation":null,"padding":null,"normalizer":null,)"
        R"("post_processor":null,"decoder":null,"added_tokens":[)" +
        added +
        R"(],"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"w0","vocab":{)" +
        words + "}}}");
    OutputFormatSource source;
    source.tool_call_parser = family;
    source.reasoning_parser = family == "beam" ? "beam" : "none";
    model_.output = *MakeOutputFormat(source, *model_.tokenizer);
    if (const auto& form = model_.output.form) {
      for (const std::string& text :
           {form->section, form->end, form->section_end, form->separator, form->members.end}) {
        const bool plain = std::none_of(special.begin(), special.end(), [&](const auto& token) {
          return text.find(token) != std::string::npos;
        });
        if (text.size() > 1 && plain) Add(text);
      }
    }
    for (const char* piece : {"\"", "}", "]", "a<b", "12", "null", "]}", "</x>"}) Add(piece);
  }

  const ServingModel& model() const { return model_; }

  StatusOr<xgrammar::CompiledGrammar> Compile(const ChatRequest& request) const {
    PORTICO_ASSIGN_OR_RETURN(const std::shared_ptr<const Constraint> constraint,
                             ChatConstraint(model_, request, ReasoningStart::kNone, nullptr));
    if (constraint == nullptr) return InvalidArgument("", "there is no constraint");
    return grammar::CompileText({grammar::GrammarKind::kStructuralTag, constraint->text},
                                vocabulary_, grammar::MakeTokenizerInfo(vocabulary_));
  }

  // A text that the grammar takes, or "" where it came to no end. `begin`: it begins so.
  std::string Draw(const xgrammar::CompiledGrammar& grammar, std::mt19937* random,
                   std::string_view begin) const {
    xgrammar::GrammarMatcher matcher(grammar);
    std::vector<uint32_t> mask((vocabulary_.texts.size() + 31) / 32);
    auto shape = static_cast<int64_t>(mask.size());
    DLTensor tensor{};
    tensor.data = mask.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = {kDLInt, 32, 1};
    tensor.shape = &shape;
    std::string text;
    for (int step = 0; step < 1000; ++step) {
      if (!matcher.FillNextTokenBitmask(&tensor)) std::fill(mask.begin(), mask.end(), ~0u);
      std::vector<TokenId> pieces;
      std::vector<TokenId> bytes;
      std::vector<TokenId> others;  // bytes that only fixed text needs
      for (TokenId id = 0; id < static_cast<TokenId>(vocabulary_.texts.size()); ++id) {
        if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) == 0 || id == stop_) continue;
        const bool plain = id == '\n' || (id >= 0x20 && id < 0x7f);
        (id > 255 ? pieces : plain ? bytes : others).push_back(id);
      }
      if (pieces.empty() && bytes.empty()) bytes = others;
      TokenId next = -1;
      if (text.size() < begin.size()) {
        const std::string_view left = begin.substr(text.size());
        for (const auto* from : {&pieces, &bytes, &others}) {
          for (const TokenId id : *from) {
            if (next < 0 && left.starts_with(TextOf(id))) next = id;
          }
        }
        if (next < 0) return "";
      } else if ((mask[static_cast<size_t>(stop_) / 32] >> (stop_ % 32) & 1) != 0 &&
                 ((*random)() % 4 == 0 || (pieces.empty() && bytes.empty()))) {
        return text;
      } else {
        if (pieces.empty() && bytes.empty()) return "";
        const bool piece = bytes.empty() || (!pieces.empty() && (*random)() % 2 == 0);
        const std::vector<TokenId>& from = piece ? pieces : bytes;
        next = from[(*random)() % from.size()];
      }
      EXPECT_TRUE(matcher.AcceptToken(next));
      text += TextOf(next);
    }
    return "";
  }

  parser::Collector Read(const std::string& text, const ChatRequest& request) const {
    const auto plan = PlanOutput(model_.output, request, ReasoningStart::kNone, false);
    parser::Collector got;
    const auto reader = parser::OutputParser::Make(plan->format, plan->tools, &got);
    reader->Feed(text);
    reader->Finish();
    return got;
  }

 private:
  TokenId Add(std::string text) {
    vocabulary_.texts.push_back(std::move(text));
    return static_cast<TokenId>(vocabulary_.texts.size()) - 1;
  }
  std::string_view TextOf(TokenId id) const {
    std::string_view text = vocabulary_.texts[static_cast<size_t>(id)];
    if (text.starts_with('\xFF')) text.remove_prefix(1);
    return text;
  }

  grammar::Vocabulary vocabulary_;
  TokenId stop_ = -1;
  ServingModel model_;
};

struct DrawnFamily {
  const char* name;
  std::vector<std::string> special = {};
};

const std::vector<DrawnFamily>& DrawnFamilies() {
  static const auto* const kFamilies = new std::vector<DrawnFamily>{
      {"mimo"},
      {"hunyuan"},
      {"hunyuan", {"<tool_calls:a1>", "</tool_calls:a1>", "<tool_call:a1>", "</tool_call:a1>"}},
      {"step3"},
      {"step3", {"<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_sep｜>"}},
      {"minicpm5"},
      {"kimi_k3"},
      {"kimi_k3", {"<|open|>", "<|close|>", "<|sep|>"}},
      {"minimax-m3"},
      {"minimax-m3", {"]<]minimax[>["}},
      {"gemma4"},
      {"gemma4", {"<|tool_call>", "<tool_call|>", "<|\"|>"}},
      {"functiongemma"},
      {"muse"},
      {"beam"},
      {"beam",
       {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>",
        "<|constrain|>"}},
      {"inkling"},
      {"inkling", {"<|message_model|>", "<|content_invoke_tool_json|>", "<|end_message|>"}},
      {"qwen3_coder", {"<tool_call>", "</tool_call>"}},
      {"seed_oss", {"<seed:tool_call>", "</seed:tool_call>"}},
      {"glm45",
       {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}},
      {"minimax-m2", {"<minimax:tool_call>", "</minimax:tool_call>"}},
      {"deepseekv32", {"｜DSML｜"}},
      {"deepseekv41", {"｜DSML｜"}}};
  return *kFamilies;
}

ChatRequest Demand(bool required, bool parallel) {
  ChatRequest request;
  request.messages = Json(JsonArray{});
  request.tools = *Json::Parse(kDrawnTools);
  request.tool_choice.mode = required ? Mode::kRequired : Mode::kAuto;
  request.parallel_tool_calls = parallel;
  return request;
}

// Families without a form had a JSON list for required calls and a 400 for all else.
TEST(CallGrammars, WhatTheyAdmitIsReadAsCallsOfTheSchemas) {
  std::mt19937 random(1);
  for (const DrawnFamily& family : DrawnFamilies()) {
    const Writer writer(family.name, family.special);
    ASSERT_NE(writer.model().output.form, nullptr) << family.name;
    for (const bool parallel : {false, true}) {
      const ChatRequest request = Demand(true, parallel);
      const auto grammar = writer.Compile(request);
      ASSERT_TRUE(grammar.ok()) << family.name << ": " << grammar.status().message();
      size_t drawn = 0;
      for (int i = 0; i < 20; ++i) {
        const std::string text = writer.Draw(*grammar, &random, "");
        if (text.empty()) continue;
        ++drawn;
        const parser::Collector got = writer.Read(text, request);
        EXPECT_EQ(got.content, "") << family.name << ": " << text;
        ASSERT_FALSE(got.calls.empty()) << family.name << ": " << text;
        EXPECT_TRUE(parallel || got.calls.size() == 1) << family.name << ": " << text;
        for (const parser::Collector::Call& call : got.calls) {
          EXPECT_TRUE(call.complete) << family.name << ": " << text;
          EXPECT_TRUE(IsCallOf(call.name, call.arguments)) << family.name << ": " << text << "\n"
                                                           << call.name << call.arguments;
        }
      }
      EXPECT_GE(drawn, 2u) << family.name;
    }
  }
}

TEST(CallGrammars, OneCallAtMostComesBehindText) {
  std::mt19937 random(2);
  for (const DrawnFamily& family : DrawnFamilies()) {
    if (std::string_view(family.name) == "beam") continue;  // has messages around its text
    const Writer writer(family.name, family.special);
    const ChatRequest request = Demand(false, false);
    const auto grammar = writer.Compile(request);
    ASSERT_TRUE(grammar.ok()) << family.name << ": " << grammar.status().message();
    const std::string begin = "Well: " + writer.model().output.form->begins;
    size_t drawn = 0;
    for (int i = 0; i < 10; ++i) {
      std::string text = writer.Draw(*grammar, &random, begin);
      if (text.empty()) continue;
      ++drawn;
      // The header of a message to a tool is free text.
      if (std::string_view(family.name) == "inkling") text.insert(6, "<|message_model|>");
      const parser::Collector got = writer.Read(text, request);
      EXPECT_EQ(absl::StripAsciiWhitespace(got.content), "Well:") << family.name << ": " << text;
      ASSERT_EQ(got.calls.size(), 1u) << family.name << ": " << text;
      EXPECT_TRUE(IsCallOf(got.calls[0].name, got.calls[0].arguments)) << text;
    }
    EXPECT_GE(drawn, 1u) << family.name;
  }
}

TEST(CallGrammars, StrictToolsHoldWhatTheFormCanSayOrAreRefused) {
  const Writer writer("gemma4", {});
  const auto compile = [&](const char* property) {
    ChatRequest request;
    request.tool_choice.mode = Mode::kAuto;
    request.tools = *Json::Parse(fmt::format(
        R"([{{"type":"function","function":{{"name":"f","strict":true,"parameters":{{"type":"object","properties":{{"a":{}}}}}}}}}])",
        property));
    return writer.Compile(request).status();
  };
  for (const char* good :
       {R"({"type":"string"})", R"({"enum":["a","b"]})", R"({"type":["string","null"]})",
        R"({"type":"array","items":{"type":"number"},"minItems":1,"maxItems":3})",
        R"({"type":"object","properties":{"b":{"type":"integer","minimum":3}},"required":["b"]})",
        R"({"anyOf":[{"type":"integer"},{"type":"null"}]})"}) {
    EXPECT_TRUE(compile(good).ok()) << good << compile(good).message();
  }
  for (const char* bad :
       {R"({"type":"string","minLength":3})", R"({"type":"string","format":"date"})",
        R"({"type":"array","uniqueItems":true})", R"({"enum":["a<|\"|>"]})",
        R"({"type":"object","maxProperties":1})", R"({"type":"integer","multipleOf":0.5})"}) {
    EXPECT_FALSE(compile(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace portico
