#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace portico {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Rendered(const Registry& registry) {
  std::string text;
  registry.Render(&text);
  return text;
}

TEST(Metrics, RendersFamiliesInTheOrderOfRegistration) {
  Registry registry;
  registry.AddCounter("b_total", "Second letter.").Add(3);
  registry.AddGauge("a", "First letter.").Set(0.25);
  EXPECT_EQ(Rendered(registry),
            "# HELP b_total Second letter.\n# TYPE b_total counter\nb_total 3\n"
            "# HELP a First letter.\n# TYPE a gauge\na 0.25\n");
}

TEST(Metrics, RendersAFamilyOnceForAllItsLabels) {
  Registry registry;
  registry.AddCounter("done_total", "Done.", {{"reason", "stop"}}).Add();
  registry.AddGauge("other", "Other.");
  registry.AddCounter("done_total", "Done.", {{"reason", "length"}}).Add(2);
  EXPECT_EQ(Rendered(registry),
            "# HELP done_total Done.\n# TYPE done_total counter\n"
            "done_total{reason=\"stop\"} 1\ndone_total{reason=\"length\"} 2\n"
            "# HELP other Other.\n# TYPE other gauge\nother 0\n");
}

TEST(Metrics, GivesTheSameMetricForTheSameNameAndLabels) {
  Registry registry;
  Counter& first = registry.AddCounter("x_total", "X.", {{"a", "1"}});
  EXPECT_EQ(&first, &registry.AddCounter("x_total", "X.", {{"a", "1"}}));
  EXPECT_NE(&first, &registry.AddCounter("x_total", "X.", {{"a", "2"}}));
}

TEST(Metrics, EscapesHelpAndLabelValues) {
  Registry registry;
  registry.AddGauge("g", "A \\ and\na \"quote\".", {{"model", "a\"b\\c\nd"}});
  EXPECT_EQ(Rendered(registry),
            "# HELP g A \\\\ and\\na \"quote\".\n# TYPE g gauge\n"
            "g{model=\"a\\\"b\\\\c\\nd\"} 0\n");
}

TEST(Metrics, RendersCumulativeBucketsWithSumAndCount) {
  Registry registry;
  Histogram& histogram = registry.AddHistogram("t_seconds", "T.", {0.1, 1}, {{"kind", "a"}});
  histogram.Observe(0.1);  // a bound belongs to its bucket
  histogram.Observe(0.5, 2);
  histogram.Observe(7);
  EXPECT_EQ(Rendered(registry),
            "# HELP t_seconds T.\n# TYPE t_seconds histogram\n"
            "t_seconds_bucket{kind=\"a\",le=\"0.1\"} 1\n"
            "t_seconds_bucket{kind=\"a\",le=\"1\"} 3\n"
            "t_seconds_bucket{kind=\"a\",le=\"+Inf\"} 4\n"
            "t_seconds_sum{kind=\"a\"} 8.1\n"
            "t_seconds_count{kind=\"a\"} 4\n");
}

TEST(Metrics, LeavesNaNOutOfAHistogram) {
  Histogram histogram({1});
  histogram.Observe(std::nan(""));
  histogram.Observe(INFINITY);
  EXPECT_THAT(histogram.Take().buckets, ElementsAre(0, 1));
}

TEST(Metrics, ComputesCallbacksAtEachScrape) {
  Registry registry;
  double value = 1;
  registry.AddCallbackGauge("now", "Now.", [&] { return value; });
  registry.AddCallbackCounter("ever_total", "Ever.", [&] { return 1e15; });
  EXPECT_THAT(Rendered(registry), HasSubstr("\nnow 1\n"));
  value = INFINITY;
  EXPECT_THAT(Rendered(registry), HasSubstr("\nnow +Inf\n"));
  EXPECT_THAT(Rendered(registry),
              HasSubstr("# TYPE ever_total counter\never_total 1000000000000000\n"));
}

TEST(Metrics, LosesNothingWhenManyThreadsCountAndOneScrapes) {
  constexpr int kThreads = 20;  // more than there are shards
  constexpr int kRounds = 2000;
  Registry registry;
  Counter& counter = registry.AddCounter("c_total", "C.");
  Gauge& gauge = registry.AddGauge("g", "G.");
  Histogram& histogram = registry.AddHistogram("h", "H.", {1, 2});
  std::atomic<bool> done{false};
  std::thread scraper([&] {
    while (!done) Rendered(registry);
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kRounds; ++k) {
        counter.Add();
        gauge.Add(1);
        histogram.Observe(1.5);
        registry.AddCounter("late_total", "L.", {{"k", std::to_string(k % 3)}}).Add();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  scraper.join();
  EXPECT_EQ(counter.Value(), uint64_t{kThreads} * kRounds);
  EXPECT_EQ(gauge.Value(), kThreads * kRounds);
  EXPECT_EQ(histogram.Take().count, uint64_t{kThreads} * kRounds);
  EXPECT_EQ(histogram.Take().sum, 1.5 * kThreads * kRounds);
}

TEST(MetricsDeathTest, EndsTheProcessWhenANameIsUsedAsTwoKinds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Registry registry;
  registry.AddCounter("x", "X.");
  EXPECT_DEATH(registry.AddGauge("x", "X."), "two kinds");
  EXPECT_DEATH(registry.AddGauge("1x", "X."), "no valid name");
  EXPECT_DEATH(registry.AddGauge("y", "Y.", {{"le", "1"}}), "no valid label");
}

TEST(Metrics, OffersBoundsThatRise) {
  Histogram(RequestSecondsBounds()).Observe(1);
  Histogram(TokenSecondsBounds()).Observe(1);
}

}  // namespace
}  // namespace portico
