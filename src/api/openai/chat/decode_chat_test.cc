#include "api/openai/chat/decode_chat.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "api/common/field_reader.h"

namespace portico::api::openai {
namespace {

StatusOr<ChatRequest> Decode(const std::string& body, std::vector<std::string>* unknown = nullptr) {
  static simdjson::dom::parser parser;
  return DecodeChat(body, parser, unknown);
}

// A good request with further members, each after a comma.
StatusOr<ChatRequest> With(const std::string& members) {
  return Decode(R"({"messages":[{"role":"user","content":"Hi"}])" +
                (members.empty() ? "" : "," + members) + "}");
}

TEST(DecodeChat, FillsDefaultsWhereTheRequestIsSilent) {
  auto request = With("");
  ASSERT_TRUE(request.ok());
  const GenerationOptions& options = request->options;
  EXPECT_FALSE(options.temperature || options.top_p || options.top_k || options.min_p ||
               options.frequency_penalty || options.presence_penalty ||
               options.repetition_penalty || options.seed || options.max_tokens);
  EXPECT_EQ(options.n, 1);
  EXPECT_EQ(options.best_of, 1);
  EXPECT_FALSE(options.stream || options.logprobs || options.include_usage);
  EXPECT_TRUE(options.skip_special_tokens);
  EXPECT_EQ(request->tool_choice.mode, ToolChoice::Mode::kNone);
  EXPECT_TRUE(request->add_generation_prompt);
  EXPECT_TRUE(request->tools.is_null());
  EXPECT_TRUE(request->chat_template_kwargs.is_null());
  EXPECT_EQ(request->messages.Dump(), R"([{"role":"user","content":"Hi"}])");
}

TEST(DecodeChat, ReadsEveryField) {
  auto request = With(R"("model":"m","temperature":0,"top_p":1,"top_k":-1,"min_p":0.25,
      "frequency_penalty":-2,"presence_penalty":2,"repetition_penalty":1.5,"seed":-7,
      "logit_bias":{"5":-100,"6":1,"5":2.5},"max_tokens":9,"min_tokens":3,"stop":["a","é"],
      "stop_token_ids":[1,null,2],"ignore_eos":true,"no_stop_trim":true,"skip_special_tokens":false,
      "n":128,"logprobs":true,"top_logprobs":20,"stream":true,
      "stream_options":{"include_usage":true,"continuous_usage_stats":true,"include_obfuscation":false},
      "return_token_ids":true,"rid":"r","user":"u","add_generation_prompt":false,
      "documents":[{"text":"d"}],"metadata":{"a":"b"},"separate_reasoning":false,"stream_reasoning":true)");
  ASSERT_TRUE(request.ok()) << request.status();
  const GenerationOptions& options = request->options;
  EXPECT_EQ(options.model, "m");
  EXPECT_EQ(options.temperature, 0.0f);
  EXPECT_EQ(options.top_p, 1.0f);
  EXPECT_EQ(options.top_k, -1);
  EXPECT_EQ(options.min_p, 0.25f);
  EXPECT_EQ(options.frequency_penalty, -2.0f);
  EXPECT_EQ(options.presence_penalty, 2.0f);
  EXPECT_EQ(options.repetition_penalty, 1.5f);
  EXPECT_EQ(options.seed, -7);
  EXPECT_EQ(options.logit_bias, (std::vector<std::pair<TokenId, float>>{{5, 2.5f}, {6, 1.0f}}));
  EXPECT_EQ(options.max_tokens, 9);
  EXPECT_EQ(options.min_tokens, 3);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "é"}));
  EXPECT_EQ(options.stop_token_ids, (std::vector<TokenId>{1, 2}));
  EXPECT_TRUE(options.ignore_eos && options.no_stop_trim && !options.skip_special_tokens);
  EXPECT_EQ(options.n, 128);
  EXPECT_EQ(options.best_of, 128);
  EXPECT_TRUE(options.logprobs && options.stream && options.include_usage);
  EXPECT_TRUE(options.continuous_usage_stats && options.return_token_ids);
  EXPECT_EQ(options.top_logprobs, 20);
  EXPECT_EQ(options.rid, "r");
  EXPECT_EQ(options.user, "u");
  EXPECT_FALSE(request->add_generation_prompt);
  EXPECT_EQ(request->documents.Dump(), R"([{"text":"d"}])");
}

