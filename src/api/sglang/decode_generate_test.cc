#include "api/sglang/decode_generate.h"

#include <gtest/gtest.h>

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

TEST(DecodeGenerate, ValuesComeOnceOrOnceAPrompt) {
  auto request = Decode(R"({"text":["a","b"],"rid":["x","y"],"return_logprob":[true,false],)"
                        R"("sampling_params":[{"temperature":0},{}],"top_logprobs_num":3})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->rid.Of(1, ""), "y");
  EXPECT_FALSE(request->return_logprob.Of(1, true));
  EXPECT_EQ(request->sampling.values.size(), 2u);
  EXPECT_EQ(request->top_logprobs_num.Of(1, 0), 3);
}

}  // namespace
}  // namespace portico::api::sglang
