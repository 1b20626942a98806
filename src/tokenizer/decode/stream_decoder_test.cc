#include "tokenizer/decode/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/sanitized_for_test.h"
#include "text/utf8.h"
#include "tokenizer/decode/stop_matcher.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/test_tokenizers.h"

namespace portico {
namespace {

std::shared_ptr<const Tokenizer> Bytes() {
  return *Tokenizer::FromJson(tokenizer::ByteLevelJson({{"h", "i"}}));
}

// Llama 2's decoder over a vocabulary of bytes and a few words.
std::shared_ptr<const Tokenizer> Fallback() {
  std::string vocab = R"("<unk>":0)";
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) {
    vocab +=
        std::string(",\"<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">\":" + std::to_string(b + 1);
  }
  vocab += ",\"\u2581a\":257,\"b\":258,\"\u2581\":259";
  auto made = Tokenizer::FromJson(
      R"({"added_tokens":[],"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
      R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},)"
      R"("model":{"type":"BPE","byte_fallback":true,"unk_token":"<unk>","fuse_unk":true,"vocab":{)" +
      vocab + R"(},"merges":[]}})");
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

std::string Streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(tokenizer, false);
  std::string out;
  for (TokenId id : ids) {
    decoder.Push(id, &out);
    EXPECT_TRUE(IsValidUtf8(out));
  }
  decoder.Flush(&out);
  return out;
}

// Decoders that take each token by itself, over added tokens, too: <s>, "##b" and one with the replaced character.
TEST(StreamDecoderTest, TokensThatDecodeAloneGiveWhatTheDecoderGives) {
  std::mt19937 random(3);
  for (const char* decoder :
       {R"({"type":"WordPiece","prefix":"##","cleanup":true})",
        R"({"type":"WordPiece","prefix":"","cleanup":false})",
        R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true})",
        R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true})"}) {
    auto made = Tokenizer::FromJson(
        R"({"added_tokens":[{"id":9,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
        R"("special":true},{"id":12,"content":"##▁b .","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
        R"("special":false}],"decoder":)" +
        std::string(decoder) +
        R"(,"model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"▁a":1,"##ing":2,".":3,"n't":4,)"
        R"("'":5,"▁▁":6,"":7,"é":8," do not":10}}})");
    ASSERT_TRUE(made.ok()) << made.status();
    for (int round = 0; round < RandomRounds(3000); ++round) {
      std::vector<TokenId> ids(random() % 7);
      for (TokenId& id : ids) id = static_cast<TokenId>(random() % 14);
      const std::string expected = (*made)->pipeline().DecodeGeneral(ids, false);
      ASSERT_EQ((*made)->Decode(ids, false), expected) << decoder;
      ASSERT_EQ(Streamed(**made, ids), expected) << decoder;
      ASSERT_EQ((*made)->Decode(ids, true), (*made)->pipeline().DecodeGeneral(ids, true));
    }
  }
}

TEST(StreamDecoderTest, RandomBytesGiveTheSameTextAsOneDecode) {
  auto t = Bytes();
  std::mt19937 random(7);
  const std::vector<TokenId> pool = {'a',  ' ',  0xC3, 0xA9, 0xE4, 0xBD, 0xA0, 0xF0,
                                     0x9F, 0x98, 0x80, 0xED, 0xFF, 0xE0, 256};
  for (int round = 0; round < RandomRounds(20000); ++round) {
    std::vector<TokenId> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(pool[random() % pool.size()]);
    ASSERT_EQ(Streamed(*t, ids), t->Decode(ids, false));
  }
}

TEST(StreamDecoderTest, ACharacterIsSentWithItsLastByteAndNoLater) {
  auto t = Bytes();
  StreamDecoder decoder(*t, false);
  std::string out;
  for (TokenId id : {0xE4, 0xBD}) decoder.Push(id, &out);
  EXPECT_EQ(out, "");
  decoder.Push(0xA0, &out);
  EXPECT_EQ(out, "\xE4\xBD\xA0");
}

TEST(StreamDecoderTest, BytesThatCanBecomeNoCharacterAreSentAtOnce) {
  auto t = Bytes();
  StreamDecoder decoder(*t, false);
  std::string out;
  decoder.Push(0xFF, &out);
  EXPECT_EQ(out, kReplacementCharacter);
}