TEST(DecodeChat, NullIsTheSameAsAbsent) {
  auto request = With(
      R"("temperature":null,"n":null,"stop":null,"max_tokens":null,"stream":null,"tools":null,
      "stream_options":null,"logit_bias":null,"seed":null,"response_format":null,"regex":null,
      "top_logprobs":null,"chat_template_kwargs":null,"reasoning_effort":null,"audio":null)");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->options.n, 1);
}

TEST(DecodeChat, TheLastOfDoubledFieldsCounts) {
  auto request = With(R"("n":"x","n":2,"seed":1,"seed":null)");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->options.n, 2);
  EXPECT_FALSE(request->options.seed);
}

TEST(DecodeChat, RemembersWhichNameTheAnswersLengthHad) {
  EXPECT_EQ(With(R"("max_tokens":5)")->options.max_tokens_field, "max_tokens");
  EXPECT_EQ(With(R"("max_tokens":5,"max_completion_tokens":7)")->options.max_tokens_field,
            "max_completion_tokens");
}

TEST(DecodeChat, MaxCompletionTokensWins) {
  EXPECT_EQ(With(R"("max_tokens":5,"max_completion_tokens":7)")->options.max_tokens, 7);
  EXPECT_EQ(With(R"("max_completion_tokens":7,"max_tokens":5)")->options.max_tokens, 7);
}

TEST(DecodeChat, TinyAndHugeNumbersStayInsideOpenRanges) {
  auto request = With(R"("top_p":1e-300,"temperature":1e300,"repetition_penalty":5e-324)");
  ASSERT_TRUE(request.ok());
  EXPECT_GT(*request->options.top_p, 0.0f);
  EXPECT_GT(*request->options.repetition_penalty, 0.0f);
  EXPECT_LT(*request->options.temperature, std::numeric_limits<float>::infinity());
}

struct WrongField {
  const char* param;
  std::vector<const char*> values;
};

