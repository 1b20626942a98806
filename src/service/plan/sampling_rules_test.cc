#include "service/plan/sampling_rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace portico {
namespace {

EngineInfo Engine() {
  EngineInfo info;
  info.vocab_size = 100;
  info.context_length = 50;
  return info;
}

TEST(MakeSampling, TheRequestWinsOverTheModelAndTheModelOverOpenAi) {
  GenerationDefaults model;
  model.temperature = 0.6f;
  model.top_k = 20;
  GenerationOptions options;
  options.temperature = 0.2f;
  auto sampling = MakeSampling(options, model, Engine());
  ASSERT_TRUE(sampling.ok());
  EXPECT_FLOAT_EQ((*sampling)->temperature, 0.2f);
  EXPECT_EQ((*sampling)->top_k, 20);
  EXPECT_FLOAT_EQ((*sampling)->top_p, 1.0f);
}

TEST(MakeSampling, ATemperatureNextToZeroMeansGreedy) {
  GenerationOptions options;
  options.temperature = 1e-7f;
  EXPECT_EQ((*MakeSampling(options, {}, Engine()))->temperature, 0.0f);
}

TEST(MakeSampling, IdsOutsideTheVocabularyAreRefusedByField) {
  GenerationOptions bias;
  bias.logit_bias = {{100, 1.0f}};
  EXPECT_EQ(FieldOf(MakeSampling(bias, {}, Engine()).status()), "logit_bias");
  GenerationOptions stop;
  stop.stop_token_ids = {7, 100};
  EXPECT_EQ(FieldOf(MakeSampling(stop, {}, Engine()).status()), "stop_token_ids");
}

// 4 MB of stop strings with n 128 took 4.4 GB and 8 s.
TEST(ShareOptions, StopStringsTokensAndBiasesAreBounded) {
  const auto field = [](GenerationOptions options) {
    return FieldOf(ShareOptions({}, Engine(), &options).status());
  };
  GenerationOptions options;
  options.stop = {std::string(4096, 'x')};
  EXPECT_EQ(field(options), "");
  options.stop = {std::string(4097, 'x')};
  EXPECT_EQ(field(options), "stop");
  options.stop.assign(33, "x");
  EXPECT_EQ(field(options), "stop");
  options = {};
  options.stop_token_ids.assign(4097, 1);
  EXPECT_EQ(field(options), "stop_token_ids");
  options = {};
  options.logit_bias.assign(16385, {1, 1.0f});
  EXPECT_EQ(field(options), "logit_bias");
}

// The engine found no token that it could draw, and answered 500.
TEST(MakeSampling, MinTokensMustLeaveATokenThatCanBeDrawn) {
  EngineInfo engine = Engine();
  engine.eos_token_ids = {99};
  GenerationOptions options;
  options.min_tokens = 1;
  for (TokenId id = 0; id < 98; ++id) options.stop_token_ids.push_back(id);
  options.stop_token_ids.push_back(5);
  EXPECT_TRUE(MakeSampling(options, {}, engine).ok());
  options.stop_token_ids.push_back(98);
  EXPECT_EQ(FieldOf(MakeSampling(options, {}, engine).status()), "stop_token_ids");
  options.min_tokens = 0;
  EXPECT_TRUE(MakeSampling(options, {}, engine).ok());
}

TEST(FitContext, WithoutAMaximumTheAnswerMayFillTheContext) {
  EXPECT_EQ(*FitContext(10, {}, Engine(), "prompt"), 40);
}

TEST(FitContext, AnEngineMayNameAShorterDefault) {
  EngineInfo engine = Engine();
  engine.default_max_new_tokens = 8;
  EXPECT_EQ(*FitContext(10, {}, engine, "prompt"), 8);
  EXPECT_EQ(*FitContext(45, {}, engine, "prompt"), 5);
}

TEST(FitContext, APromptThatFillsTheContextNamesBothNumbers) {
  Status status = FitContext(50, {}, Engine(), "messages").status();
  EXPECT_EQ(FieldOf(status), "messages");
  EXPECT_EQ(MessageOf(status),
            "The input (50 tokens) is longer than the model's context length (50 tokens).");
  EXPECT_EQ(ReasonOf(status), "context_length_exceeded");
}

TEST(FitContext, PromptAndAnswerTogetherNameTheirSum) {
  GenerationOptions options;
  options.max_tokens = 45;
  Status status = FitContext(10, options, Engine(), "prompt").status();
  EXPECT_EQ(FieldOf(status), "max_tokens");
  EXPECT_NE(MessageOf(status).find("total of 55 tokens: 10 tokens from the input messages and 45"),
            std::string_view::npos);
  EXPECT_EQ(ReasonOf(status), "context_length_exceeded");
}

// More than 32 bits hold was "must be an integer of at least 1".
TEST(FitContext, ANumberBeyond32BitsIsTooMuchForTheContextAsAnyOther) {
  for (const auto& [asked, sum] : {std::pair{int64_t{3000000000}, "3000000010"},
                                   std::pair{INT64_MAX, "9223372036854775817"}}) {
    GenerationOptions options;
    options.max_tokens = asked;
    const Status status = FitContext(10, options, Engine(), "prompt").status();
    EXPECT_EQ(FieldOf(status), "max_tokens");
    EXPECT_THAT(std::string(MessageOf(status)),
                ::testing::HasSubstr(fmt::format("a total of {} tokens", sum)));
  }
}

TEST(FitContext, BlamesTheFieldThatTheClientSent) {
  GenerationOptions options;
  options.max_tokens = 45;
  options.max_tokens_field = "max_completion_tokens";
  EXPECT_EQ(FieldOf(FitContext(10, options, Engine(), "messages").status()),
            "max_completion_tokens");
}

TEST(FitContext, AnEchoWithoutAnAnswerMayFillTheContext) {
  GenerationOptions options;
  options.max_tokens = 0;
  EXPECT_EQ(*FitContext(50, options, Engine(), "prompt"), 0);
  EXPECT_FALSE(FitContext(51, options, Engine(), "prompt").ok());
}

TEST(FitContext, AnEmptyPromptIsRefused) {
  EXPECT_EQ(FieldOf(FitContext(0, {}, Engine(), "prompt").status()), "prompt");
}

}  // namespace
}  // namespace portico
