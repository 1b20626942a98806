#include "api/gateway/merge_metrics.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

TEST(MergedMetrics, LeavesOutLinesForWhichAReaderWouldRefuseTheWholeText) {
  // One worker's broken line cost the metrics of all.
  const std::string broken[] = {"Internal Server Error",
                                "a",
                                "a one",
                                "a 1 2 3",
                                "a 1 now",
                                "a 1e999",
                                "9a 1",
                                "a-b 1",
                                "a{ 1",
                                "a{b} 1",
                                "a{b=1} 1",
                                "a{b=\"1\" 1",
                                "a{b=\"1} 1",
                                "a{b=\"1\"c=\"2\"} 1",
                                "a{b=\"\\x\"} 1",
                                "a{b=\"1\\\"} 1",
                                "a{9=\"1\"} 1",
                                "a{b:c=\"1\"} 1",
                                "a{b=\"1\"}",
                                "a{b=\"1\",b=\"2\"} 1",
                                "a{__name__=\"b\"} 1",
                                "a{worker=\"1\",exported_worker=\"2\"} 1",
                                "a{b=\"\xff\"} 1",
                                std::string("a{b=\"\0\"} 1", 10),
                                "a{b=\"1\"} 1 # {c=\"2\"} 3"};
  for (const std::string& line : broken) {
    MergedMetrics merged;
    merged.Add("w1", line + "\n");
    EXPECT_EQ(merged.Text(), "") << line;
    merged.Add("w1", line);
    merged.Add("w2", "good 1\n" + line);
    EXPECT_EQ(merged.Text(), "good{worker=\"w2\"} 1\n") << line;
  }
  MergedMetrics merged;
  merged.Add(
      "w1",
      "# TYPE a nonsense\n# TYPE a gauge\n# TYPE a counter\n# HELP a \xff\n# HELP a-b x\na 1\n");
  EXPECT_EQ(merged.Text(), "# TYPE a gauge\na{worker=\"w1\"} 1\n");
}

TEST(MergedMetrics, KeepsAllThatTheFormatAllows) {
  MergedMetrics merged;
  merged.Add("w1",
             "a +Inf\na NaN\na -1.5e-3 -7\na\t2\na { b = \"1\" } 1\na {b=\"} \\\"\\\\\\n,\",} 3\n");
  EXPECT_EQ(merged.Text(),
            "a{worker=\"w1\"} +Inf\na{worker=\"w1\"} NaN\na{worker=\"w1\"} -1.5e-3 -7\n"
            "a{worker=\"w1\"} 2\na{worker=\"w1\",b=\"1\"} 1\n"
            "a{worker=\"w1\",b=\"} \\\"\\\\\\n,\"} 3\n");
}

TEST(MergedMetrics, AWorkersOwnLabelOfThatNameIsRenamed) {
  // As of a gateway behind this one: the name occurred twice, which is malformed.
  MergedMetrics merged;
  merged.Add("w1", "a{worker=\"w2\",b=\"1\"} 1\n");
  EXPECT_EQ(merged.Text(), "a{worker=\"w1\",exported_worker=\"w2\",b=\"1\"} 1\n");
}

TEST(MergedMetrics, AnAnswerInPartsIsTheSameAsAWhole) {
  const std::string text =
      "# HELP b Seconds.\n# TYPE b histogram\nb_bucket{le=\"1\"} 2\nb_sum 3\n\nb_count 2\nc 1";
  MergedMetrics whole;
  whole.Add("w1", text);
  whole.Add("w2", text);
  for (size_t bytes = 1; bytes < text.size(); ++bytes) {
    MergedMetrics parts;
    for (const char* worker : {"w1", "w2"}) {
      std::string_view rest = text;
      while (!rest.empty()) {
        const size_t before = rest.size();
        parts.AddPart(worker, &rest, bytes);
        ASSERT_LT(rest.size(), before);
      }
      parts.EndAnswer();
    }
    EXPECT_EQ(parts.Text(), whole.Text()) << bytes;
  }
}

TEST(MergedMetrics, ALineWithoutAnEndIsLeftOut) {
  // Its labels were sorted by name, and took a shard some tenths of a second.
  std::string line = "a{";
  while (line.size() <= MergedMetrics::kMaxLine)
    line += "l" + std::to_string(line.size()) + "=\"\",";
  MergedMetrics merged;
  merged.Add("w1", line + "} 1\nb 2\n");
  EXPECT_EQ(merged.Text(), "b{worker=\"w1\"} 2\n");
}

}  // namespace
}  // namespace portico::api
