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

TEST(QueryTest, AValueIsDecodedWithItsSlashesAndItsSpaces) {
  // Escaped slashes stayed as they were, as in a path: no URL could be a value.
  EXPECT_EQ(**QueryValue("url=http%3A%2F%2F127.0.0.1%3a9%2fv1", "url"), "http://127.0.0.1:9/v1");
  EXPECT_EQ(**QueryValue("a=b+c%2Bd%20e", "a"), "b c+d e");
  EXPECT_EQ(**QueryValue("a=%252F", "a"), "%2F");
  for (const char* bad : {"a=%", "a=%2", "a=%g0", "a=%00", "a=%0a"}) {
    EXPECT_EQ(FieldOf(QueryValue(bad, "a").status()), "a") << bad;
  }
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
