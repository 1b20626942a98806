#include "router/fleet/engine_steps.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::router {
namespace {

std::string StepPage(std::string_view generated, std::string_view usage = "0.25") {
  std::string page =
      "# HELP vllm:generation_tokens_total Number of generation tokens processed.\n"
      "# TYPE vllm:generation_tokens_total counter\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"a \\\"b}\"} 1.0\n"
      "vllm:prompt_tokens_total{engine=\"0\",model_name=\"a \\\"b}\"} 0.0\n"
      "vllm:generation_tokens_total{engine=\"0\",model_name=\"a \\\"b}\"} ";
  page += generated;
  page += "\nvllm:kv_cache_usage_perc{engine=\"0\",model_name=\"a \\\"b}\"} ";
  page += usage;
  page += "\nprocess_cpu_seconds_total 9.0\n";
  return page;
}

std::optional<uint64_t> StepMark(std::string_view page) {
  EngineSteps steps;
  steps.Add(page);
  return steps.mark();
}

bool KnowsSteps(std::string_view page) {
  EngineSteps steps;
  steps.Add(page);
  return steps.known();
}

TEST(EngineSteps, SayNothingOfAnEngineWithoutRequests) {
  std::string page = StepPage("7.0");
  const size_t running = page.find("\"} 1.0");
  page[running + 3] = '0';
  EXPECT_EQ(StepMark(page), std::nullopt);
  EXPECT_TRUE(KnowsSteps(page));
  EXPECT_NE(StepMark(page + "vllm:num_requests_waiting{engine=\"0\"} 2.0\n"), std::nullopt);
}

TEST(EngineSteps, HaveAnotherMarkAfterAnyStep) {
  const auto mark = StepMark(StepPage("7.0"));
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(StepMark(StepPage("7.0")), mark);
  EXPECT_NE(StepMark(StepPage("8.0")), mark);
  EXPECT_NE(StepMark(StepPage("7.0", "0.26")), mark) << "a part of a long prefill";
  EXPECT_NE(StepMark(StepPage("1.0")), mark) << "it has restarted";
}

TEST(EngineSteps, AreNotMovedByWhatTheServerDoesWithoutItsEngine) {
  const std::string page = StepPage("7.0");
  EXPECT_EQ(StepMark(page + "python_gc_collections_total 4\nhttp_requests_total 8\n"
                            "vllm:request_success_total{finished_reason=\"abort\"} 2\n"
                            "vllm:generation_tokens_created{engine=\"0\"} 1.7e9\n"),
            StepMark(page));
}

TEST(EngineSteps, AreTheSameInAnyOrderAndWithTimes) {
  const std::string running = "vllm:num_requests_running{engine=\"0\"} 1\n";
  const auto mark = StepMark(running +
                             "vllm:generation_tokens_total{engine=\"0\"} 5\n"
                             "vllm:generation_tokens_total{engine=\"1\"} 3\n");
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(StepMark("vllm:generation_tokens_total{engine=\"1\"} 3 1700000001\n" + running +
                     "vllm:generation_tokens_total{engine=\"0\"} 5 1700000002"),
            mark);
  // A sum of the values would not tell these apart.
  EXPECT_NE(StepMark(running + "vllm:generation_tokens_total{engine=\"0\"} 4\n"
                               "vllm:generation_tokens_total{engine=\"1\"} 4\n"),
            mark);
}

TEST(EngineSteps, AreReadInPartsOfAnySize) {
  const std::string page = StepPage("7.0");
  for (size_t size = 1; size <= page.size(); ++size) {
    EngineSteps steps;
    for (size_t at = 0; at < page.size(); at += size) {
      steps.Add(std::string_view(page).substr(at, size));
    }
    EXPECT_EQ(steps.mark(), StepMark(page)) << size;
  }
}

TEST(EngineSteps, SayNothingWithoutACountedToken) {
  EXPECT_FALSE(StepMark(StepPage("0.0")).has_value());
  EXPECT_TRUE(KnowsSteps(StepPage("0.0")));
  for (const char* page :
       {"", "{}", "<html>", "up 1\n", "vllm:num_requests_running 4\n",
        "vllm:generation_tokens_total\n", "vllm:generation_tokens_total{ 4\n",
        "vllm:generation_tokens_total NaN\n", "vllm:generation_tokens_total +Inf\n",
        "vllm:generation_tokens_total 4x\n", "\n\n\r\n", "# vllm:generation_tokens_total 4\n"}) {
    EXPECT_FALSE(KnowsSteps(page)) << page;
    EXPECT_FALSE(StepMark(page).has_value()) << page;
  }
}

TEST(EngineSteps, SkipALineWithoutEndAndGoOnBehindIt) {
  EngineSteps steps;
  steps.Add("vllm:generation_tokens_total{model_name=\"");
  for (int i = 0; i < 1000; ++i) steps.Add(std::string(1000, 'x'));
  steps.Add("\"} 3\n" + StepPage("7.0"));
  EXPECT_EQ(steps.mark(), StepMark(StepPage("7.0")));
}

}  // namespace
}  // namespace portico::router