// Wrong types and values out of range, by field.
const WrongField kWrong[] = {
    {"temperature", {"\"7\"", "-0.1", "true", "[]", "{}"}},
    {"top_p", {"0", "1.1", "-1", "\"x\"", "false"}},
    {"top_k", {"0", "-2", "1.5", "2.0", "\"3\"", "3000000000", "true"}},
    {"min_p", {"-0.1", "1.5", "\"0\""}},
    {"frequency_penalty", {"2.5", "-2.5", "\"0\"", "[0]"}},
    {"presence_penalty", {"2.0001", "-2.5", "\"0\""}},
    {"repetition_penalty", {"0", "-1", "2.1", "\"1\""}},
    {"seed", {"1.5", "\"1\"", "9223372036854775808", "true"}},
    {"n", {"0", "129", "1.5", "\"2\"", "-1", "true", "18446744073709551615"}},
    {"max_tokens", {"0", "-1", "1.5", "\"1\"", "9223372036854775808", "true"}},
    {"max_completion_tokens", {"0", "-1", "2.0", "\"1\""}},
    {"min_tokens", {"-1", "1.5", "\"1\""}},
    {"stop", {"7", "{}", "[7]", "[null]", "\"\"", "[\"a\",\"\"]", "true"}},
    {"stop_token_ids", {"7", "[\"1\"]", "[1.5]", "[-1]", "[2147483648]"}},
    {"logit_bias",
     {"[]", "{\"x\":1}", "{\"1\":101}", "{\"1\":-100.5}", "{\"1\":\"1\"}", "{\"-1\":1}",
      "{\"1.5\":1}", "{\"\":1}", "{\"99999999999\":1}"}},
    {"ignore_eos", {"1", "\"yes\""}},
    {"no_stop_trim", {"0", "\"no\""}},
    {"skip_special_tokens", {"1", "\"true\""}},
    {"stream", {"1", "\"yes\"", "[]"}},
    {"stream_options", {"7", "[]", "{\"include_usage\":1}", "{}"}},
    {"logprobs", {"1", "\"true\"", "5"}},
    {"top_logprobs", {"3", "-1", "21", "1.5", "\"2\""}},
    {"return_token_ids", {"1", "\"x\""}},
    {"rid", {"7", "[\"a\"]"}},
    {"model", {"7", "[]"}},
    {"user", {"7", "{}"}},
    {"metadata", {"7", "\"x\"", "[]"}},
    {"prompt_cache_key", {"7"}},
    {"safety_identifier", {"7"}},
    {"add_generation_prompt", {"1", "\"x\""}},
    {"continue_final_message", {"1", "\"x\"", "true"}},
    {"separate_reasoning", {"1", "\"x\""}},
    {"stream_reasoning", {"1"}},
    {"chat_template_kwargs", {"7", "[]", "\"x\""}},
    {"documents", {"7", "{}", "[7]"}},
    {"tools",
     {"7", "{}", "[7]", "[{}]", "[{\"type\":\"function\"}]",
      "[{\"type\":\"function\",\"function\":{}}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"\"}}]",
      "[{\"type\":\"custom\",\"function\":{\"name\":\"f\"}}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":7}}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":7}}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"strict\":7}}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},"
      "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"}},
    {"tool_choice",
     {"\"required\"", "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}", "\"x\"", "7"}},
    {"reasoning_effort", {"true", "1", "0.995", "-0.1", "\"extreme\"", "[]"}},
    {"reasoning",
     {"7", "\"high\"", "{\"effort\":\"x\"}", "{\"enabled\":1}", "{\"max_tokens\":5}",
      "{\"exclude\":true}"}},
    {"response_format",
     {"7", "{}", "{\"type\":\"xml\"}",
      "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\"}}"}},
    {"regex", {"7"}},
    {"ebnf", {"\"\"", "{}"}},
    {"json_schema", {"\"\"", "7"}},
    {"structural_tag", {"\" \"", "7"}},
    {"guided_choice", {"[]", "[7]", "\"x\""}},
    {"structured_outputs", {"{}", "7", "{\"xml\":1}", "{\"json_object\":false}"}},
    // What is not supported yet.
    {"audio", {"{\"voice\":\"x\"}"}},
    {"modalities", {"[\"text\",\"audio\"]", "7"}},
    {"audios", {"[\"a.wav\"]", "\"a.wav\""}},
    {"images", {"[\"a.png\"]"}},
    {"videos", {"[\"a.mp4\"]"}},
    {"stage_params", {"{\"talker\":{}}"}},
    {"stage_sampling", {"{\"thinker\":{\"top_k\":1}}", "7"}},
    {"talker_temperature", {"0.5"}},
    {"talker_max_new_tokens", {"1"}},
    {"video_fps", {"2"}},
    {"prediction", {"{\"type\":\"content\",\"content\":\"x\"}"}},
    {"web_search_options", {"{}"}},
    {"functions", {"7", "[7]", "[{\"name\":\"\"}]", "[{\"name\":\"f\"},{\"name\":\"f\"}]"}},
    {"function_call", {"{\"name\":\"f\"}"}},
    {"store", {"true", "1"}},
    {"service_tier", {"\"flex\"", "7"}},
    {"verbosity", {"\"low\"", "7"}},
    {"parallel_tool_calls", {"1", "\"no\""}},
    {"sampling_params", {"{\"temperature\":0}", "7", "[]"}},
    {"stop_regex", {"7", "[7]", "\"\""}},
    {"lora_path", {"7", "[\"a\",\"b\"]"}},
    {"session_params", {"{\"rid\":\"r\"}", "7", "{\"id\":7}", "{\"id\":\"a\",\"other\":1}"}},
    {"session_id", {"\"x\""}},
    {"custom_logit_processor", {"7"}},
    {"custom_params", {"7", "[1]"}},
    {"input_ids", {"[1]", "[]"}},
    {"return_hidden_states", {"7", "\"first\""}},
    {"return_routed_experts", {"7"}},
    {"return_prompt_token_ids", {"true"}},
    {"return_meta_info", {"true"}},
    {"bootstrap_host", {"7"}},
    {"bootstrap_port", {"0", "65536"}},
    {"bootstrap_room", {"-1"}},
    {"data_parallel_rank", {"-1", "\"0\""}},
    {"priority", {"1.5"}},
    {"extra_key", {"7"}},
    {"cache_salt", {"7"}},
    {"best_of", {"2", "\"1\""}},
    {"echo", {"true", "1"}},
    {"prompt", {"\"x\"", "[]"}},
    {"thinking_budget", {"100"}},
    {"thinking_token_budget", {"100", "0"}},
};

TEST(DecodeChat, AWrongFieldIsNamed) {
  for (const WrongField& field : kWrong) {
    for (const char* value : field.values) {
      std::string members = fmt::format("\"{}\":{}", field.param, value);
      auto request = With(members);
      ASSERT_FALSE(request.ok()) << members;
      EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument) << members;
      EXPECT_EQ(FieldOf(request.status()), field.param) << members;
      EXPECT_NE(MessageOf(request.status()).find(field.param), std::string_view::npos) << members;
    }
  }
}

