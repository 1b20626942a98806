#include "app/load/sglang_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace portico {
namespace {

using testing::ElementsAre;

TEST(SglangFlags, PassATypeOfTheCacheThatSglangKnows) {
  ModelOptions options;
  EXPECT_THAT(SglangFlags(options, "/m"), ElementsAre("--model-path", "/m"));
  options.kv_cache_dtype = "fp8_e5m2";
  EXPECT_THAT(SglangFlags(options, "/m"),
              ElementsAre("--model-path", "/m", "--kv-cache-dtype", "fp8_e5m2"));
}

}  // namespace
}  // namespace portico