TEST(StreamDecoderTest, ByteTokensFollowLlama2sRules) {
  auto t = Fallback();
  auto byte = [](int b) { return static_cast<TokenId>(b + 1); };
  std::vector<std::vector<TokenId>> lists = {
      {257, 258, 257},
      {259, 257},
      {byte(0xE4), byte(0xBD), byte(0xA0), 258},
      {byte(0xE4), byte(0xBD), 258},
      {byte(0x20), byte(0x20), 258},
      {byte(0xFF), byte('a'), byte('b'), 258, byte('c')},
      {byte(0xF0), byte(0x9F), byte(0x98), byte(0x80), byte(0xC3)},
  };
  for (const auto& ids : lists) {
    // What was complete stays sent where later bytes of the same run spoil it: the last list is such a one.
    if (&ids == &lists.back()) {
      EXPECT_EQ(Streamed(*t, ids), "\xF0\x9F\x98\x80\xEF\xBF\xBD");
    } else {
      EXPECT_EQ(Streamed(*t, ids), t->Decode(ids, false));
    }
  }
}

TEST(StreamDecoderTest, AFlushedStreamStartsAnew) {
  auto t = Fallback();
  StreamDecoder decoder(*t, false);
  std::string first;
  decoder.Push(257, &first);
  decoder.Flush(&first);
  std::string second;
  decoder.Push(257, &second);
  decoder.Flush(&second);
  EXPECT_EQ(first, "a");
  EXPECT_EQ(second, "a");
}

// Decoders that look at the start of a text, and one that does not; with special tokens, characters that are spread over
// tokens, and spaces of their own.
std::vector<std::shared_ptr<const Tokenizer>> Kinds() {
  constexpr std::string_view kFlags =
      R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":false)";
  const std::string head = R"({"added_tokens":[{"id":1,"content":"<s>","special":true,)" +
                           std::string(kFlags) + R"(}],"decoder":)";
  const std::string tail =
      R"(,"model":{"type":"BPE","byte_fallback":true,"unk_token":"<unk>","vocab":{"<unk>":0,"<s>":1,)"
      R"("▁a":2,"b":3,"▁":4,"##c":5,"▁▁":6,"<0xC3>":7,"<0xA9>":8,"<0x20>":9},"merges":[]}})";
  const std::string fallback =
      R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})";
  const std::string strip = R"({"type":"Strip","content":" ","start":1,"stop":0})";
  std::vector<std::shared_ptr<const Tokenizer>> kinds;
  for (const std::string& decoder : {
           R"({"type":"Sequence","decoders":[)" + fallback + "," + strip + "]}",
           R"({"type":"Sequence","decoders":[)" + fallback + "]}",
           // By its own steps.
           R"({"type":"Sequence","decoders":[)" + fallback + "," + strip + R"(,{"type":"Fuse"}]})",
           std::string(R"({"type":"WordPiece","prefix":"##","cleanup":false})"),
           std::string(
               R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true})"),
       }) {
    auto made = Tokenizer::FromJson(head + decoder + tail);
    EXPECT_TRUE(made.ok()) << made.status();
    kinds.push_back(*std::move(made));
  }
  return kinds;
}

// So many words, spaces, special tokens and whole characters.
std::vector<TokenId> RandomWords(size_t count, std::mt19937* random) {
  std::vector<TokenId> ids;
  while (ids.size() < count) {
    const auto id = static_cast<TokenId>((*random)() % 8);
    ids.push_back(id);
    if (id == 7) ids.push_back(8);
  }
  return ids;
}

// A completion of "Once upon a time" began with "upon", its space being gone.
TEST(StreamDecoderTest, WhatContinuesAPromptIsTheDecodeOfBothLessThePrompts) {
  std::mt19937 random(11);
  for (const auto& tokenizer : Kinds()) {
    for (int round = 0; round < RandomRounds(2000); ++round) {
      const bool skip = random() % 2 == 0;
      const std::vector<TokenId> prompt = RandomWords(random() % 14, &random);
      std::vector<TokenId> ids = prompt;
      StreamDecoder decoder(*tokenizer, skip);
      decoder.Continue(prompt, skip);
      std::string text;
      for (TokenId id : RandomWords(random() % 5, &random)) {
        ids.push_back(id);
        decoder.Push(id, &text);
        ASSERT_TRUE(IsValidUtf8(text));
      }
      decoder.Flush(&text);
      ASSERT_EQ(tokenizer->Decode(prompt, skip) + text, tokenizer->Decode(ids, skip))
          << tokenizer->Describe() << ", round " << round;
    }
  }
}

// The tail that is looked at would begin inside a character, which makes all of a run of byte tokens wrong.
TEST(StreamDecoderTest, APromptOfByteTokensIsCutBetweenCharacters) {
  const auto tokenizer = Kinds().front();
  std::vector<TokenId> prompt;
  for (int i = 0; i < 20; ++i) prompt.insert(prompt.end(), {7, 8});
  for (const TokenId more : {9, 4}) {
    prompt.push_back(more);
    StreamDecoder decoder(*tokenizer, true);
    decoder.Continue(prompt, true);
    std::string text;
    for (TokenId id : {7, 8, 2}) decoder.Push(id, &text);
    EXPECT_EQ(text, "\xC3\xA9 a");
  }
}