TEST(DecodeChat, DefaultsOfFieldsThatCannotBeHonouredAreAccepted) {
  for (const char* members : {R"("response_format":{"type":"text"})",
                              R"("response_format":{ "type" : "text" })",
                              R"("modalities":["text"])",
                              R"("audios":[])",
                              R"("images":null)",
                              R"("stage_sampling":{})",
                              R"("talker_top_k":null)",
                              R"("store":false)",
                              R"("service_tier":"auto")",
                              R"("service_tier":"default")",
                              R"("verbosity":"medium")",
                              R"("parallel_tool_calls":true)",
                              R"("functions":[])",
                              R"("function_call":"none")",
                              R"("stop_regex":[])",
                              R"("return_hidden_states":false)",
                              R"("best_of":1)",
                              R"("priority":0)",
                              R"("repeat_penalty":1.00)",
                              R"("typical_p":1)",
                              R"("mirostat":0.0)",
                              R"("dry_multiplier":-0.0)",
                              R"("top_n_sigma":-1.0)",
                              R"("n_predict":-1)",
                              R"("stream_interval":1e0)",
                              R"("routed_dp_rank":0)",
                              R"("custom_labels":{ })",
                              R"("watermark":{"enabled": false})",
                              R"("session_id":"")",
                              R"("cache_salt":"")",
                              R"("lora_path":[null,""])",
                              R"("lora_path":[[null],[""]])",
                              R"("return_hidden_states":[false,null])",
                              R"("session_params":{})",
                              R"("custom_params":{})",
                              R"("sampling_params":{})",
                              R"("echo":false)",
                              R"("stop":[])",
                              R"("tools":[])",
                              R"("tool_choice":"auto")",
                              R"("tool_choice":"none")",
                              R"("top_logprobs":0)",
                              R"("reasoning":{})",
                              R"("separate_reasoning":true)",
                              R"("prompt_cache_key":"k")"}) {
    EXPECT_TRUE(With(members).ok()) << members << With(members).status();
  }
}

TEST(DecodeChat, WhatOnlySomeEnginesHonourIsCarried) {
  const auto request = With(
      R"("lora_path":"a","session_params":{"id":"s","rid":"r","offset":-2},"stop_regex":["x+"],)"
      R"("custom_params":{"k":[1]},"data_parallel_rank":1,"priority":-3,"extra_key":["e"],)"
      R"("return_hidden_states":"last")");
  ASSERT_TRUE(request.ok()) << request.status();
  const RequestExtras& extras = *request->options.extras;
  EXPECT_EQ(extras.lora_path, "a");
  EXPECT_EQ(extras.session->id, "s");
  EXPECT_EQ(extras.session->rid, "r");
  EXPECT_EQ(extras.session->offset, -2);
  EXPECT_EQ(extras.stop_regex, std::vector<std::string>{"x+"});
  EXPECT_EQ(extras.custom_params, R"({"k":[1]})");
  EXPECT_EQ(extras.data_parallel_rank, 1);
  EXPECT_EQ(extras.extra_key, "e");
  EXPECT_TRUE(extras.return_hidden_states && extras.only_last_hidden_state);
  EXPECT_EQ(request->options.priority, -3);
  EXPECT_EQ(With(R"("lora_path":null,"extra_key":"","stop_regex":[])")->options.extras, nullptr);
}

TEST(DecodeChat, MessagesSayWhatCameInstead) {
  EXPECT_EQ(MessageOf(With(R"("temperature":"7")").status()),
            "temperature must be a number of at least 0, got \"7\"");
  EXPECT_EQ(MessageOf(With(R"("n":129)").status()), "n must be an integer from 1 to 128, got 129");
  EXPECT_EQ(MessageOf(With(R"("top_p":[1])").status()),
            "top_p must be a number above 0 and at most 1, got a list");
  EXPECT_EQ(MessageOf(With(R"("prediction":{})").status()),
            "prediction is not supported by this server: leave it out");
  EXPECT_EQ(MessageOf(With(R"("grammar":"root ::= [ab]")").status()),
            "grammar is not supported by this server: its name here is ebnf");
  EXPECT_EQ(MessageOf(With(R"("prompt":"x")").status()),
            "prompt is a field of completions; here it is messages");
  auto cut = With("\"stream\":\"" + std::string(5000, 'x') + "\"");
  EXPECT_LT(MessageOf(cut.status()).size(), 120u);
}

