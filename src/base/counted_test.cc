#include "base/counted.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

// "listening on 127.0.0.1:30000, 1 workers" was logged.
TEST(CountedTest, OnlyOneThingIsSingular) {
  EXPECT_EQ(Counted(1, "worker"), "1 worker");
  EXPECT_EQ(Counted(0, "worker"), "0 workers");
  EXPECT_EQ(Counted(21, "worker"), "21 workers");
}

}  // namespace
}  // namespace portico
