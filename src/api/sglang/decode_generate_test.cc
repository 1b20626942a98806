#include "api/sglang/decode_generate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace portico::api::sglang {
namespace {

StatusOr<NativeGenerateRequest> Decode(const std::string& body) {
  simdjson::dom::parser parser;
  return DecodeGenerate(body, parser, nullptr);
}

std::string FieldAtFault(const std::string& body) {
  auto request = Decode(body);
  return request.ok() ? "nothing" : FieldOf(request.status());
}

TEST(DecodeGenerate, TextAndIdsComeSingleOrInALists) {
  EXPECT_FALSE(Decode(R"({"text":"a"})")->is_batch);
  EXPECT_EQ(Decode(R"({"text":["a","b"]})")->prompts[1].text, "b");
  EXPECT_EQ(Decode(R"({"input_ids":[1,2]})")->prompts[0].ids, (std::vector<TokenId>{1, 2}));
  auto lists = Decode(R"({"input_ids":[[1],[2,3]]})");
  EXPECT_TRUE(lists->is_batch);
  EXPECT_EQ(lists->prompts[1].ids, (std::vector<TokenId>{2, 3}));
}

TEST(DecodeGenerate, AListOfOneIsABatch) { EXPECT_TRUE(Decode(R"({"text":["a"]})")->is_batch); }

TEST(DecodeGenerate, WithoutOrWithTwoInputsItIsRefused) {
  EXPECT_EQ(FieldAtFault("{}"), "text");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","input_ids":[1]})"), "text");
  EXPECT_EQ(FieldAtFault(R"({"text":[]})"), "text");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[]})"), "input_ids");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[[]]})"), "input_ids");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[-1]})"), "input_ids");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[1,"a"]})"), "input_ids");
}

TEST(DecodeGenerate, SamplingValuesAreReadInSglangsNamesAndRanges) {
  auto request = Decode(
      R"({"text":"a","sampling_params":{"max_new_tokens":5,"min_new_tokens":2,"temperature":0,)"
      R"("top_k":-1,"sampling_seed":7,"stop":["x"],"n":2}})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  const NativeSampling sampling = request->sampling.Of(0, {});
  EXPECT_EQ(sampling.options.max_tokens, 5);
  EXPECT_FALSE(sampling.default_limit);
  EXPECT_EQ(sampling.options.min_tokens, 2);
  EXPECT_EQ(sampling.options.seed, 7);
  EXPECT_EQ(sampling.options.n, 2);
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"top_k":0}})"), "top_k");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"top_p":0}})"), "top_p");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"max_new_tokens":-1}})"),
            "max_new_tokens");
}

TEST(DecodeGenerate, ANullMaximumMeansNoLimitAndAnAbsentOneSglangsDefault) {
  auto none = Decode(R"({"text":"a","sampling_params":{"max_new_tokens":null}})");
  EXPECT_FALSE(none->sampling.Of(0, {}).options.max_tokens.has_value());
  auto absent = Decode(R"({"text":"a"})");
  EXPECT_EQ(absent->sampling.Of(0, {}).options.max_tokens, kNativeMaxNewTokens);
  EXPECT_TRUE(absent->sampling.Of(0, {}).default_limit);
}

TEST(DecodeGenerate, AnUnknownSamplingParameterIsAnError) {
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"max_tokens":5}})"), "max_tokens");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"stream":true}})"), "stream");
}

TEST(DecodeGenerate, WhatCannotBeHonouredIsRefusedUnlessItIsIdle) {
  EXPECT_EQ(FieldAtFault(R"({"text":"a","image_data":"x"})"), "image_data");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","image_data":null})"), "nothing");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","return_hidden_states":true})"), "return_hidden_states");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"regex":"a*"}})"), "regex");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","log_metrics":false,"whatever":1})"), "nothing");
}

// Clients that put media beside some prompts send null for the others, and SGLang's models of text take a batch
// without any. It was refused once.
TEST(DecodeGenerate, AListThatSaysOfEachPromptThatItHasNoneIsIdle) {
  for (const char* field :
       {R"("image_data":[null,null])", R"("image_data":[[],[null]])", R"("image_data":[])",
        R"("video_data":[null])", R"("audio_data":[null,null])", R"("lora_path":[null,null])",
        R"("return_hidden_states":[false,null])", R"("custom_logit_processor":[null])"}) {
    EXPECT_EQ(FieldAtFault(fmt::format(R"({{"text":["a","b"],{}}})", field)), "nothing") << field;
  }
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"image_data":[null,"x"]})"), "image_data");
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"image_data":[[null],[""]]})"), "image_data");
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"lora_path":["x",null]})"), "lora_path");
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"return_hidden_states":[false,true]})"),
            "return_hidden_states");
}

