#include "api/query.h"

#include <gtest/gtest.h>

namespace portico::api {
namespace {

TEST(QueryTest, TheFirstValueOfANameCountsAndIsDecoded) {
  EXPECT_EQ(**QueryValue("a=1&include=core%2Cqueues&include=all", "include"), "core,queues");
  EXPECT_EQ(**QueryValue("a", "a"), "");
  EXPECT_EQ(**QueryValue("a=", "a"), "");
  EXPECT_FALSE(QueryValue("", "a")->has_value());
  EXPECT_FALSE(QueryValue("ab=1&&", "a")->has_value());
  EXPECT_EQ(FieldOf(QueryValue("a=%zz", "a").status()), "a");
}

TEST(QueryTest, IntegersAreWhole) {
  EXPECT_EQ(**QueryInt("dp_rank=-3", "dp_rank"), -3);
  EXPECT_FALSE(QueryInt("", "dp_rank")->has_value());
  for (const char* text :
       {"dp_rank=", "dp_rank=1x", "dp_rank=1.5", "dp_rank=99999999999999999999"}) {
    EXPECT_EQ(FieldOf(QueryInt(text, "dp_rank").status()), "dp_rank") << text;
  }
}

}  // namespace
}  // namespace portico::api
