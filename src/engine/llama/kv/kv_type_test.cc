#include "engine/llama/kv/kv_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "engine/llama/engine_for_test.h"
#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(KvType, AllAreNamedWhereAnotherIsAskedFor) {
  const auto type = ParseKvType("int3");
  EXPECT_EQ(FieldOf(type.status()), "kv_cache_dtype");
  EXPECT_THAT(
      std::string(MessageOf(type.status())),
      AllOf(HasSubstr("int3"), HasSubstr("auto, float32, float16, bfloat16"), HasSubstr("q4_0")));
  EXPECT_EQ(*ParseKvType("bf16"), *ParseKvType("bfloat16"));
  EXPECT_FALSE(ParseKvType("auto")->has_value());
}

class KvTypeTest : public testing::Test {
 protected:
  // Two layers of two keys each, of so many columns.
  StatusOr<std::unique_ptr<LlamaEngine>> Start(int32_t head, const std::string& type,
                                               bool is_embedding = false) {
    RandomModel(SmallConfig("qwen3", {{"head_dim", head}})).Write(folder_.path());
    ModelOptions options;
    options.path = folder_.path();
    options.is_embedding = is_embedding;
    options.kv_cache_dtype = type;
    PORTICO_ASSIGN_OR_RETURN(auto model, LlamaModel::Load(options, nullptr));
    return NewLlamaEngine(std::move(model), {});
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  TempFolder folder_;
};

TEST_F(KvTypeTest, TheCacheHasTheTypeAndTheStartLineSaysIt) {
  constexpr int64_t kValues = 2 * 2 * 2 * 32;
  for (const auto& [type, name, bytes] : {std::tuple("auto", "float32", kValues * 4),
                                          {"float32", "float32", kValues * 4},
                                          {"float16", "float16", kValues * 2},
                                          {"bf16", "bfloat16", kValues * 2},
                                          {"q8_0", "q8_0", kValues / 32 * 34},
                                          {"q5_1", "q5_1", kValues / 32 * 24},
                                          {"q5_0", "q5_0", kValues / 32 * 22},
                                          {"q4_1", "q4_1", kValues / 32 * 20},
                                          {"q4_0", "q4_0", kValues / 32 * 18}}) {
    const auto engine = Start(32, type);
    ASSERT_TRUE(engine.ok()) << type << ": " << MessageOf(engine.status());
    EXPECT_EQ((*engine)->info().kv_bytes_per_cell, bytes) << type;
    EXPECT_THAT((*engine)->description(), HasSubstr(std::string(" of ") + name)) << type;
    CollectingSink sink;
    GenerateRequest request = Greedy({3, 1, 4, 1, 5}, 6);
    const StreamId stream = request.stream;
    ASSERT_TRUE((*engine)->Submit(std::move(request), &sink).ok());
    sink.WaitForEnds(1);
    EXPECT_EQ(sink.of(stream).tokens.size(), 6u) << type;
  }
}

TEST_F(KvTypeTest, BlocksThatDoNotDivideAHeadAreRefused) {
  const Status status = Start(16, "q8_0").status();
  EXPECT_EQ(FieldOf(status), "kv_cache_dtype");
  EXPECT_THAT(std::string(MessageOf(status)),
              AllOf(HasSubstr("q8_0"), HasSubstr("n_embd_head_k=16")));
}

// Portico's attention takes multiples of 16 columns. libllama's rounds what it multiplies to the cache's type.
TEST_F(KvTypeTest, ACacheThatWouldRoundFloat32ArithmeticIsRefused) {
  EXPECT_TRUE(Start(8, "float32").ok());
  for (const char* type : {"float16", "bfloat16"}) {
    const Status status = Start(8, type).status();
    EXPECT_EQ(FieldOf(status), "kv_cache_dtype") << type;
    EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("float32")) << type;
  }
}

TEST_F(KvTypeTest, AModelThatGivesVectorsRefusesATypeOfItsCache) {
  EXPECT_EQ(FieldOf(Start(32, "float16", /*is_embedding=*/true).status()), "kv_cache_dtype");
  EXPECT_TRUE(Start(32, "auto", /*is_embedding=*/true).ok());
}

}  // namespace
}  // namespace portico::llama
