#include "service/control/load_report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "engine/mock/mock_engine.h"

namespace portico {
namespace {

using std::chrono::milliseconds;

class LoadReportTest : public testing::Test {
 protected:
  LoadReportTest() {
    for (const char* id : {"first", "second"}) {
      MockEngineOptions options;
      options.vocab_size = 10;
      options.context_length = 100;
      options.max_running_requests = 4;
      auto model = std::make_unique<ServingModel>();
      model->id = id;
      model->engine = NewMockEngine(options);
      models_.Add(std::move(model));
    }
  }

  JsonArray Reports(std::optional<int64_t> rank = std::nullopt, LoadParts parts = {}) {
    return LoadReports(models_, meter_, rank, parts);
  }

  ModelRegistry models_;
  LoadMeter meter_;
};

TEST_F(LoadReportTest, EveryModelIsARank) {
  EXPECT_TRUE(Reports().empty()) << "still loading";
  models_.Publish();
  const JsonArray all = Reports();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].GetInt("dp_rank", -1), 1);
  EXPECT_EQ(all[1].GetString("model"), "second");
  EXPECT_EQ(all[1].GetInt("max_total_num_tokens", -1), 400);
  EXPECT_EQ(all[1].GetInt("num_running_reqs", -1), 0);
  EXPECT_EQ(all[1].GetDouble("token_usage", -1), 0);
  ASSERT_NE(all[1].Find("queues"), nullptr);
  EXPECT_EQ(all[1].Find("memory")->GetInt("token_capacity", -1), 400);
}

TEST_F(LoadReportTest, ARankCanBeChosenAndAnUnknownOneGivesNothing) {
  models_.Publish();
  ASSERT_EQ(Reports(1).size(), 1u);
  EXPECT_EQ(Reports(1)[0].GetString("model"), "second");
  EXPECT_TRUE(Reports(2).empty());
  EXPECT_TRUE(Reports(-1).empty());
}

// Two ranks, the first of which measures its rates.
class TwoRanks final : public Engine {
 public:
  TwoRanks() {
    info_.max_total_tokens = 300;
    info_.max_running_requests = 8;
  }
  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest, TokenSink*) override {
    return Error(StatusCode::kUnavailable, "it only carries");
  }
  void Abort(StreamId, ShardIndex) override {}
  EngineLoad load() const override { return {.running = 3}; }
  std::vector<EngineLoad> rank_loads() const override {
    return {{.running = 1,
             .kv_cells_used = 50,
             .kv_cells_total = 100,
             .tokens_per_second = 7,
             .cache_hit_rate = 0.5},
            {.running = 2, .prompt_tokens = 8, .cached_tokens = 2}};
  }
  void Stop() override {}

 private:
  EngineInfo info_;
};

TEST_F(LoadReportTest, EveryDataParallelRankOfAModelHasItsOwnReport) {
  // All ranks of an engine were shown as one, whose number was the model's.
  auto model = std::make_unique<ServingModel>();
  model->id = "parallel";
  model->engine = std::make_unique<TwoRanks>();
  models_.Add(std::move(model));
  models_.Publish();
  const JsonArray all = Reports();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2].GetInt("dp_rank", -1), 2);
  EXPECT_EQ(all[2].GetString("model"), "parallel");
  EXPECT_EQ(all[2].GetInt("num_running_reqs", -1), 1);
  EXPECT_EQ(all[2].GetDouble("token_usage", -1), 0.5);
  EXPECT_EQ(all[2].GetDouble("gen_throughput", -1), 7);
  EXPECT_EQ(all[2].GetDouble("cache_hit_rate", -1), 0.5);
  EXPECT_EQ(all[2].GetInt("max_running_requests", -1), 4);
  EXPECT_EQ(all[3].GetInt("num_running_reqs", -1), 2);
  EXPECT_EQ(all[3].GetInt("max_total_num_tokens", -1), 150);
  EXPECT_EQ(all[3].GetDouble("cache_hit_rate", -1), 0.25);
  ASSERT_EQ(Reports(3).size(), 1u);
  EXPECT_EQ(LoadsBody(all).Find("aggregate")->GetInt("total_running_reqs", -1), 3);
}

TEST_F(LoadReportTest, PartsAreLeftOutUnlessTheyAreIncluded) {
  models_.Publish();
  const auto parts = LoadParts::Parse("core,queues");
  ASSERT_TRUE(parts.ok());
  const Json report = Reports(0, *parts)[0];
  EXPECT_EQ(report.Find("memory"), nullptr);
  EXPECT_NE(report.Find("queues"), nullptr);
  EXPECT_TRUE(LoadParts::Parse("all")->memory);
  EXPECT_TRUE(LoadParts::Parse("")->memory);
  EXPECT_FALSE(LoadParts::Parse("core,spec,lora,disagg")->queues);
  EXPECT_EQ(FieldOf(LoadParts::Parse("core,weather").status()), "include");
}

TEST_F(LoadReportTest, APauseShows) {
  models_.Publish();
  ASSERT_TRUE(ControlAndWait(*models_.models()[0]->engine, PauseControl{PauseMode::kInPlace}).ok());
  EXPECT_TRUE(Reports()[0].GetBool("is_pause", false));
  EXPECT_FALSE(Reports()[1].GetBool("is_pause", true));
}

TEST_F(LoadReportTest, TheBodySumsTheRanksUp) {
  models_.Publish();
  const Json body = LoadsBody(Reports());
  EXPECT_EQ(body.GetInt("dp_rank_count", -1), 2);
  EXPECT_EQ(body.Find("loads")->as_array().size(), 2u);
  EXPECT_EQ(body.Find("aggregate")->GetInt("total_reqs", -1), 0);
  const Json old = OldLoadsBody(Reports());
  EXPECT_EQ(old.as_array()[0].GetInt("num_reqs", -1), 0);
  EXPECT_EQ(old.as_array()[0].GetInt("num_waiting_reqs", -1), 0);
}

TEST(LoadMeterTest, TheRateIsTheMeanSinceTheReadingBefore) {
  LoadMeter meter;
  const TimePoint start = Clock::now();
  EXPECT_EQ(meter.TokensPerSecond(nullptr, 0, 100, start), 0);
  EXPECT_EQ(meter.TokensPerSecond(nullptr, 0, 150, start + milliseconds(500)), 0);
  EXPECT_EQ(meter.TokensPerSecond(nullptr, 0, 300, start + milliseconds(2000)), 100);
  EXPECT_EQ(meter.TokensPerSecond(nullptr, 0, 999, start + milliseconds(2100)), 100);
}

}  // namespace
}  // namespace portico
