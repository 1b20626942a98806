#include "router/proxy/request_facts.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

RequestFacts Read(std::string_view text, bool wants_text = true, bool cut = false) {
  simdjson::ondemand::parser parser;
  std::string body(text);
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  return ReadRequestFacts(parser, body, wants_text, cut);
}

TEST(RequestFactsTest, ReadsAChatRequest) {
  const RequestFacts facts =
      Read(R"({"messages":[{"role":"system","content":"be \"short\""},{"role":"user","content":)"
           R"([{"type":"text","text":" and kind"},{"type":"image_url","image_url":{"url":"x"}}]}],)"
           R"("model":"m","stream":true,"user":"u","unknown":{"a":[1,2]}})");
  EXPECT_EQ(facts.model, "m");
  EXPECT_EQ(facts.session, "u");
  EXPECT_TRUE(facts.stream);
  EXPECT_EQ(facts.text, "be \"short\" and kind");
}

TEST(RequestFactsTest, AnEscapeThatMeansNothingHidesNothing) {
  // JavaScript writes half of an emoji so. The model that stood behind it was not known.
  for (const char* body : {R"({"messages":[{"content":"a \ud83d"}],"prompt":"b","model":"m"})",
                           R"({"\ud83d":1,"prompt":["\ud83d","b"],"model":"m"})",
                           R"({"user":"\ud83d","prompt":"b","model":"m"})",
                           R"({"input":[{"\ud83d":1,"content":"b"}],"model":"m"})"}) {
    EXPECT_EQ(Read(body).model, "m") << body;
    EXPECT_EQ(Read(body).text, "b") << body;
  }
}

TEST(RequestFactsTest, ReadsPromptsOfEveryForm) {
  EXPECT_EQ(Read(R"({"prompt":"a"})").text, "a");
  EXPECT_EQ(Read(R"({"prompt":["a","b"]})").text, "ab");
  EXPECT_EQ(Read(R"({"input_ids":[1,22]})").text, "1,22,");
  EXPECT_EQ(Read(R"({"text":"t"})").text, "t");
  EXPECT_EQ(Read(R"({"prompt":"a"})", false).text, "");
}

TEST(RequestFactsTest, OneListOfTokenIdsIsKnownAsTokens) {
  const RequestFacts facts = Read(R"({"input_ids":[1,22,2147483647],"model":"m"})");
  EXPECT_EQ(facts.tokens, (std::vector<int32_t>{1, 22, 2147483647}));
  EXPECT_EQ(facts.token_count, 3);
  EXPECT_EQ(Read(R"({"prompt":[1,22]})").tokens.size(), 2u);
  for (const char* other :
       {R"({"prompt":[[1,2],[3]]})", R"({"prompt":["a",1]})", R"({"input":[1,2]})",
        R"({"prompt":[1],"text":"a"})", R"({"prompt":1})", R"({"prompt":[]})",
        R"({"messages":[{"content":"a"}],"input_ids":[1]})"}) {
    EXPECT_TRUE(Read(other).tokens.empty()) << other;
    EXPECT_EQ(Read(other).token_count, 0) << other;
  }
  std::string many = R"({"prompt":[)";
  for (size_t i = 0; i < RequestFacts::kMaxTokens; ++i) many += "5,";
  EXPECT_EQ(Read(many + "5]}").tokens.size(), RequestFacts::kMaxTokens);
  EXPECT_EQ(Read(many + "5]}").token_count, static_cast<int64_t>(RequestFacts::kMaxTokens) + 1);
}

TEST(RequestFactsTest, ReadsTheItemsOfAResponsesRequest) {
  // A policy saw no text of such requests, so that conversations were spread over all workers.
  EXPECT_EQ(Read(R"({"input":[{"role":"user","content":"a"},{"type":"message","role":"assistant",)"
                 R"("content":[{"type":"output_text","text":"b"}]},)"
                 R"({"type":"function_call","name":"f","arguments":"c"},)"
                 R"({"type":"function_call_output","output":"d"}]})")
                .text,
            "abcd");
  EXPECT_EQ(Read(R"({"input":["a",{"text":"b"},{"image":"x"}]})").text, "ab");
  EXPECT_TRUE(Read(R"({"prompt":[1,2,{}]})").tokens.empty());
}

