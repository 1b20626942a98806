// The engine end to end on the tiny models of the reference data, whose greedy answers and logits
// transformers has computed in float32.
#include "engine/llama/llama_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "engine/llama/engine_for_test.h"
#include "engine/llama/import/safetensors.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/logits_for_test.h"

namespace portico::llama {
namespace {

template <typename T>
std::vector<T> ReadTensor(const WeightFiles& file, const std::string& name) {
  const WeightTensor* tensor = file.Find(name);
  if (tensor == nullptr) return {};
  std::vector<T> values(tensor->bytes / sizeof(T));
  EXPECT_TRUE(file.FileOf(*tensor).ReadAt(tensor->offset, values.data(), tensor->bytes).ok());
  return values;
}

struct ReferenceCase {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  std::vector<float> logits;  // of all positions, or of the last
};

class LlamaEngineTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (SharedFolder().empty()) GTEST_SKIP() << "the reference data is not here";
    Load(GetParam());
  }

  void Load(const std::string& name) {
    const std::string folder = SharedFolder() + "/data/models/" + name;
    ModelOptions options;
    options.path = folder;
    options.dtype = "float32";
    auto model = LlamaModel::Load(options, nullptr);
    ASSERT_TRUE(model.ok()) << MessageOf(model.status());
    model_ = *std::move(model);
    vocab_ = static_cast<size_t>(model_->info().vocab_size);
    context_ = model_->info().context_length;
    auto expected = WeightFiles::OpenFile(folder + "/expected.safetensors");
    ASSERT_TRUE(expected.ok()) << MessageOf(expected.status());
    for (int k = 0; k < 5; ++k) {
      const std::string prefix = "case" + std::to_string(k);
      ReferenceCase reference;
      reference.prompt = ReadTensor<TokenId>(*expected, prefix + ".input_ids");
      reference.greedy = ReadTensor<TokenId>(*expected, prefix + ".greedy");
      reference.logits = ReadTensor<float>(*expected, prefix + ".logits");
      if (reference.prompt.size() + reference.greedy.size() > static_cast<size_t>(context_))
        continue;
      cases_.push_back(std::move(reference));
    }
    ASSERT_FALSE(cases_.empty());
  }

  void Start(const LlamaEngineOptions& options) {
    auto engine = NewLlamaEngine(std::move(model_), options);
    ASSERT_TRUE(engine.ok()) << MessageOf(engine.status());
    engine_ = *std::move(engine);
  }

  GenerateRequest Question(size_t k) {
    const ReferenceCase& c = cases_[k % cases_.size()];
    return Greedy(c.prompt, static_cast<int32_t>(std::max<size_t>(c.greedy.size(), 1)));
  }

  Answer Ask(GenerateRequest request) {
    const StreamId stream = request.stream;
    CollectingSink sink;
    const Status status = engine_->Submit(std::move(request), &sink);
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    if (!status.ok()) return {};
    sink.WaitForEnds(1);
    return sink.of(stream);
  }

  void ExpectReference(size_t k, const Answer& answer, const char* when) {
    const ReferenceCase& c = cases_[k % cases_.size()];
    if (c.greedy.empty()) return;
    EXPECT_EQ(answer.tokens, c.greedy) << when << ", case " << k % cases_.size();
    EXPECT_EQ(answer.terminals, 1);
    EXPECT_EQ(answer.last.finish, FinishReason::kLength);
  }