TEST(DecodeChat, TheLengthOfAnAnswerIsTheContextsToLimit) {
  EXPECT_EQ(With(R"("max_tokens":3000000000)")->options.max_tokens, 3000000000);
  EXPECT_EQ(With(R"("max_completion_tokens":9223372036854775807)")->options.max_tokens, INT64_MAX);
  EXPECT_EQ(MessageOf(With(R"("max_tokens":0)").status()),
            "max_tokens must be an integer of at least 1, got 0");
  EXPECT_EQ(MessageOf(With(R"("max_completion_tokens":9223372036854775808)").status()),
            "max_completion_tokens must be an integer from 1 to 9223372036854775807, got "
            "9223372036854775808");
}

TEST(DecodeChat, ANumberThatIsTooLargeHearsItsRange) {
  EXPECT_EQ(MessageOf(With(R"("min_tokens":3000000000)").status()),
            "min_tokens must be an integer from 0 to 2147483647, got 3000000000");
  EXPECT_EQ(MessageOf(With(R"("top_k":3000000000)").status()),
            "top_k must be -1 (all tokens) or an integer from 1 to 2147483647, got 3000000000");
  EXPECT_EQ(MessageOf(With(R"("stop_token_ids":[3000000000])").status()),
            "stop_token_ids[0] must be a token id (an integer from 0 to 2147483647), got "
            "3000000000");
}

TEST(DecodeChat, StopTakesAStringOrAtMost32) {
  EXPECT_EQ(With(R"("stop":"\n")")->options.stop, std::vector<std::string>{"\n"});
  auto list = [](int count) {
    std::string text = "\"stop\":[";
    for (int i = 0; i < count; ++i) text += i ? ",\"x\"" : "\"x\"";
    return text + "]";
  };
  EXPECT_EQ(With(list(32))->options.stop.size(), 32u);
  EXPECT_EQ(FieldOf(With(list(33)).status()), "stop");
}

TEST(DecodeChat, StreamOptionsNeedAStream) {
  EXPECT_TRUE(With(R"("stream":true,"stream_options":{})").ok());
  EXPECT_EQ(FieldOf(With(R"("stream":false,"stream_options":{"include_usage":true})").status()),
            "stream_options");
  EXPECT_EQ(FieldOf(With(R"("stream":true,"stream_options":{"include_usage":"x"})").status()),
            "stream_options");
}

TEST(DecodeChat, WhatIsNoJsonObjectNamesNoField) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[1]"), std::string("\"x\""),
        std::string("nul"), std::string("{\"messages\": NaN}"), std::string("{\"a\": 1e999}"),
        std::string("{\"messages\": \"\xff\"}"), std::string("{} x"), std::string("\0", 1),
        std::string(100000, '['), std::string("{\"a\":\"\\ud800\"}"), std::string("7")}) {
    auto request = Decode(body);
    ASSERT_FALSE(request.ok()) << body.substr(0, 40);
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(request.status()), "") << body.substr(0, 40);
    EXPECT_FALSE(MessageOf(request.status()).empty());
  }
}

std::string Nested(size_t levels) {
  std::string body = R"({"messages":[{"role":"user","content":"Hi"}],"metadata":{"a":)";
  return body + std::string(levels, '[') + std::string(levels, ']') + "}}";
}

TEST(DecodeChat, DeepNestingIsRefusedAndTheParserGoesOn) {
  EXPECT_TRUE(Decode(Nested(kMaxBodyDepth - 4)).ok());
  auto deep = Decode(Nested(kMaxBodyDepth));
  EXPECT_NE(MessageOf(deep.status()).find("nested too deeply"), std::string_view::npos);
  std::string open;
  for (int i = 0; i < 50000; ++i) open += "{\"a\":";
  EXPECT_FALSE(Decode(open).ok());
  EXPECT_TRUE(With("").ok());
}

TEST(DecodeChat, AHugeBodyLeavesNoHugeParser) {
  simdjson::dom::parser parser;
  std::string body =
      R"({"messages":[{"role":"user","content":")" + std::string(3 << 20, 'x') + "\"}]}";
  ASSERT_TRUE(DecodeChat(body, parser).ok());
  EXPECT_LT(parser.capacity(), size_t{1} << 20);
  EXPECT_TRUE(DecodeChat(R"({"messages":[{"role":"user","content":"Hi"}]})", parser).ok());
}

