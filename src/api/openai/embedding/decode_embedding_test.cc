#include "api/openai/embedding/decode_embedding.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::api::openai {
namespace {

template <typename Decode>
std::string FieldAtFault(Decode decode, const std::string& body) {
  simdjson::dom::parser parser;
  auto request = decode(body, parser);
  return request.ok() ? "nothing" : FieldOf(request.status());
}

TEST(DecodeEmbeddingTest, InputsAreTextsOrIds) {
  simdjson::dom::parser parser;
  auto one = DecodeEmbedding(R"({"input":"a","model":"m","encoding_format":"base64"})", parser);
  ASSERT_TRUE(one.ok());
  EXPECT_FALSE(one->is_list);
  EXPECT_TRUE(one->base64);
  auto ids = DecodeEmbedding(R"({"input":[[1,2],[3]],"dimensions":8})", parser);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->inputs[0].ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(ids->dimensions, 8);
  auto native = DecodeEncode(R"({"text":["a","b"],"rid":"r"})", parser);
  ASSERT_TRUE(native.ok());
  EXPECT_EQ(native->inputs.size(), 2u);
  EXPECT_TRUE(DecodeEncode(R"({"input_ids":[1,2]})", parser).ok());
}

TEST(DecodeEmbeddingTest, AdaptersAreOneOrOneAnInput) {
  simdjson::dom::parser parser;
  auto one = DecodeEmbedding(R"({"input":["a","b"],"lora_path":"x"})", parser);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->lora_path.Of(1, ""), "x");
  auto each = DecodeEncode(R"({"text":["a","b"],"lora_path":[null,"y"]})", parser);
  ASSERT_TRUE(each.ok());
  EXPECT_EQ(each->lora_path.Of(0, ""), "");
  EXPECT_EQ(each->lora_path.Of(1, ""), "y");
  EXPECT_TRUE(DecodeNativeClassify(R"({"text":"a","lora_path":"x"})", parser).ok());
}

TEST(DecodeEmbeddingTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {R"({})", "input"},
      {R"({"input":7})", "input"},
      {R"({"input":""})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":["a",""]})", "input"},
      {R"({"input":["a",1]})", "input"},
      {R"({"input":[-1]})", "input"},
      {R"({"input":"a","encoding_format":"hex"})", "encoding_format"},
      {R"({"input":"a","dimensions":0})", "dimensions"},
      {R"({"input":"a","lora_path":7})", "lora_path"},
      {R"({"input":"a","lora_path":["x",1]})", "lora_path"},
      {R"({"input":"a","truncate_prompt_tokens":0})", "truncate_prompt_tokens"},
      {R"({"input":"a","truncate_prompt_tokens":-2})", "truncate_prompt_tokens"},
      {R"({"input":"a","normalize":1})", "normalize"},
      {R"({"input":"a","prompt_name":1})", "prompt_name"},
      {R"({"input":[1],"token_type_ids":[256]})", "token_type_ids"},
      {R"({"input":[1],"token_type_ids":[]})", "token_type_ids"},
      {R"({"input":"a","embed_overrides":[]})", "embed_overrides"},
      {R"({"input":"a","rid":["a",1]})", "rid"},
  };
  for (const auto& [body, field] : bad) EXPECT_EQ(FieldAtFault(DecodeEmbedding, body), field);
  const std::pair<const char*, const char*> native[] = {
      {R"({})", "text"},
      {R"({"text":[1]})", "text"},
      {R"({"input_ids":"a"})", "input_ids"},
      {R"({"input_ids":[]})", "input_ids"},
      {R"({"input_ids":[1],"text":"a"})", "text"},
      {R"({"text":"a","rid":7})", "rid"},
  };
  for (const auto& [body, field] : native) EXPECT_EQ(FieldAtFault(DecodeEncode, body), field);
}