TEST(StreamDecoderTest, ACharacterThatThePromptBeginsIsTheStreams) {
  for (const auto& tokenizer : {Bytes(), Kinds().front(), Kinds()[2]}) {
    const bool byte_level = tokenizer->TokenToId("<unk>") == std::nullopt;
    const TokenId first = byte_level ? 0xC3 : 7;
    const TokenId second = byte_level ? 0xA9 : 8;
    const TokenId letter = byte_level ? 'b' : 3;
    StreamDecoder completed(*tokenizer, true);
    completed.Continue(std::vector<TokenId>{letter, first}, true);
    std::string text;
    completed.Push(second, &text);
    EXPECT_EQ(text, "\xC3\xA9");
    // Where it stays unfinished, its U+FFFD is the prompt's.
    for (const bool ends : {true, false}) {
      StreamDecoder left(*tokenizer, true);
      left.Continue(std::vector<TokenId>{letter, first}, true);
      text.clear();
      if (!ends) left.Push(letter, &text);
      left.Flush(&text);
      EXPECT_EQ(text, ends ? "" : "b");
    }
  }
}

TEST(StreamDecoderTest, TheBytesOfTokensWhereTheyStandAreTheText) {
  std::mt19937 random(5);
  for (const auto& tokenizer : Kinds()) {
    for (int round = 0; round < RandomRounds(1000); ++round) {
      StreamDecoder decoder(*tokenizer, false);
      const std::vector<TokenId> prompt = RandomWords(random() % 3, &random);
      if (round % 2 == 0) decoder.Continue(prompt, false);
      std::string text;
      std::string bytes;
      for (TokenId id : RandomWords(6, &random)) {
        bytes += decoder.TokenBytes(id);
        decoder.Push(id, &text);
      }
      ASSERT_EQ(bytes, text) << tokenizer->Describe() << ", round " << round;
    }
  }
  EXPECT_EQ(StreamDecoder(*Bytes(), true).TokenBytes(0xC3), "\xC3");
  EXPECT_EQ(StreamDecoder(*Kinds()[2], true).TokenBytes(7), "\xC3");
  EXPECT_EQ(StreamDecoder(*Bytes(), true).TokenBytes(99999), "");
}

struct Cut {
  std::string out;
  bool matched;
};

Cut RunMatcher(std::vector<std::string> stops, bool keep, const std::vector<std::string>& deltas) {
  StopMatcher matcher(std::move(stops), keep);
  Cut cut{"", false};
  for (const std::string& delta : deltas) cut.matched = matcher.Push(delta, &cut.out);
  if (!cut.matched) matcher.Flush(&cut.out);
  return cut;
}

TEST(StopMatcherTest, EverySplitOfTheTextGivesTheSameCut) {
  const std::string text = "ab<end>cd</s>xaab";
  const std::vector<std::vector<std::string>> sets = {
      {"<end>"}, {"</s>"}, {"aab"}, {"b<", "<end>"}, {"zzz"}, {"<e", "<end>", "nd"}, {}, {""}};
  for (const auto& stops : sets) {
    for (bool keep : {false, true}) {
      Cut whole = RunMatcher(stops, keep, {text});
      for (size_t a = 0; a <= text.size(); ++a) {
        for (size_t b = a; b <= text.size(); ++b) {
          Cut cut =
              RunMatcher(stops, keep, {text.substr(0, a), text.substr(a, b - a), text.substr(b)});
          ASSERT_EQ(cut.out, whole.out);
          ASSERT_EQ(cut.matched, whole.matched);
        }
      }
    }
  }
}

TEST(StopMatcherTest, TheTextEndsBeforeTheStopStringOrBehindIt) {
  EXPECT_EQ(RunMatcher({"<end>"}, false, {"hi<e", "nd> more"}).out, "hi");
  EXPECT_EQ(RunMatcher({"<end>"}, true, {"hi<e", "nd> more"}).out, "hi<end>");
  EXPECT_EQ(RunMatcher({"<end>"}, false, {"hi<e", "nx"}).out, "hi<enx");
}

TEST(StopMatcherTest, TheStopStringThatEndsFirstWins) {
  StopMatcher matcher({"bcd", "c"}, false);
  std::string out;
  EXPECT_TRUE(matcher.Push("abcd", &out));
  EXPECT_EQ(out, "ab");
  EXPECT_EQ(matcher.matched(), "c");
}

}  // namespace
}  // namespace portico