TEST(DecodeGenerate, ValuesComeOnceOrOnceAPrompt) {
  auto request = Decode(R"({"text":["a","b"],"rid":["x","y"],"return_logprob":[true,false],)"
                        R"("sampling_params":[{"temperature":0},{}],"top_logprobs_num":3})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->rid.Of(1, ""), "y");
  EXPECT_FALSE(request->return_logprob.Of(1, true));
  EXPECT_EQ(request->sampling.values.size(), 2u);
  EXPECT_EQ(request->top_logprobs_num.Of(1, 0), 3);
}

// SGLang's table of sampling parameters, row by row: what stands at the ends of each range and what lies
// outside.
struct SamplingRow {
  const char* name;
  std::vector<const char*> good;
  std::vector<const char*> bad;
};

const SamplingRow kSamplingRows[] = {
    {"max_new_tokens", {"0", "1", "null"}, {"-1", "1.5", "\"5\"", "true"}},
    {"min_new_tokens", {"0", "3", "null"}, {"-1", "0.5", "\"0\""}},
    {"temperature", {"0", "1e-7", "0.7", "100", "null"}, {"-0.1", "\"1\"", "true", "[]"}},
    {"top_p", {"0.001", "1", "null"}, {"0", "-0.1", "1.001", "\"1\""}},
    {"top_k", {"-1", "1", "1073741824", "null"}, {"0", "-2", "1.5", "\"1\""}},
    {"min_p", {"0", "1", "null"}, {"-0.001", "1.001"}},
    {"frequency_penalty", {"-2", "0", "2", "null"}, {"-2.001", "2.001", "\"0\""}},
    {"presence_penalty", {"-2", "0", "2", "null"}, {"-2.001", "2.001", "\"0\""}},
    {"repetition_penalty", {"0.001", "1", "2", "null"}, {"0", "-1", "2.001"}},
    {"n", {"1", "128", "null"}, {"0", "-1", "129", "1.5"}},
    {"beam_width", {"1", "null"}, {"0", "2"}},
    {"stop", {"\"x\"", "[\"x\",\"y\"]", "[]", "null"}, {"\"\"", "7", "[7]", "[\"\"]"}},
    {"stop_regex", {"[]", "null"}, {"\"a*\"", "[\"a*\"]"}},
    {"stop_token_ids", {"[]", "[1,null,2]", "null"}, {"1", "[-1]", "[\"1\"]", "[1.5]"}},
    {"logit_bias", {"{}", "{\"5\":1.5}", "null"}, {"[]", "{\"a\":1}", "{\"-1\":1}", "{\"5\":101}"}},
    {"ignore_eos", {"true", "false", "null"}, {"1", "\"true\""}},
    {"skip_special_tokens", {"true", "false", "null"}, {"0", "\"no\""}},
    {"spaces_between_special_tokens", {"true", "null"}, {"false"}},
    {"no_stop_trim", {"true", "false", "null"}, {"0"}},
    {"stream_interval", {"1", "50", "null"}, {"0", "-1", "1.5"}},
    {"sampling_seed",
     {"0", "-9223372036854775808", "9223372036854775807", "null"},
     {"9223372036854775808", "1.5", "\"7\""}},
    {"json_schema", {"null"}, {"\"{}\""}},
    {"regex", {"null"}, {"\"a\""}},
    {"ebnf", {"null"}, {"\"a\""}},
    {"structural_tag", {"null"}, {"\"{}\""}},
    {"watermark", {"null"}, {"{}"}},
    {"custom_params", {"null"}, {"{}"}},
};

TEST(DecodeGenerate, EverySamplingParameterHasItsRange) {
  for (const SamplingRow& row : kSamplingRows) {
    const auto body = [&](const char* value) {
      return std::string(R"({"text":"a","sampling_params":{")") + row.name + "\":" + value + "}}";
    };
    for (const char* value : row.good)
      EXPECT_EQ(FieldAtFault(body(value)), "nothing") << body(value);
    for (const char* value : row.bad) EXPECT_EQ(FieldAtFault(body(value)), row.name) << body(value);
  }
}

TEST(DecodeGenerate, TokenIdsForLogprobsComeOnceOrOnceAPrompt) {
  auto once = Decode(R"({"text":["a","b"],"token_ids_logprob":[1,2]})");
  ASSERT_TRUE(once.ok());
  EXPECT_EQ(once->token_ids_logprob.Of(1, {}), (std::vector<TokenId>{1, 2}));
  auto each = Decode(R"({"text":["a","b"],"token_ids_logprob":[[1],null]})");
  ASSERT_TRUE(each.ok());
  EXPECT_TRUE(each->token_ids_logprob.Of(1, {}).empty());
  for (const char* bad : {"1", "[\"a\"]", "[-1]", "[[1],2]", "[[1],[-1]]", "[1,[2]]"}) {
    EXPECT_EQ(FieldAtFault(std::string(R"({"text":"a","token_ids_logprob":)") + bad + "}"),
              "token_ids_logprob")
        << bad;
  }
  EXPECT_EQ(FieldAtFault(R"({"text":"a","token_ids_logprob":[]})"), "nothing");
}

}  // namespace
}  // namespace portico::api::sglang
