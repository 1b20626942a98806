#include "engine/sglang/link/load_snapshot.h"

#include <gtest/gtest.h>

#include "message/msgpack/writer.h"

namespace portico::sglang {
namespace {

constexpr size_t kSlot = 256;

void AppendLittle(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

std::string SnapshotOf(const std::vector<std::string>& maps) {
  std::string file = "SLNS";
  AppendLittle(2, 2, &file);
  AppendLittle(maps.size(), 2, &file);
  AppendLittle(kSlot, 4, &file);
  for (const std::string& map : maps) {
    AppendLittle(map.size(), 4, &file);
    file += map + std::string(kSlot - 4 - map.size(), '\0');
  }
  return file;
}

std::string MapOf(int64_t running, double rate) {
  std::string bytes;
  msgpack::Writer writer(&bytes);
  writer.Map(3);
  writer.Str("num_running_reqs");
  writer.Int(running);
  writer.Str("gen_throughput");
  writer.Float(rate);
  writer.Str("decode_moments");
  writer.Nil();
  return bytes;
}

TEST(LoadSnapshot, ARankThatIsBeingWrittenKeepsItsPlace) {
  // It was left out, so that the loads of the ranks behind it were shown as those of others.
  const auto loads = ParseLoads(SnapshotOf({"", MapOf(3, 12.5)}));
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_FALSE(loads[0].known);
  EXPECT_TRUE(loads[1].known);
  EXPECT_EQ(loads[1].running, 3);
  EXPECT_EQ(loads[1].tokens_per_second, 12.5);
  EXPECT_EQ(loads[1].cache_hit_rate, 0) << "defaults are left out";
}

TEST(LoadSnapshot, WhatIsNoSnapshotGivesNothing) {
  EXPECT_TRUE(ParseLoads("").empty());
  EXPECT_TRUE(ParseLoads("XXXX" + SnapshotOf({MapOf(1, 1)}).substr(4)).empty());
  const std::string whole = SnapshotOf({MapOf(1, 1), MapOf(2, 1)});
  EXPECT_EQ(ParseLoads(whole.substr(0, whole.size() - 1)).size(), 1u);
  const auto torn = ParseLoads(SnapshotOf({MapOf(1, 1).substr(0, 20)}));
  ASSERT_EQ(torn.size(), 1u);
  EXPECT_FALSE(torn[0].known);
  EXPECT_EQ(torn[0].running, 0);
  EXPECT_TRUE(ReadLoads("/nowhere").empty());
}

}  // namespace
}  // namespace portico::sglang