TEST(DecodeChat, UnknownFieldsAreIgnoredAndListed) {
  std::vector<std::string> unknown;
  auto request = Decode(
      R"({"foo":1,"messages":[{"role":"user","content":"Hi"}],"Bar":{"temperature":"x"},"n":1})",
      &unknown);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(unknown, (std::vector<std::string>{"Bar", "foo"}));
  std::string many = R"({"messages":[{"role":"user","content":"Hi"}])";
  for (int i = 0; i < 1000; ++i) many += ",\"x" + std::to_string(i) + "\":1";
  unknown.clear();
  ASSERT_TRUE(Decode(many + "}", &unknown).ok());
  EXPECT_LE(unknown.size(), 16u);
}

TEST(DecodeChat, ToolsGoToTheTemplate) {
  auto request = With(R"("tools":[{"type":"function","function":{"name":"f","parameters":{}}}])");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->tool_choice.mode, ToolChoice::Mode::kAuto);
  EXPECT_EQ(request->tools.Dump(),
            R"([{"type":"function","function":{"name":"f","parameters":{}}}])");
  request = With(R"("tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}])");
  EXPECT_EQ(request->tool_choice.mode, ToolChoice::Mode::kNone);
  request = With(R"("functions":[{"name":"f"}],"function_call":{"name":"f"})");
  EXPECT_EQ(request->tool_choice.mode, ToolChoice::Mode::kRequired);
  EXPECT_EQ(request->tool_choice.name, "f");
  EXPECT_TRUE(request->options.legacy_functions);
  EXPECT_EQ(FieldOf(With(R"("functions":[{"name":"f"}],"tools":[{"type":"function",)"
                         R"("function":{"name":"g"}}])")
                        .status()),
            "functions");
  EXPECT_EQ(FieldOf(With(R"("tools":[{"type":"function","function":{"name":"f"}}],)"
                         R"("function_call":"none","tool_choice":"auto")")
                        .status()),
            "function_call");
  request = With(R"("tools":[{"type":"function","function":{"name":"f"}},
      {"type":"function","function":{"name":"g"}}],"tool_choice":{"type":"allowed_tools",
      "allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}})");
  EXPECT_EQ(request->tool_choice.allowed, std::vector<std::string>{"g"});
}

// It was taken in any type, without effect.
TEST(DecodeChat, RequireReasoningIsNoFieldOfAChat) {
  EXPECT_TRUE(With(R"("require_reasoning":false)").ok());
  for (const char* value : {"true", "1", R"("yes")"}) {
    EXPECT_EQ(FieldOf(With(fmt::format(R"("require_reasoning":{})", value)).status()),
              "require_reasoning")
        << value;
  }
}

TEST(DecodeChat, ReasoningFieldsBecomeTemplateVariables) {
  struct Case {
    const char* members;
    const char* kwargs;
  };
  for (
      const Case& c : {
          Case{R"("reasoning_effort":"high")", R"({"reasoning_effort":"high"})"},
          Case{R"("reasoning_effort":0.5)", R"({"reasoning_effort":0.5})"},
          Case{R"("reasoning_effort":"none")",
               R"({"reasoning_effort":"none","thinking":false,"enable_thinking":false})"},
          Case{R"("reasoning":{"effort":"low"},"reasoning_effort":"high")",
               R"({"reasoning_effort":"low"})"},
          Case{R"("reasoning":{"enabled":true})", R"({"thinking":true,"enable_thinking":true})"},
          Case{
              R"("reasoning":{"enabled":true},"chat_template_kwargs":{"enable_thinking":false,"x":1})",
              R"({"enable_thinking":false,"x":1,"thinking":true})"},
          Case{R"("reasoning_effort":"high","chat_template_kwargs":{"reasoning_effort":"low"})",
               R"({"reasoning_effort":"low"})"},
      }) {
    auto request = With(c.members);
    ASSERT_TRUE(request.ok()) << c.members;
    EXPECT_EQ(request->chat_template_kwargs.Dump(), c.kwargs) << c.members;
  }
}

TEST(DecodeChat, OnlyAnAssistantsMessageCanBeContinued) {
  auto request = Decode(
      R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"He"}],
      "continue_final_message":true})");
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(request->continue_final_message);
  EXPECT_EQ(FieldOf(With(R"("continue_final_message":true)").status()), "continue_final_message");
}

}  // namespace
}  // namespace portico::api::openai
