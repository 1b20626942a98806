#include "router/fleet/pair_mode.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

TEST(PairModeOf, ReadsTheModeFromTheOptionsOfAServer) {
  EXPECT_EQ(PairModeOf(R"({"model_path":"m","disaggregation_mode":"prefill"})"), "prefill");
  EXPECT_EQ(PairModeOf(R"({"server_args":{"disaggregation_mode":"null"}})"), "null");
}

TEST(PairModeOf, IsEmptyWhereAServerDoesNotSayIt) {
  for (const char* info :
       {"", "{}", "[]", "ok", R"({"disaggregation_mode":null})", R"({"disaggregation_mode":1})",
        R"({"server_args":[]})", R"({"server_args":{"disaggregation_mode":2}})"}) {
    EXPECT_EQ(PairModeOf(info), "") << info;
  }
}

TEST(CheckPairMode, RefusesAWorkerThatRunsAsAnotherHalfOrAsNone) {
  EXPECT_TRUE(CheckPairMode(Role::kPrefill, "prefill").ok());
  EXPECT_TRUE(CheckPairMode(Role::kDecode, "").ok());
  EXPECT_EQ(MessageOf(CheckPairMode(Role::kDecode, "null")),
            "it is configured as decode worker, but runs with --disaggregation-mode null");
  EXPECT_FALSE(CheckPairMode(Role::kPrefill, "decode").ok());
}

}  // namespace
}  // namespace portico::router
