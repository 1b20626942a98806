// Other weights for a running engine. On random checkpoints of one shape.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/llama/engine_for_test.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/import/test_model_for_test.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/model/gguf_for_test.h"

namespace portico::llama {
namespace {

UpdateWeightsControl WeightsAt(const std::string& path) {
  UpdateWeightsControl update;
  update.path = path;
  return update;
}

class WeightUpdateTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, uint32_t seed, const JsonObject& changes = {}) {
    Json config = SmallConfig("llama", changes);
    const std::string folder = folder_.path() + "/" + name;
    std::filesystem::create_directories(folder);
    RandomModel(std::move(config), seed).Write(folder);
    return folder;
  }

  std::unique_ptr<LlamaEngine> Start(const std::string& folder) {
    ModelOptions options;
    options.path = folder;
    options.dtype = "float32";
    auto model = LlamaModel::Load(options, nullptr);
    EXPECT_TRUE(model.ok()) << MessageOf(model.status());
    return *NewLlamaEngine(*std::move(model), {});
  }

  static std::vector<TokenId> Answer(Engine& engine, int32_t tokens = 16) {
    CollectingSink sink;
    GenerateRequest request = Greedy({3, 1, 4, 1, 5}, tokens);
    const StreamId stream = request.stream;
    EXPECT_TRUE(engine.Submit(std::move(request), &sink).ok());
    sink.WaitForEnds(1);
    return sink.of(stream).tokens;
  }

  TempFolder folder_{"XDG_CACHE_HOME"};
};

TEST_F(WeightUpdateTest, AnswersAreThoseOfTheNewWeights) {
  const std::string first = Write("first", 1);
  const std::string second = Write("second", 2);
  const auto engine = Start(first);
  const std::vector<TokenId> before = Answer(*engine);
  const std::vector<TokenId> expected = Answer(*Start(second));
  ASSERT_NE(before, expected);
  const Status status = ControlAndWait(*engine, WeightsAt(second));
  ASSERT_TRUE(status.ok()) << MessageOf(status);
  EXPECT_EQ(engine->load().kv_cells_used, 0);
  EXPECT_EQ(Answer(*engine), expected);
  ASSERT_TRUE(ControlAndWait(*engine, WeightsAt(first)).ok());
  EXPECT_EQ(Answer(*engine), before);
}

TEST_F(WeightUpdateTest, RunningAndPausedStreamsGoOnWithTheTokensTheyHave) {
  const std::string first = Write("first", 1);
  const auto engine = Start(first);
  const std::vector<TokenId> expected = Answer(*engine, 60);
  CollectingSink sink;
  GenerateRequest request = Greedy({3, 1, 4, 1, 5}, 60);
  const StreamId stream = request.stream;
  ASSERT_TRUE(engine->Submit(std::move(request), &sink).ok());
  sink.WaitForTokens(stream, 2);
  ASSERT_TRUE(ControlAndWait(*engine, PauseControl{PauseMode::kInPlace}).ok());
  ASSERT_TRUE(ControlAndWait(*engine, WeightsAt(first)).ok());
  EXPECT_TRUE(engine->load().paused);
  ASSERT_TRUE(ControlAndWait(*engine, ContinueControl{}).ok());
  sink.WaitForEnds(1);
  EXPECT_EQ(sink.of(stream).tokens, expected);
}

// A stream that has stopped in place, with at least two tokens.
class PausedStream {
 public:
  PausedStream(Engine& engine, int32_t tokens) {
    GenerateRequest request = Greedy({3, 1, 4, 1, 5}, tokens);
    stream_ = request.stream;
    sink_.HoldAt(stream_, 2);
    EXPECT_TRUE(engine.Submit(std::move(request), &sink_).ok());
    sink_.WaitForTokens(stream_, 2);
    EXPECT_TRUE(ControlAndWait(engine, PauseControl{PauseMode::kInPlace}).ok());
    sink_.Release();
  }
  Answer End() {
    sink_.WaitForEnds(1);
    return sink_.of(stream_);
  }

 private:
  CollectingSink sink_;
  StreamId stream_ = 0;
};

