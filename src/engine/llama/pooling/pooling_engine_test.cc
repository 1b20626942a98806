#include "engine/llama/pooling/pooling_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "engine/llama/import/reference_for_test.h"
#include "engine/llama/model/logits_for_test.h"
#include "engine/llama/pooling/bert_for_test.h"
#include "engine/llama/pooling/pooling_for_test.h"

namespace portico::llama {
namespace {

using ::testing::HasSubstr;

std::vector<TokenId> Tokens(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(size);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 101);
  return tokens;
}

class PoolingEngineTest : public testing::Test {
 protected:
  void Start(const TestModel& model, const std::string& dtype = "F32",
             const LlamaEngineOptions& options = {}) {
    model.Write(folder_.path(), dtype);
    auto engine = LoadPoolingEngine(Options(), options);
    ASSERT_TRUE(engine.ok()) << MessageOf(engine.status());
    engine_ = *std::move(engine);
  }

  ModelOptions Options() const {
    ModelOptions options;
    options.path = folder_.path();
    options.dtype = dtype_;
    options.pooling = pooling_;
    return options;
  }

  std::vector<float> PoolOne(PoolingRequest text) {
    std::vector<PoolingRequest> one;
    one.push_back(std::move(text));
    return PoolAll(engine_.get(), std::move(one))[0];
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  TempFolder folder_;
  std::string dtype_ = "float32";
  std::optional<Pooling> pooling_;
  std::unique_ptr<LlamaEngine> engine_;
};

std::vector<float> Mean(const std::vector<PlainBert::Row>& states) {
  std::vector<float> mean(states[0].size());
  for (size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const PlainBert::Row& state : states) sum += state[i];
    mean[i] = static_cast<float>(sum / static_cast<double>(states.size()));
  }
  return mean;
}

TEST_F(PoolingEngineTest, BertEqualsAPlainComputationAloneAndTogether) {
  const TestModel model = RandomBert(SmallBertConfig());
  Start(model);
  const PlainBert plain(model);
  std::vector<PoolingRequest> texts;
  std::vector<std::vector<float>> expected;
  for (const size_t size : {1, 2, 3, 40, 9, 130, 300}) {
    const std::vector<TokenId> tokens = Tokens(size, static_cast<uint32_t>(size));
    texts.push_back(PoolingText(tokens));
    expected.push_back(Mean(plain.States(tokens)));
    EXPECT_LE(MaxDifference(PoolOne(PoolingText(tokens)), expected.back()), 1e-4f) << size;
  }
  const auto together = PoolAll(engine_.get(), std::move(texts));
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_LE(MaxDifference(together[i], expected[i]), 1e-4f) << i;
  }
}

TEST_F(PoolingEngineTest, ADecodersTokensSeeOneAnotherOnlyWhereItsFolderSaysSo) {
  pooling_ = Pooling::kMean;
  for (const bool causal : {false, true}) {
    const TestModel model = RandomModel(
        SmallConfig("qwen3", {{"architectures", JsonArray{"Qwen3Model"}}, {"is_causal", causal}}));
    Start(model);
    const ReferenceModel plain(model);
    std::vector<PoolingRequest> texts;
    std::vector<std::vector<float>> expected;
    for (const size_t size : {1, 2, 7, 40, 3}) {
      const std::vector<TokenId> tokens = Tokens(size, static_cast<uint32_t>(size));
      texts.push_back(PoolingText(tokens));
      expected.push_back(Mean(plain.States(tokens)));
    }
    const auto together = PoolAll(engine_.get(), std::move(texts));
    for (size_t i = 0; i < together.size(); ++i) {
      EXPECT_LE(MaxDifference(together[i], expected[i]), 1e-4f) << causal << i;
    }
  }
}