// "priority": 0 was refused: it is what every request has that says nothing.
TEST(DecodeEmbeddingTest, WhatAsksForNothingIsTaken) {
  for (const char* member :
       {R"("priority":0)", R"("priority":0.0)", R"("priority":null)", R"("lora_path":"")",
        R"("cache_salt":"")", R"("extra_key":[""])", R"("custom_params":{})",
        R"("data_parallel_rank":0)", R"("background":false)", R"("image_data":[null])"}) {
    const std::string body = std::string("{\"input\":\"a\",") + member + "}";
    EXPECT_EQ(FieldAtFault(DecodeEmbedding, body), "nothing") << member;
  }
  for (const char* member : {R"("priority":1)", R"("priority":"0")", R"("priority":false)"}) {
    const std::string body = std::string("{\"input\":\"a\",") + member + "}";
    EXPECT_EQ(FieldAtFault(DecodeEmbedding, body), "priority") << member;
  }
}

TEST(DecodeEmbeddingTest, OptionsAreRead) {
  simdjson::dom::parser parser;
  auto request = DecodeEmbedding(
      R"({"input":[[1],[2]],"token_type_ids":[[0],[1]],"truncate_prompt_tokens":-1,)"
      R"("normalize":false,"prompt_name":"query","rid":["a","b"],"user":"u"})",
      parser);
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->token_types[1], std::vector<uint8_t>{1});
  EXPECT_EQ(request->truncate, kTruncateToLimit);
  EXPECT_EQ(request->normalize, false);
  EXPECT_EQ(request->prompt_name, "query");
  EXPECT_EQ(request->rid.Of(1, ""), "b");
}

TEST(DecodeEmbeddingTest, ThousandsOfTextsAreLeftToTheServicesLimit) {
  std::string body = R"({"input":["a")";
  for (int i = 0; i < 9999; ++i) body += R"(,"a")";
  simdjson::dom::parser parser;
  EXPECT_EQ(DecodeEmbedding(body + "]}", parser)->inputs.size(), 10000u);
}

TEST(DecodeClassifyTest, TheNativeRouteTakesBothForms) {
  simdjson::dom::parser parser;
  EXPECT_EQ(DecodeNativeClassify(R"({"text":"a"})", parser)->input_field, "text");
  auto request = DecodeNativeClassify(R"({"input":"a","use_activation":false})", parser);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->input_field, "input");
  EXPECT_FALSE(request->activation);
  EXPECT_EQ(FieldAtFault(DecodeNativeClassify, R"({"input":"a","text":"b"})"), "text");
}

TEST(DecodeRerankTest, ADocumentMayBeAnObjectWithAText) {
  simdjson::dom::parser parser;
  auto request = DecodeRerank(R"({"query":"q","documents":["a",{"text":"b"}]})", parser);
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->documents, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(FieldAtFault(DecodeRerank, R"({"query":"q","documents":[{"title":"b"}]})"),
            "documents");
}

TEST(DecodeRerankTest, AQueryAndDocumentsAreNeeded) {
  simdjson::dom::parser parser;
  auto request = DecodeRerank(R"({"query":"q","documents":["a","b"],"top_n":1})", parser);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->documents, (std::vector<std::string>{"a", "b"}));
  const std::pair<const char*, const char*> bad[] = {
      {R"({"documents":["a"]})", "query"},
      {R"({"query":"","documents":["a"]})", "query"},
      {R"({"query":"q"})", "documents"},
      {R"({"query":"q","documents":"a"})", "documents"},
      {R"({"query":"q","documents":[]})", "documents"},
      {R"({"query":"q","documents":[1]})", "documents"},
      {R"({"query":"q","documents":["a"],"top_n":0})", "top_n"},
      {R"({"query":"q","documents":["a"],"return_documents":1})", "return_documents"},
      {R"({"query":"q","documents":["a"],"instruct":1})", "instruct"},
  };
  for (const auto& [body, field] : bad) EXPECT_EQ(FieldAtFault(DecodeRerank, body), field);
}

}  // namespace
}  // namespace portico::api::openai