// "abort_all_requests": true was answered with success, and everything went on.
TEST_F(WeightUpdateTest, RequestsAreAbortedFirstWhereThatIsAskedFor) {
  const std::string first = Write("first", 1);
  const auto engine = Start(first);
  PausedStream stream(*engine, 60);
  UpdateWeightsControl update = WeightsAt(first);
  update.abort_requests = true;
  ASSERT_TRUE(ControlAndWait(*engine, update).ok());
  EXPECT_EQ(stream.End().last.finish, FinishReason::kAbort);
  EXPECT_TRUE(engine->load().paused);
  EXPECT_EQ(engine->load().running + engine->load().waiting, 0);
}

TEST_F(WeightUpdateTest, AnUpdateThatCannotBeAbortsNothing) {
  const std::string first = Write("first", 1);
  const auto engine = Start(first);
  const std::vector<TokenId> expected = Answer(*engine, 60);
  PausedStream stream(*engine, 60);
  UpdateWeightsControl update = WeightsAt("/nowhere");
  update.abort_requests = true;
  EXPECT_EQ(ControlAndWait(*engine, update).code(), StatusCode::kNotFound);
  update = WeightsAt(first);
  update.abort_requests = true;
  update.load_format = "dummy";
  EXPECT_EQ(FieldOf(ControlAndWait(*engine, update)), "load_format");
  update = WeightsAt(first);
  update.abort_requests = true;
  update.others = {{"recapture_cuda_graph", "true"}};
  EXPECT_EQ(FieldOf(ControlAndWait(*engine, update)), "recapture_cuda_graph");
  ASSERT_TRUE(ControlAndWait(*engine, ContinueControl{}).ok());
  EXPECT_EQ(stream.End().tokens, expected);
}

TEST_F(WeightUpdateTest, AFormatIsTakenWhereItIsWhatThePathHolds) {
  const std::string first = Write("first", 1);
  const auto engine = Start(first);
  for (const auto& [format, good] : {std::pair("", true),
                                     {"auto", true},
                                     {"safetensors", true},
                                     {"gguf", false},
                                     {"pt", false}}) {
    UpdateWeightsControl update = WeightsAt(first);
    update.load_format = format;
    EXPECT_EQ(ControlAndWait(*engine, update).ok(), good) << format;
  }
}

// It was answered with success, and the cache was flushed.
TEST_F(WeightUpdateTest, ACacheThatIsNotToBeFlushedIsRefused) {
  const std::string first = Write("first", 1);
  const auto engine = Start(first);
  const std::vector<TokenId> before = Answer(*engine);
  UpdateWeightsControl update = WeightsAt(first);
  update.flush_cache = false;
  EXPECT_EQ(FieldOf(ControlAndWait(*engine, update)), "flush_cache");
  EXPECT_EQ(Answer(*engine), before);
}

TEST_F(WeightUpdateTest, AnotherModelIsRefusedAndTheOldOneStays) {
  const auto engine = Start(Write("first", 1));
  const std::vector<TokenId> before = Answer(*engine);
  const std::string others[] = {
      Write("vocabulary", 1, {{"vocab_size", 40}}),
      Write("layers", 1, {{"num_hidden_layers", 1}}),
      Write("end", 1, {{"eos_token_id", 7}}),
  };
  for (const std::string& other : others) {
    const Status status = ControlAndWait(*engine, WeightsAt(other));
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << other;
    EXPECT_EQ(FieldOf(status), "model_path");
  }
  EXPECT_EQ(ControlAndWait(*engine, WeightsAt("/nowhere")).code(), StatusCode::kNotFound);
  EXPECT_EQ(Answer(*engine), before);
}

// Two layers of olmo2, which has windows in some models only; 0: none.
void WriteWithWindow(const std::string& path, uint32_t window) {
  constexpr uint32_t kHidden = 64, kInner = 96, kVocabulary = 101;
  RandomGguf file("olmo2", kVocabulary, kHidden);
  file.Set("feed_forward_length", kInner);
  file.Set("attention.head_count", 4u);
  file.Set("attention.layer_norm_rms_epsilon", 1e-5f);
  if (window > 0) file.Set("attention.sliding_window", window);
  file.Add("output.weight", {kHidden, kVocabulary});
  for (const std::string name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    file.AddToLayers(name + ".weight", {kHidden, kHidden});
  }
  for (const std::string name :
       {"attn_q_norm", "attn_k_norm", "post_attention_norm", "post_ffw_norm"}) {
    file.AddToLayers(name + ".weight", {kHidden});
  }
  file.AddToLayers("ffn_gate.weight", {kHidden, kInner});
  file.AddToLayers("ffn_up.weight", {kHidden, kInner});
  file.AddToLayers("ffn_down.weight", {kInner, kHidden});
  file.Write(path);
}

