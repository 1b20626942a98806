#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace portico {
namespace {

namespace fs = std::filesystem;

class ProcessorsTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  ~ProcessorsTest() override { fs::remove_all(root_); }

  const fs::path root_ = fs::path(testing::TempDir()) / "portico-processors";
};

TEST_F(ProcessorsTest, AQuotaIsRoundedUp) {
  Write("cpu.max", "max 100000\n");
  EXPECT_EQ(QuotaOf(root_, "0::/\n"), 0);
  Write("cpu.max", "150000 100000\n");
  EXPECT_EQ(QuotaOf(root_, "0::/\n"), 2);
  Write("cpu.max", "10000 100000\n");
  EXPECT_EQ(QuotaOf(root_, "0::/\n"), 1);
  Write("cpu.max", "400000 100000\n");
  EXPECT_EQ(QuotaOf(root_, "0::/\n"), 4);
}

TEST_F(ProcessorsTest, AGroupAroundMayAllowLess) {
  Write("a/cpu.max", "200000 100000\n");
  Write("a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(QuotaOf(root_, "0::/a/b\n"), 2);
  Write("a/cpu.max", "max 100000\n");
  EXPECT_EQ(QuotaOf(root_, "0::/a/b\n"), 8);
}

TEST_F(ProcessorsTest, ReadsVersionOneToo) {
  Write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  Write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(QuotaOf(root_, "5:memory:/job\n4:cpu,cpuacct:/job\n"), 3);
  Write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(QuotaOf(root_, "4:cpu,cpuacct:/job\n"), 0);
}

TEST_F(ProcessorsTest, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(QuotaOf(root_ / "nothing", "0::/a\n"), 0);
  EXPECT_EQ(QuotaOf(root_, "nonsense"), 0);
  Write("cpu.max", "what\n");
  EXPECT_EQ(QuotaOf(root_, "0::/\n"), 0);
}

TEST_F(ProcessorsTest, NoMoreThanTheAffinityMaskHas) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_GE(UsableProcessors(), 1);
  EXPECT_LE(UsableProcessors(), CPU_COUNT(&mask));
}

}  // namespace
}  // namespace portico