TEST(RequestFactsTest, PutsTheSystemPromptInFrontWhereverItStands) {
  for (const char* body :
       {R"({"messages":[{"content":"m"}],"system":"s"})",
        R"({"system":[{"type":"text","text":"s"}],"messages":[{"content":"m"}]})",
        R"({"input":"m","instructions":"s"})", R"({"prompt":"m","system":"s"})"}) {
    EXPECT_EQ(Read(body).text, "sm") << body;
  }
}

TEST(RequestFactsTest, WhatIsBrokenOrOddIsAsIfAbsent) {
  for (const char* body : {"", "[]", "nonsense", "{", R"({"model":1,"stream":"yes"})",
                           R"({"messages":"x"})", R"({"messages":[1]})", R"({"prompt":{"a":1}})"}) {
    const RequestFacts facts = Read(body);
    EXPECT_EQ(facts.model, "") << body;
    EXPECT_FALSE(facts.stream) << body;
    EXPECT_EQ(facts.text, "") << body;
  }
  EXPECT_EQ(Read(R"({"model":"m","messages":[{"content":"x"})").model, "m");
}

TEST(RequestFactsTest, ABodyThatIsCutAnywhereIsReadAsFarAsItGoes) {
  const std::string body =
      R"({"user":"u","messages":[{"role":"user","content":"a\\\n\ud83d\ude00 \"äöü€😀\u00e4"},)"
      R"({"content":[{"type":"text","text":"\u0062"}]}],"session_params":{"rid":null,"id":"s\u00e41"},)"
      R"("model":"mo\"del","stream":true})";
  const RequestFacts whole = Read(body);
  ASSERT_EQ(whole.model, "mo\"del");
  ASSERT_EQ(whole.opened, "sä1");
  for (size_t size = 0; size <= body.size(); ++size) {
    const RequestFacts facts = Read(body.substr(0, size), true, true);
    EXPECT_TRUE(whole.text.starts_with(facts.text)) << size;
    EXPECT_TRUE(facts.model.empty() || facts.model == whole.model) << size;
    EXPECT_TRUE(facts.opened.empty() || facts.opened == whole.opened) << size;
    EXPECT_TRUE(whole.session.starts_with(facts.session)) << size;
    if (size + 1 >= body.size()) {
      EXPECT_EQ(facts.model, whole.model) << size;
    }
  }
  // The escapes and characters that are cut may be missing, and no more.
  const std::string long_text = R"({"prompt":")" + std::string(1000, 'x');
  EXPECT_EQ(Read(long_text, true, true).text.size(), 1000u);
  EXPECT_EQ(Read(long_text + R"(\ud83d)", true, true).text.size(), 1000u);
  EXPECT_EQ(Read(R"({"input_ids":[1,2,3)", true, true).tokens.size(), 3u);
}

TEST(RequestFactsTest, ListsAreNestedAsDeepAsAClientLikes) {
  // Each level was a call of a function: a hundred thousand brackets ended the gateway.
  for (const char* field : {"prompt", "input_ids", "text", "input", "query"}) {
    std::string body = R"({")" + std::string(field) + R"(":)";
    body.append(1'000'000, '[').append(1'000'000, ']').append(R"(,"model":"m"})");
    EXPECT_EQ(Read(body).model, "m") << field;
    EXPECT_EQ(Read(body).text, "") << field;
    EXPECT_EQ(Read(body, true, true).text, "") << field;
  }
  EXPECT_EQ(Read(R"({"prompt":[[[["a"],"b"]]]})").text, "ab");
}

TEST(RequestFactsTest, ALongPromptIsCutAtItsBound) {
  EXPECT_EQ(Read(R"({"prompt":")" + std::string(1 << 20, 'a') + "\"}").text.size(),
            RequestFacts::kMaxText);
}

}  // namespace
}  // namespace portico::router
