#include "api/openai/embedding/decode_score.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::api::openai {
namespace {

class DecodeScoreTest : public testing::Test {
 protected:
  StatusOr<ScoreRequest> Decode(const std::string& body) { return DecodeScore(body, parser_); }
  std::string FieldAtFault(const std::string& body) {
    auto request = Decode(body);
    return request.ok() ? "nothing" : FieldOf(request.status());
  }
  simdjson::dom::parser parser_;
};

TEST_F(DecodeScoreTest, TextsAndIdsAreTaken) {
  auto texts = Decode(R"({"query":"q","items":["a","b"],"label_token_ids":[1,2],"model":"m",)"
                      R"("apply_softmax":true,"item_first":true})");
  ASSERT_TRUE(texts.ok()) << MessageOf(texts.status());
  EXPECT_EQ(texts->query.text, "q");
  EXPECT_EQ(texts->items[1].text, "b");
  EXPECT_EQ(texts->label_token_ids, (std::vector<TokenId>{1, 2}));
  EXPECT_TRUE(texts->apply_softmax && texts->item_first);
  auto ids = Decode(R"({"query":[1],"items":[[2],[3,4]],"label_token_ids":[1]})");
  ASSERT_TRUE(ids.ok()) << MessageOf(ids.status());
  EXPECT_EQ(ids->items[1].ids, (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(Decode(R"({"query":"q","items":"a","label_token_ids":[1]})")->items.size(), 1u);
}

// SGLang answers it with no scores.
TEST_F(DecodeScoreTest, NoItemsAreARequestToo) {
  for (const char* query : {"\"q\"", "[1]"}) {
    const auto request =
        Decode(R"({"items":[],"label_token_ids":[1],"query":)" + std::string(query) + "}");
    ASSERT_TRUE(request.ok()) << MessageOf(request.status());
    EXPECT_TRUE(request->items.empty());
  }
  EXPECT_EQ(FieldAtFault(R"({"query":"q","items":null,"label_token_ids":[1]})"), "items");
}

TEST_F(DecodeScoreTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {R"({"items":["a"],"label_token_ids":[1]})", "query"},
      {R"({"query":"q","label_token_ids":[1]})", "items"},
      {R"({"query":7,"items":["a"],"label_token_ids":[1]})", "query"},
      {R"({"query":["q"],"items":["a"],"label_token_ids":[1]})", "query"},
      {R"({"query":[],"items":["a"],"label_token_ids":[1]})", "query"},
      {R"({"query":"q","items":[[]],"label_token_ids":[1]})", "items"},
      {R"({"query":"q","items":["a",7],"label_token_ids":[1]})", "items"},
      {R"({"query":"q","items":[[1]],"label_token_ids":[1]})", "items"},
      {R"({"query":[1],"items":[2],"label_token_ids":[1]})", "items"},
      {R"({"query":"q","items":["a"],"label_token_ids":[]})", "label_token_ids"},
      {R"({"query":"q","items":["a"],"label_token_ids":1})", "label_token_ids"},
      {R"({"query":"q","items":["a"],"label_token_ids":[-1]})", "label_token_ids"},
      {R"({"query":"q","items":["a"],"label_token_ids":["x"]})", "label_token_ids"},
      {R"({"query":"q","items":["a"],"label_token_ids":[1],"apply_softmax":1})", "apply_softmax"},
      {R"({"query":"q","items":["a"],"label_token_ids":[1],"item_first":"no"})", "item_first"},
      {R"({"query":"q","items":["a"],"truncate_prompt_tokens":0})", "truncate_prompt_tokens"},
  };
  for (const auto& [body, field] : bad) EXPECT_EQ(FieldAtFault(body), field) << body;
}

}  // namespace
}  // namespace portico::api::openai