TEST_F(PoolingEngineTest, RobertaEqualsAPlainComputationWithPaddingAnywhere) {
  // A client's ids, or a text that spells <pad>, once failed every text of the batch: libllama refuses positions that
  // fall.
  const TestModel model = RandomBert(SmallBertConfig({{"architectures", JsonArray{"RobertaModel"}},
                                                      {"model_type", "roberta"},
                                                      {"pad_token_id", 1},
                                                      {"layer_norm_eps", 1e-12},
                                                      {"type_vocab_size", 1}}));
  const PlainBert plain(model);
  const std::vector<std::vector<TokenId>> texts = {
      {5, 6, 1, 7}, {1, 1}, {9, 1, 1, 8, 1, 3, 1}, {4, 3, 2}, {1, 2, 3}};
  for (const Pooling pooling : {Pooling::kMean, Pooling::kCls, Pooling::kLast}) {
    pooling_ = pooling;
    Start(model);
    std::vector<PoolingRequest> requests;
    for (const auto& text : texts) requests.push_back(PoolingText(text));
    const auto together = PoolAll(engine_.get(), std::move(requests));
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<PlainBert::Row> states = plain.States(texts[i]);
      const PlainBert::Row& one = pooling == Pooling::kCls ? states.front() : states.back();
      const std::vector<float> expected =
          pooling == Pooling::kMean ? Mean(states) : std::vector<float>(one.begin(), one.end());
      EXPECT_LE(MaxDifference(together[i], expected), 1e-4f) << PoolingName(pooling) << i;
    }
  }
}

TEST_F(PoolingEngineTest, TextsOfSeveralBatchesSideBySideAreWhatTheyAreAlone) {
  LlamaEngineOptions options;
  options.threads = 3;
  const TestModel model = RandomBert(SmallBertConfig());
  Start(model, "F32", options);
  EXPECT_THAT(engine_->description(), HasSubstr("3 batches at once"));
  const PlainBert plain(model);
  std::vector<PoolingRequest> texts;
  std::vector<std::vector<float>> expected;
  for (uint32_t i = 0; i < 60; ++i) {
    const std::vector<TokenId> tokens = Tokens(i % 10 == 9 ? 150 : 5 + i % 7, i);
    texts.push_back(PoolingText(tokens));
    expected.push_back(Mean(plain.States(tokens)));
  }
  const auto together = PoolAll(engine_.get(), std::move(texts));
  ASSERT_EQ(together.size(), expected.size());
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_LE(MaxDifference(together[i], expected[i]), 1e-4f) << i;
  }
}

TEST_F(PoolingEngineTest, ACrossEncoderTellsTokenTypesApart) {
  TestModel model =
      RandomBert(SmallBertConfig({{"architectures", JsonArray{"BertForSequenceClassification"}},
                                  {"id2label", JsonObject{{"0", "no"}, {"1", "yes"}}}}),
                 "bert.");
  std::mt19937 random(5);
  model.tensors["bert.pooler.dense.weight"] = RandomTensor({32, 32}, &random);
  model.tensors["bert.pooler.dense.bias"] = RandomTensor({32}, &random);
  model.tensors["classifier.weight"] = RandomTensor({2, 32}, &random);
  model.tensors["classifier.bias"] = RandomTensor({2}, &random);
  Start(model);
  EXPECT_THAT(engine_->info().labels, testing::ElementsAre("no", "yes"));
  EXPECT_EQ(engine_->info().token_types, 2);
  const PlainBert plain(model, "bert.");
  const std::vector<TokenId> tokens = Tokens(12, 3);
  const std::vector<uint8_t> types = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
  PlainBert::Row pooled = plain.Linear("bert.pooler.dense", plain.States(tokens, types)[0]);
  for (double& value : pooled) value = std::tanh(value);
  const PlainBert::Row logits = plain.Linear("classifier", pooled);
  const std::vector<float> expected(logits.begin(), logits.end());
  EXPECT_LE(MaxDifference(PoolOne(PoolingText(tokens, types)), expected), 1e-4f);
  EXPECT_GT(MaxDifference(PoolOne(PoolingText(tokens)), expected), 1e-2f);
}

