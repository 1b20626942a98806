#include "router/fleet/load_report.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

const TimePoint kNow = Clock::now();

TEST(ReadLoads, AddsUpTheRanksOfOneWorker) {
  const auto load = ReadLoads(R"({"dp_rank_count": 2, "loads": [
      {"dp_rank": 0, "num_running_reqs": 3, "num_waiting_reqs": 1, "num_used_tokens": 100,
       "max_total_num_tokens": 1000, "token_usage": 0.1, "cache_hit_rate": 0.5, "gen_throughput": 50.5},
      {"dp_rank": 1, "num_running_reqs": 2, "num_waiting_reqs": 0, "num_used_tokens": 300,
       "max_total_num_tokens": 1000, "token_usage": 0.3, "cache_hit_rate": 0.25, "gen_throughput": 20}]})",
                              kNow);
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->running_requests, 5);
  EXPECT_EQ(load->waiting_requests, 1);
  EXPECT_EQ(load->used_tokens, 400);
  EXPECT_EQ(load->total_tokens, 2000);
  EXPECT_DOUBLE_EQ(load->token_usage, 0.2);
  EXPECT_DOUBLE_EQ(load->throughput, 70.5);
  EXPECT_DOUBLE_EQ(load->hit_rate, 0.375);
  EXPECT_EQ(load->at, kNow);
}

TEST(ReadLoads, ReadsTheOldForm) {
  const auto load = ReadLoads(
      R"([{"dp_rank": 0, "num_reqs": 7, "num_waiting_reqs": 2, "num_tokens": 64}])", kNow);
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->running_requests, 5);
  EXPECT_EQ(load->waiting_requests, 2);
  EXPECT_EQ(load->used_tokens, 64);
  EXPECT_EQ(load->total_tokens, -1);
  EXPECT_EQ(load->token_usage, -1);
}

TEST(ReadLoads, TakesNothingFromAWorkerThatLiesOrAnswersAnotherThing) {
  for (const char* body :
       {"", "null", "[]", "{}", R"({"loads": {}})", R"({"loads": [1]})", R"({"loads": [{}]})",
        R"({"loads": "x"})", R"({"loads": [{"num_running_reqs": -4}]})",
        R"({"loads": [{"num_running_reqs": "4"}]})", R"({"loads": [{"num_running_reqs": 1e300}]})",
        "<html>"}) {
    EXPECT_FALSE(ReadLoads(body, kNow).has_value()) << body;
  }
}

TEST(ReadLoadMetrics, ReadsTheGaugesOfVllm) {
  const auto load = ReadLoadMetrics(
      "# TYPE vllm:num_requests_running gauge\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"a b\"} 4.0\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"a b\"} 2.0\n"
      "vllm:num_requests_waiting 3.0 1700000000\n"
      "vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 9\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.25\n",
      kNow);
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->running_requests, 6);
  EXPECT_EQ(load->waiting_requests, 3);
  EXPECT_DOUBLE_EQ(load->token_usage, 0.375);
}

TEST(ReadLoadMetrics, TakesNothingFromOthersMetrics) {
  for (const char* text : {"", "up 1\n", "vllm:num_requests_running\n",
                           "vllm:num_requests_running{ 4\n", "vllm:num_requests_running NaN\n",
                           "vllm:num_requests_running -1\n", "vllm:num_requests_running 1e300\n"}) {
    EXPECT_FALSE(ReadLoadMetrics(text, kNow).has_value()) << text;
  }
}

}  // namespace
}  // namespace portico::router
