#include "message/sglang/requests.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/source_dir_for_test.h"
#include "message/sglang/decode.h"
#include "message/sglang/encode.h"
#include "message/sglang/outputs.h"

namespace portico::sglang {
namespace {

Json Manifest() {
  std::ifstream file(SourceDir() + "/tests/sglang/manifest-0.5.23.json");
  std::stringstream text;
  text << file.rdbuf();
  return *Json::Parse(text.str());
}

Json* MemberOf(Json* manifest, std::string_view structure, std::string_view name) {
  for (Json& field : manifest->Find("structs")->Find(structure)->Find("fields")->as_array()) {
    if (field.GetString("name") == name) return &field;
  }
  return nullptr;
}

// A package whose message has one field more, in front of all others.
void Insert(Json* manifest, std::string_view structure, Json field) {
  JsonArray& fields = manifest->Find("structs")->Find(structure)->Find("fields")->as_array();
  fields.insert(fields.begin(), std::move(field));
  const bool tagged = manifest->Find("structs")->Find(structure)->Find("tag")->is_string();
  for (size_t i = 0; i < fields.size(); ++i) {
    fields[i].Set("index", static_cast<int64_t>(i + (tagged ? 1 : 0)));
  }
}

TEST(SglangRequests, MeanWhatTheySayInAnyPlaceOfTheLayout) {
  Json manifest = Manifest();
  Insert(&manifest, "SamplingParams",
         JsonObject{{"name", "new_knob"}, {"type", "int"}, {"required", false}, {"default", 7}});
  const auto schema = *Schema::Parse(manifest);
  const auto encoder = *RequestEncoder::Make(*schema);
  const std::vector<TokenId> ids{1, 2, 300};
  const std::vector<std::string> stops{"END"};
  WireGenerate wire;
  wire.rid = "r";
  wire.ids = ids;
  wire.sampling.temperature = 0.5;
  wire.sampling.stop_strs = stops;
  wire.priority = 4;
  std::string frame;
  ASSERT_TRUE(encoder->Encode(wire, &frame).ok());
  const auto message = DecodeMessage(*schema, frame);
  ASSERT_TRUE(message.ok()) << message.status();
  const Value& sampling = *message->fields.Find("sampling_params");
  EXPECT_EQ(*sampling.Find("new_knob"), Value(7));
  EXPECT_EQ(*sampling.Find("temperature"), Value(0.5));
  EXPECT_EQ(*sampling.Find("stop_strs"), Value(List{"END"}));
  EXPECT_EQ(*sampling.Find("stop_str_max_len"), Value(3));
  EXPECT_EQ(*sampling.Find("is_normalized"), Value(true));
  EXPECT_EQ(*message->fields.Find("priority"), Value(4));
  EXPECT_EQ(*message->fields.Find("stream"), Value(true));
}

TEST(SglangRequests, ARequiredFieldThatNobodyKnowsIsNamed) {
  Json manifest = Manifest();
  Insert(&manifest, "TokenizedGenerateReqInput",
         JsonObject{{"name", "must_have"}, {"type", "str"}, {"required", true}});
  const auto schema = *Schema::Parse(manifest);
  const auto encoder = RequestEncoder::Make(*schema);
  EXPECT_EQ(encoder.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(encoder.status()).find("must_have (str)"), std::string_view::npos);
}

TEST(SglangRequests, AFieldOfAnotherTypeIsNamed) {
  Json manifest = Manifest();
  MemberOf(&manifest, "SamplingParams", "temperature")->Set("type", "str");
  MemberOf(&manifest, "SamplingParams", "temperature")->Set("default", "1");
  const auto schema = *Schema::Parse(manifest);
  EXPECT_NE(MessageOf(RequestEncoder::Make(*schema).status()).find("temperature (str)"),
            std::string_view::npos);
}

TEST(SglangRequests, WhatThePackageHasNoPlaceForIsRefusedAndNotDropped) {
  Json manifest = Manifest();
  MemberOf(&manifest, "TokenizedGenerateReqInput", "cache_salt")->Set("name", "other");
  const auto schema = *Schema::Parse(manifest);
  const auto encoder = *RequestEncoder::Make(*schema);
  const std::vector<TokenId> ids{1};
  WireGenerate wire;
  wire.rid = "r";
  wire.ids = ids;
  std::string frame;
  EXPECT_TRUE(encoder->Encode(wire, &frame).ok());
  wire.cache_salt = "salt";
  EXPECT_EQ(FieldOf(encoder->Encode(wire, &frame)), "cache_salt");
}

TEST(SglangRequests, AManifestThatIsNoneIsRefused) {
  EXPECT_FALSE(Schema::Parse(Json()).ok());
  EXPECT_FALSE(Schema::Parse(JsonObject{{"manifest_version", 2}}).ok());
  Json torn = Manifest();
  torn.Find("structs")->Set("PickleWrapper", JsonObject{});
  EXPECT_FALSE(Schema::Parse(torn).ok());
  Json unbound = Manifest();
  MemberOf(&unbound, "TokenizedGenerateReqInput", "session_params")->Set("type", "struct:None");
  EXPECT_FALSE(Schema::Parse(unbound).ok());
}

TEST(SglangOutputs, RowsAreReadInColumnsAndTornFramesAreRefused) {
  const auto schema = *Schema::Parse(Manifest());
  const auto reader = *OutputReader::Make(*schema, "BatchEmbeddingOutput");
  const Map refusal{{"type", "abort"}, {"message", "no"}, {"status_code", 400}};
  const Value fields = Map{{"rids", List{"a", "b"}},
                           {"finished_reasons", List{Value(), refusal}},
                           {"embeddings", List{List{0.5, 1.0}, List{}}},
                           {"prompt_tokens", List{3, 1}},
                           {"cached_tokens", List{0, 0}},
                           {"placeholder_tokens_idx", Value()},
                           {"placeholder_tokens_val", Value()}};
  const std::string frame = *EncodeMessage(*schema, "BatchEmbeddingOutput", fields);
  OutputBatch batch;
  ASSERT_TRUE(reader.Read(frame, &batch));
  ASSERT_EQ(batch.rows(), 2u);
  std::vector<float> values;
  std::vector<std::pair<int64_t, float>> sparse;
  EXPECT_TRUE(batch.Embedding(0, &values, &sparse));
  EXPECT_EQ(values, (std::vector<float>{0.5f, 1.0f}));
  FinishInfo info;
  EXPECT_TRUE(batch.Finish(1, &info));
  EXPECT_EQ(info.kind, FinishInfo::Kind::kAbort);
  EXPECT_EQ(info.status_code, 400);
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(reader.Read(std::string_view(frame).substr(0, size), &batch)) << size;
  }
}

}  // namespace
}  // namespace portico::sglang