  void ExpectIdle() {
    const EngineLoad load = engine_->load();
    EXPECT_EQ(load.running, 0);
    EXPECT_EQ(load.waiting, 0);
    EXPECT_EQ(load.kv_cells_used, 0);
    EXPECT_TRUE(load.healthy);
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<LlamaEngine> engine_;
  std::vector<ReferenceCase> cases_;
  size_t vocab_ = 0;
  int32_t context_ = 0;
};

TEST_P(LlamaEngineTest, AnswersAsTransformersDoesAloneAndFromTheCache) {
  Start({});
  for (size_t k = 0; k < cases_.size(); ++k) ExpectReference(k, Ask(Question(k)), "alone");
  for (size_t k = 0; k < cases_.size(); ++k) {
    const Answer again = Ask(Question(k));
    ExpectReference(k, again, "from the cache");
    EXPECT_EQ(again.last.usage.cached_tokens, static_cast<int32_t>(cases_[k].prompt.size()) - 1);
  }
  ExpectIdle();
}

TEST_P(LlamaEngineTest, AnswersTheSameAmongManyOthers) {
  LlamaEngineOptions options;
  options.chunked_prefill_size = 48;
  Start(options);
  std::mt19937 random(7);
  CollectingSink sink;
  std::vector<std::pair<size_t, StreamId>> asked;
  for (size_t i = 0; i < 32; ++i) {
    if (i % 2 == 0) {
      GenerateRequest request = Question(i / 2);
      asked.emplace_back(i / 2, request.stream);
      ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
      continue;
    }
    std::vector<TokenId> noise(1 + random() % 100);
    for (TokenId& token : noise) token = static_cast<TokenId>(random() % vocab_);
    ASSERT_TRUE(
        engine_->Submit(Greedy(noise, 1 + static_cast<int32_t>(random() % 20)), &sink).ok());
  }
  sink.WaitForEnds(32);
  for (const auto& [k, stream] : asked) ExpectReference(k, sink.of(stream), "among others");
  ExpectIdle();
}

TEST_P(LlamaEngineTest, AnswersTheSameWhenTheCacheIsTooSmallForAll) {
  LlamaEngineOptions options;
  size_t longest = 0;
  for (const auto& c : cases_) longest = std::max(longest, c.prompt.size() + c.greedy.size());
  options.max_total_tokens = static_cast<int64_t>(longest + 8);
  options.chunked_prefill_size = 64;
  Start(options);
  CollectingSink sink;
  std::vector<StreamId> streams;
  for (size_t k = 0; k < 40; ++k) {
    GenerateRequest request = Question(k);
    streams.push_back(request.stream);
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
  }
  sink.WaitForEnds(40);
  for (size_t k = 0; k < 40; ++k) ExpectReference(k, sink.of(streams[k]), "in a small cache");
  ExpectIdle();
}

TEST_P(LlamaEngineTest, PromptLogprobsAreThoseOfTransformers) {
  Start({});
  for (size_t k = 0; k < cases_.size(); ++k) {
    const ReferenceCase& c = cases_[k];
    if (c.logits.size() != c.prompt.size() * vocab_ || c.prompt.size() < 2) continue;
    for (const int32_t start : {0, 1, static_cast<int32_t>(c.prompt.size()) / 2}) {
      GenerateRequest request = Greedy(c.prompt, 0);
      request.prompt_logprobs_start = start;
      request.top_logprobs = 5;
      const Answer answer = Ask(std::move(request));
      const auto first = static_cast<size_t>(std::max(start, 1));
      EXPECT_TRUE(answer.tokens.empty());
      EXPECT_EQ(answer.last.finish, FinishReason::kLength);
      ASSERT_EQ(answer.prompt_logprobs.size(), c.prompt.size() - first);
      for (size_t t = first; t < c.prompt.size(); ++t) {
        const float* row = &c.logits[(t - 1) * vocab_];
        double sum = 0;
        for (size_t v = 0; v < vocab_; ++v) sum += std::exp(static_cast<double>(row[v]));
        const PositionLogprobs& got = answer.prompt_logprobs[t - first];
        EXPECT_EQ(got.chosen.token, c.prompt[t]);
        EXPECT_NEAR(got.chosen.logprob, row[c.prompt[t]] - std::log(sum), 1e-3);
        ASSERT_EQ(got.top.size(), 5u);
        EXPECT_NEAR(got.top[0].logprob, *std::max_element(row, row + vocab_) - std::log(sum), 1e-3);
      }
    }
  }
  ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Folders, LlamaEngineTest,
                         testing::Values("llama-gqa", "llama-mha-bias", "llama-rope-llama3-tied",
                                         "llama-rope-yarn", "llama-rope-linear", "qwen2", "qwen3",
                                         "mistral-window"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace portico::llama