// Every spelling of the same weights, with heads and pretraining left over, is the same model.
TEST_F(PoolingEngineTest, TakesOldNamesAndPrefixes) {
  const TestModel model = RandomBert(SmallBertConfig());
  Start(model);
  const std::vector<float> expected = PoolOne(PoolingText({1, 2, 3}));
  TestModel old{model.config, {}};
  for (const auto& [new_name, tensor] : model.tensors) {
    std::string name = new_name;
    if (const size_t at = name.find("LayerNorm.weight"); at != std::string::npos) {
      name.replace(at, std::string::npos, "LayerNorm.gamma");
    } else if (const size_t end = name.find("LayerNorm.bias"); end != std::string::npos) {
      name.replace(end, std::string::npos, "LayerNorm.beta");
    }
    old.tensors["bert." + name] = tensor;
  }
  std::mt19937 random(5);
  old.tensors["cls.predictions.bias"] = RandomTensor({101}, &random);
  old.tensors["bert.pooler.dense.bias"] = RandomTensor({32}, &random);
  old.tensors["cls.seq_relationship.weight"] = RandomTensor({2, 32}, &random);
  for (const char* name : {"BertForMaskedLM", "BertForPreTraining"}) {
    old.config.Set("architectures", JsonArray{name});
    Start(old);
    EXPECT_EQ(engine_->info().task, ModelTask::kEmbed);
    EXPECT_EQ(PoolOne(PoolingText({1, 2, 3})), expected) << name;
  }
}

// libllama once ended the process: it cannot add a token type that is not float32.
TEST_F(PoolingEngineTest, ComputesInTheTypeOfTheWeights) {
  const TestModel model = RandomBert(SmallBertConfig());
  dtype_ = "auto";
  for (const char* type : {"BF16", "F16"}) {
    Start(model, type);
    const std::vector<TokenId> tokens = Tokens(20, 4);
    const std::vector<float> expected = Mean(PlainBert(model).States(tokens));
    EXPECT_LE(MaxDifference(PoolOne(PoolingText(tokens)), expected), 0.1f) << type;
  }
}

TEST_F(PoolingEngineTest, RefusesRequestsForTokens) {
  Start(RandomBert(SmallBertConfig()));
  EXPECT_EQ(engine_->Submit({}, nullptr).code(), StatusCode::kFailedPrecondition);
}

TEST_F(PoolingEngineTest, AGeneratingModelGivesVectorsOnlyWhenToldTo) {
  RandomModel(SmallConfig("llama")).Write(folder_.path());
  CollectingPoolingSink sink;
  auto generating = LoadPoolingEngine(Options());
  ASSERT_TRUE(generating.ok()) << MessageOf(generating.status());
  std::vector<PoolingRequest> texts;
  texts.push_back(PoolingText({1, 2}));
  EXPECT_EQ((*generating)->SubmitPooling(std::move(texts), &sink).code(),
            StatusCode::kFailedPrecondition);
  ModelOptions options = Options();
  options.is_embedding = true;
  auto embedding = LoadPoolingEngine(options);
  ASSERT_TRUE(embedding.ok()) << MessageOf(embedding.status());
  EXPECT_EQ((*embedding)->info().pooling, Pooling::kLast);
  engine_ = *std::move(embedding);
  // A text in pieces is what it is whole, and does not leave anything behind.
  const std::vector<float> first = PoolOne(PoolingText(Tokens(256, 1)));
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(PoolOne(PoolingText(Tokens(256, 1))), first);
}

TEST_F(PoolingEngineTest, HoldsItsQueueAndAbortsAndGoesOnAfterAPause) {
  LlamaEngineOptions options;
  options.max_running_requests = 1;
  options.max_queued_requests = 1;
  Start(RandomBert(SmallBertConfig()), "BF16", options);
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kInPlace}).ok());
  CollectingPoolingSink sink;
  const auto submit = [&](StreamId* stream) {
    std::vector<PoolingRequest> texts;
    texts.push_back(PoolingText({1, 2, 3}));
    *stream = texts[0].stream;
    return engine_->SubmitPooling(std::move(texts), &sink);
  };
  StreamId a = 0, b = 0, c = 0;
  ASSERT_TRUE(submit(&a).ok());
  ASSERT_TRUE(submit(&b).ok());
  EXPECT_EQ(submit(&c).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(engine_->load().waiting, 2);
  engine_->Abort(a, kNoShard);
  sink.WaitFor(1);
  EXPECT_EQ(sink.of(a).finish, FinishReason::kAbort);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  sink.WaitFor(2);
  EXPECT_EQ(sink.of(b).finish, FinishReason::kStop);
  EXPECT_EQ(sink.of(b).prompt_tokens, 3);
  EXPECT_EQ(engine_->load().running + engine_->load().waiting, 0);
  EXPECT_EQ(engine_->load().prompt_tokens, 3u);
}

