#include "api/gateway/merge_metrics.h"

#include <gtest/gtest.h>

namespace portico::api {
namespace {

TEST(MergedMetrics, PutsTheWorkersSamplesUnderOneHeadEach) {
  MergedMetrics merged;
  merged.Add("w1",
             "# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n"
             "# HELP b Seconds.\n# TYPE b histogram\nb_bucket{le=\"1\"} 2\nb_sum 3\nb_count 2\n");
  merged.Add("w2",
             "# HELP a_total Things.\n# TYPE a_total counter\na_total{} 5\r\n"
             "# TYPE b histogram\nb_bucket{le=\"1\"} 0\nc 7 1700000000\n");
  EXPECT_EQ(merged.Text(),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total{worker=\"w1\"} "
            "1\na_total{worker=\"w2\"} 5\n"
            "# HELP b Seconds.\n# TYPE b histogram\nb_bucket{worker=\"w1\",le=\"1\"} "
            "2\nb_sum{worker=\"w1\"} 3\n"
            "b_count{worker=\"w1\"} 2\nb_bucket{worker=\"w2\",le=\"1\"} 0\n"
            "c{worker=\"w2\"} 7 1700000000\n");
}

TEST(MergedMetrics, LeavesOutWhatIsNoSample) {
  MergedMetrics merged;
  merged.Add("w1", "<html>\n\n# a comment\n{x} 1\nname_alone\n# TYPE \n# HELP nothing of it\n");
  EXPECT_EQ(merged.Text(), "");
}

}  // namespace
}  // namespace portico::api