// The prefixes of a model with windows may lack cells; the engine went on sharing them.
TEST_F(WeightUpdateTest, AModelWithWindowsIsRefusedWherePrefixesAreShared) {
  const std::string plain = folder_.File("plain.gguf"), windows = folder_.File("windows.gguf");
  WriteWithWindow(plain, 0);
  WriteWithWindow(windows, 8);
  const auto engine = Start(plain);
  const std::vector<TokenId> before = Answer(*engine);
  const Status status = ControlAndWait(*engine, WeightsAt(windows));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << MessageOf(status);
  EXPECT_EQ(FieldOf(status), "model_path");
  EXPECT_EQ(Answer(*engine), before);
  const auto other = Start(windows);
  EXPECT_TRUE(ControlAndWait(*other, WeightsAt(plain)).ok());
  EXPECT_EQ(Answer(*other), before);
}

TEST_F(WeightUpdateTest, AStoppedEngineRefuses) {
  const std::string first = Write("first", 1);
  const auto engine = Start(first);
  engine->Stop();
  EXPECT_EQ(ControlAndWait(*engine, WeightsAt(first)).code(), StatusCode::kUnavailable);
}

TEST_F(WeightUpdateTest, UpdatesThatWaitAreCountedAndBounded) {
  const auto engine = Start(Write("first", 1));
  EXPECT_EQ(engine->load().weight_updates_waiting, 0);
  const auto update = [&](ControlDone done) {
    engine->Control(WeightsAt("/nowhere"), Clock::now() + std::chrono::minutes(10),
                    std::move(done));
  };
  // The thread of the updates is in the answer to the first one until the others wait.
  std::promise<void> first_ended;
  std::promise<void> go_on;
  update([&, goes_on = go_on.get_future()](const Status&) {
    first_ended.set_value();
    goes_on.wait();
  });
  first_ended.get_future().wait();
  std::promise<void> last_ended;
  for (int i = 1; i <= 8; ++i) {
    update([&, i](const Status& status) {
      EXPECT_EQ(status.code(), StatusCode::kNotFound);
      if (i == 8) last_ended.set_value();
    });
    EXPECT_EQ(engine->load().weight_updates_waiting, i);
  }
  StatusCode refused = StatusCode::kOk;
  update([&](const Status& status) { refused = status.code(); });
  EXPECT_EQ(refused, StatusCode::kResourceExhausted);
  go_on.set_value();
  last_ended.get_future().wait();
  EXPECT_EQ(engine->load().weight_updates_waiting, 0);
}

// The exchange and the steps take turns, whatever else comes in.
TEST_F(WeightUpdateTest, UpdatesAmongRequestsAndAbortsLeaveNothingBehind) {
  const std::string first = Write("first", 1);
  const std::string second = Write("second", 2);
  const auto engine = Start(first);
  CollectingSink sink;
  std::thread updates([&] {
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(ControlAndWait(*engine, WeightsAt(i % 2 ? first : second)).ok());
  });
  for (int i = 0; i < 100; ++i) {
    GenerateRequest request = Greedy({3, static_cast<TokenId>(i % 30), 4}, 20);
    const StreamId stream = request.stream;
    ASSERT_TRUE(engine->Submit(std::move(request), &sink).ok());
    if (i % 3 == 0) engine->Abort(stream, kNoShard);
  }
  sink.WaitForEnds(100);
  updates.join();
  const EngineLoad load = engine->load();
  EXPECT_EQ(load.running + load.waiting + load.kv_cells_used, 0);
  EXPECT_TRUE(load.healthy);
}

}  // namespace
}  // namespace portico::llama