TEST_F(PoolingEngineTest, WhatIsAbortedWhileItIsComputedLeavesTheOthersAlone) {
  LlamaEngineOptions options;
  options.threads = 2;
  Start(RandomBert(SmallBertConfig()), "F32", options);
  const std::vector<float> expected = PoolOne(PoolingText(Tokens(300, 1)));
  for (int round = 0; round < 8; ++round) {
    CollectingPoolingSink sink;
    std::vector<StreamId> streams;
    for (int i = 0; i < 6; ++i) {
      std::vector<PoolingRequest> texts;
      texts.push_back(PoolingText(Tokens(300, 1)));
      streams.push_back(texts[0].stream);
      ASSERT_TRUE(engine_->SubmitPooling(std::move(texts), &sink).ok());
      if (i % 2 == 1) engine_->Abort(streams[static_cast<size_t>(i - round % 2)], kNoShard);
    }
    sink.WaitFor(streams.size());
    for (const StreamId stream : streams) {
      const PoolingOutput output = sink.of(stream);
      if (output.finish == FinishReason::kAbort) continue;
      EXPECT_EQ(output.finish, FinishReason::kStop);
      EXPECT_LE(MaxDifference(output.values, expected), 1e-5f);
    }
  }
  EXPECT_EQ(engine_->load().running + engine_->load().waiting, 0);
}

// libllama once refused the next text: the tokens of the one before it were still there.
TEST_F(PoolingEngineTest, ATextInPiecesThatIsAbortedLeavesNothingToTheNext) {
  RandomModel(SmallConfig("llama", {{"max_position_embeddings", 1000}})).Write(folder_.path());
  ModelOptions options = Options();
  options.is_embedding = true;
  auto engine = LoadPoolingEngine(options);
  ASSERT_TRUE(engine.ok()) << MessageOf(engine.status());
  engine_ = *std::move(engine);
  const auto longest = static_cast<size_t>(engine_->info().context_length);
  const std::vector<float> expected = PoolOne(PoolingText(Tokens(longest, 2)));
  for (int round = 0; round < 2; ++round) {
    CollectingPoolingSink sink;
    std::vector<PoolingRequest> texts;
    texts.push_back(PoolingText(Tokens(longest, 1)));
    const StreamId stream = texts[0].stream;
    const uint64_t before = engine_->load().prompt_tokens;
    ASSERT_TRUE(engine_->SubmitPooling(std::move(texts), &sink).ok());
    while (engine_->load().prompt_tokens == before) std::this_thread::yield();
    ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kInPlace}).ok());
    engine_->Abort(stream, kNoShard);
    ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
    EXPECT_LE(MaxDifference(PoolOne(PoolingText(Tokens(longest, 2))), expected), 1e-5f) << round;
  }
}

TEST_F(PoolingEngineTest, APauseThatAbortsEndsWhatIsComputedAndWhatWaits) {
  LlamaEngineOptions options;
  options.threads = 2;
  Start(RandomBert(SmallBertConfig()), "F32", options);
  CollectingPoolingSink sink;
  std::vector<PoolingRequest> texts;
  for (uint32_t i = 0; i < 200; ++i) texts.push_back(PoolingText(Tokens(300, i)));
  ASSERT_TRUE(engine_->SubmitPooling(std::move(texts), &sink).ok());
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kAbort}).ok());
  sink.WaitFor(200);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  EXPECT_EQ(PoolOne(PoolingText({1, 2, 3})).size(), 32u);
}

TEST_F(PoolingEngineTest, StopEndsWhatWaits) {
  Start(RandomBert(SmallBertConfig()));
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kRetract}).ok());
  CollectingPoolingSink sink;
  std::vector<PoolingRequest> texts;
  for (int i = 0; i < 5; ++i) texts.push_back(PoolingText({1, 2, 3}));
  const StreamId first = texts[0].stream;
  ASSERT_TRUE(engine_->SubmitPooling(std::move(texts), &sink).ok());
  engine_->Stop();
  sink.WaitFor(5);
  EXPECT_EQ(sink.of(first).finish, FinishReason::kAbort);
  texts.clear();
  texts.push_back(PoolingText({1}));
  EXPECT_EQ(engine_->SubmitPooling(std::move(texts), &sink).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace portico::llama
