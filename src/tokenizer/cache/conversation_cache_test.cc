#include "tokenizer/cache/conversation_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tokenizer/pipeline.h"
#include "tokenizer/shared_data_for_test.h"
#include "tokenizer/split/added_tokens.h"
#include "tokenizer/test_tokenizers.h"

namespace portico {
namespace {

using tokenizer::ByteLevelJson;

constexpr size_t kAnyText = 0;  // texts of any length are looked up

std::shared_ptr<const Tokenizer> MakeChatTokenizer(const std::string& json) {
  auto made = Tokenizer::FromJson(json);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : nullptr;
}

std::shared_ptr<const Tokenizer> Small() {
  return MakeChatTokenizer(
      ByteLevelJson({{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "hello"}}));
}

std::vector<TokenId> Whole(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  tokenizer.Encode(text, false, &ids);
  return ids;
}

std::string Turn(int i) {
  return "<s>user\n" + std::string(static_cast<size_t>(300 + i * 10), 'a') + " hello " +
         std::to_string(i) + "<|end|>\n<s>assistant\n";
}

TEST(ConversationCache, EncodesOnlyWhatIsNewOfAGrowingConversation) {
  auto tokenizer = Small();
  ConversationCache cache(tokenizer, ConversationCache::kMaxBytes, kAnyText);
  std::string text;
  size_t before = 0;
  for (int turn = 0; turn < 20; ++turn) {
    text += Turn(turn);
    std::vector<TokenId> ids = {7};
    const size_t reused = *cache.Encode(text, &ids);
    std::vector<TokenId> whole = Whole(*tokenizer, text);
    ASSERT_EQ(std::vector<TokenId>(ids.begin() + 1, ids.end()), whole);
    EXPECT_EQ(ids[0], 7);
    // All but the last part of the prompt before, and of a part that was too short to stand alone.
    EXPECT_GE(reused + 400, before);
    before = whole.size();
    text += "hello there";
  }
  EXPECT_GT(cache.reused_tokens(), 0u);
  EXPECT_GT(cache.bytes(), text.size());
}

TEST(ConversationCache, EncodesAShortTextWhole) {
  auto tokenizer = Small();
  ConversationCache cache(tokenizer);
  std::string text = Turn(1) + Turn(2);
  ASSERT_LT(text.size(), ConversationCache::kLeastText);
  for (int round = 0; round < 2; ++round) {
    std::vector<TokenId> ids;
    EXPECT_EQ(*cache.Encode(text, &ids), 0u);
    EXPECT_EQ(ids, Whole(*tokenizer, text));
  }
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(ConversationCache, StaysWithinItsBytes) {
  auto tokenizer = Small();
  constexpr size_t kBytes = 64 << 10;
  ConversationCache cache(tokenizer, kBytes, kAnyText);
  for (int i = 0; i < 500; ++i) {
    std::vector<TokenId> ids;
    std::string text = Turn(i) + Turn(i + 1000) + Turn(i + 2000);
    ASSERT_TRUE(cache.Encode(text, &ids).ok());
    ASSERT_EQ(ids, Whole(*tokenizer, text));
    ASSERT_LE(cache.bytes(), kBytes);
  }
  EXPECT_GT(cache.bytes(), kBytes / 4);
}

TEST(ConversationCache, TakesBytesThatAreNoTextAndTextWithoutTokens) {
  auto tokenizer = Small();
  ConversationCache cache(tokenizer, ConversationCache::kMaxBytes, kAnyText);
  for (const std::string& text : {std::string(), std::string("hello"), std::string(5000, 'x'),
                                  Turn(1) + "\xFF\xC3" + Turn(2), Turn(1) + "\xE4\xBD"}) {
    for (int round = 0; round < 2; ++round) {
      std::vector<TokenId> ids;
      ASSERT_TRUE(cache.Encode(text, &ids).ok());
      EXPECT_EQ(ids, Whole(*tokenizer, text));
    }
  }
}

TEST(ConversationCache, AppendsNothingWhereTheTextCannotBeEncoded) {
  auto tokenizer = MakeChatTokenizer(
      R"({"added_tokens":[{"id":9,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,)"
      R"("normalized":false,"special":true}],"pre_tokenizer":{"type":"Whitespace"},)"
      R"("model":{"type":"WordLevel","unk_token":"?","vocab":{"a":1}}})");
  ConversationCache cache(tokenizer, ConversationCache::kMaxBytes, kAnyText);
  std::string text = "<s>";
  for (int i = 0; i < 300; ++i) text += " a";
  std::vector<TokenId> ids = {5};
  EXPECT_FALSE(cache.Encode(text + "<s> b", &ids).ok());
  EXPECT_EQ(ids, std::vector<TokenId>{5});
  EXPECT_TRUE(cache.Encode(text + "<s> a", &ids).ok());
  EXPECT_EQ(ids.size(), 304u);
}

TEST(ConversationCache, AsksForWhatItHasNotAndEndsWhereThatFails) {
  auto tokenizer = Small();
  ConversationCache cache(tokenizer, ConversationCache::kMaxBytes, kAnyText);
  std::vector<size_t> asked;
  size_t fails_at = 2;
  const auto encode = [&](std::string_view part, std::vector<TokenId>* ids) {
    asked.push_back(part.size());
    if (asked.size() > fails_at) return Error(StatusCode::kCancelled, "the client has left");
    return tokenizer->TryEncode(part, false, ids);
  };
  const std::string text = Turn(1) + Turn(2) + Turn(3) + Turn(4);
  std::vector<TokenId> ids = {7};
  EXPECT_EQ(cache.Encode(text, encode, &ids).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(ids, std::vector<TokenId>{7});
  EXPECT_EQ(asked.size(), 3u);
  // What it has got until then stays.
  fails_at = SIZE_MAX;
  ids.clear();
  asked.clear();
  EXPECT_GT(*cache.Encode(text, encode, &ids), 0u);
  EXPECT_EQ(ids, Whole(*tokenizer, text));
  const size_t parts = asked.size();
  asked.clear();
  ids.clear();
  ASSERT_TRUE(cache.Encode(text, encode, &ids).ok());
  EXPECT_EQ(ids, Whole(*tokenizer, text));
  EXPECT_LT(asked.size(), parts);
  EXPECT_EQ(asked.size(), 1u);  // the last, which the next text will have more of
}

TEST(ConversationCache, ServesManyThreads) {
  auto tokenizer = Small();
  ConversationCache cache(tokenizer, 256 << 10, kAnyText);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        std::string text = Turn(i % 7) + Turn(i % 5 + t) + Turn(3);
        std::vector<TokenId> ids;
        ASSERT_TRUE(cache.Encode(text, &ids).ok());
        ASSERT_EQ(ids, Whole(*tokenizer, text));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

class ConversationFamilies : public ::testing::TestWithParam<const char*> {};

// Texts put together from recorded texts, spaces and the family's own added tokens, so that a cut stands beside
// everything that could reach over it.
TEST_P(ConversationFamilies, EncodeAsWithoutACache) {
  using tokenizer::Rows;
  using tokenizer::SharedData;
  if (SharedData().empty()) GTEST_SKIP() << "the recorded vectors are not at hand (PORTICO_SHARED)";
  std::filesystem::path folder = SharedData() / GetParam();
  auto model = MakeChatTokenizer(tokenizer::Unpacked(folder / "tokenizer.json.gz"));
  ASSERT_NE(model, nullptr);
  std::vector<std::string> added;
  for (const auto& [id, entry] : model->pipeline().added_tokens().entries()) {
    added.push_back(entry.token.content);
  }
  std::sort(added.begin(), added.end());
  std::vector<std::string> texts;
  for (const Json& row : Rows(folder / "vectors.jsonl.gz")) texts.push_back(row.GetString("text"));
  ASSERT_FALSE(texts.empty());
  const std::vector<std::string> between = {"",  "",  " ",        "  ", "\n",
                                            "a", "_", "\xCC\x81", "<",  "\xE2\x96\x81"};
  std::mt19937 random(20261121);
  auto any = [&](const std::vector<std::string>& list) { return list[random() % list.size()]; };
  ConversationCache cache(model, ConversationCache::kMaxBytes, kAnyText);
  for (int conversation = 0; conversation < 25; ++conversation) {
    std::string text;
    for (int turn = 0; turn < 12; ++turn) {
      for (int piece = 0; piece < 4; ++piece) {
        text += any(between);
        if (!added.empty()) text += any(added);
        text += any(between) + any(texts).substr(0, 2000);
      }
      std::vector<TokenId> ids;
      ASSERT_TRUE(cache.Encode(text, &ids).ok());
      ASSERT_EQ(ids, Whole(*model, text)) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ConversationFamilies,
                         ::testing::Values("gpt2", "llama-3.2", "qwen3", "deepseek-v3", "gpt-oss",
                                           "llama-2", "phi-3-mini", "mistral-v0.1", "gemma-3",
                                           "t5-small", "bert-base-uncased", "clip", "roberta-base",
                                           "whisper-large-v3", "phi-2", "gpt-neox", "marian-nmt"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace portico
