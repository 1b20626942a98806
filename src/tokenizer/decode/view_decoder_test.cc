#include "tokenizer/decode/view_decoder.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/sanitized_for_test.h"
#include "text/utf8.h"
#include "tokenizer/decode/stop_matcher.h"
#include "tokenizer/test_tokenizers.h"

namespace portico {
namespace {

// Of ByteLevelJson() without merges.
constexpr TokenId kBegin = 256;  // <s>
constexpr TokenId kEnd = 257;    // <|end|>
constexpr TokenId kTool = 258;   // <tool>, not special

std::shared_ptr<const Tokenizer> BytesAndSpecials() {
  return *Tokenizer::FromJson(tokenizer::ByteLevelJson({}));
}

std::vector<TokenId> IdsOfBytes(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

struct BothViews {
  std::string all;
  std::string shown;
};

BothViews ViewsOf(ViewDecoder* decoder, const std::vector<TokenId>& ids) {
  BothViews views;
  std::string scratch;
  for (TokenId id : ids) {
    const TokenViews token = decoder->PushBoth(id, &scratch);
    views.all += token.all;
    views.shown += token.shown;
  }
  const TokenViews rest = decoder->FlushBoth(&scratch);
  views.all += rest.all;
  views.shown += rest.shown;
  return views;
}

TEST(ViewDecoderTest, EachViewIsTheDecodeOfItsTokens) {
  const auto tokenizer = BytesAndSpecials();
  std::mt19937 random(3);
  const std::vector<TokenId> pool = {'a', ' ', 0xC3, 0xA9, kBegin, kEnd, kTool, 99999};
  for (int round = 0; round < RandomRounds(5000); ++round) {
    std::vector<TokenId> ids;
    for (int i = 0; i < 7; ++i) ids.push_back(pool[random() % pool.size()]);
    ViewDecoder hiding(*tokenizer, /*skip_special_tokens=*/true);
    const BothViews hidden = ViewsOf(&hiding, ids);
    ASSERT_EQ(hidden.all, tokenizer->Decode(ids, false));
    ASSERT_EQ(hidden.shown, tokenizer->Decode(ids, true));
    ViewDecoder showing(*tokenizer, /*skip_special_tokens=*/false);
    const BothViews shown = ViewsOf(&showing, ids);
    ASSERT_EQ(shown.all, hidden.all);
    ASSERT_EQ(shown.shown, hidden.all);
  }
}

TEST(ViewDecoderTest, SpecialTokensThatAreKeptAreShown) {
  const auto tokenizer = BytesAndSpecials();
  const absl::flat_hash_set<TokenId> kept = {kEnd};
  ViewDecoder decoder(*tokenizer, true, &kept);
  EXPECT_TRUE(decoder.Hides(kBegin));
  EXPECT_FALSE(decoder.Hides(kEnd));
  EXPECT_FALSE(decoder.Hides(kTool));
  const BothViews views = ViewsOf(&decoder, {'a', kBegin, kEnd, 'b'});
  EXPECT_EQ(views.all, "a<s><|end|>b");
  EXPECT_EQ(views.shown, "a<|end|>b");
  std::string pushed;
  ViewDecoder plain(*tokenizer, true, &kept);
  for (TokenId id : {TokenId{'a'}, kBegin, kEnd}) plain.Push(id, &pushed);
  EXPECT_EQ(pushed, "a<|end|>");
}

struct StopCut {
  std::string out;
  std::string matched;
};

StopCut CutAtStop(const std::vector<TokenId>& ids, std::vector<std::string> stops,
                  bool skip_special_tokens, bool no_stop_trim) {
  static const auto tokenizer = BytesAndSpecials();
  ViewDecoder decoder(*tokenizer, skip_special_tokens);
  StopMatcher matcher(std::move(stops), no_stop_trim);
  StopCut cut;
  std::string scratch;
  for (TokenId id : ids) {
    matcher.Push(decoder.PushBoth(id, &scratch), &cut.out);
    EXPECT_TRUE(IsValidUtf8(cut.out));
  }
  if (!matcher.Push(decoder.FlushBoth(&scratch), &cut.out)) matcher.Flush(&cut.out);
  cut.matched = matcher.matched();
  return cut;
}

std::vector<TokenId> Joined(std::string_view before, TokenId token, std::string_view after) {
  std::vector<TokenId> ids = IdsOfBytes(before);
  ids.push_back(token);
  for (TokenId id : IdsOfBytes(after)) ids.push_back(id);
  return ids;
}

// A stop string that was a special token never matched where those are not shown.
TEST(StopMatcherViewsTest, AStopStringIsFoundInSpecialTokensThatAreNotShown) {
  const std::vector<TokenId> ids = Joined("hi ", kEnd, "user");
  struct Row {
    std::string stop, trimmed, kept;
  };
  for (const Row& row : std::vector<Row>{{"<|end|>", "hi ", "hi "},
                                         {"<|end|>us", "hi ", "hi us"},
                                         {"i <|e", "h", "hi "},
                                         {"end", "hi ", "hi "},
                                         {"|>use", "hi ", "hi use"}}) {
    StopCut cut = CutAtStop(ids, {row.stop}, true, false);
    EXPECT_EQ(cut.matched, row.stop);
    EXPECT_EQ(cut.out, row.trimmed);
    cut = CutAtStop(ids, {row.stop}, true, true);
    EXPECT_EQ(cut.matched, row.stop);
    EXPECT_EQ(cut.out, row.kept) << "what is hidden stays so";
  }
  EXPECT_EQ(CutAtStop(ids, {"<|end|>us"}, false, true).out, "hi <|end|>us");
}

TEST(StopMatcherViewsTest, WhatOnlyLooksLikeAStopStringIsNone) {
  const std::vector<TokenId> ids = Joined("hi", kEnd, "user");
  EXPECT_EQ(CutAtStop(ids, {"hiuser", "<|end|>x", "<|end|>usex"}, true, false).out, "hiuser");
  EXPECT_EQ(CutAtStop(ids, {"<|end|>user!"}, true, false).matched, "");
}

// The shown text up to the place of the cut is what the tokens before it show.
TEST(StopMatcherViewsTest, AnyStreamIsCutWhereTheMatchBegins) {
  const auto tokenizer = BytesAndSpecials();
  std::mt19937 random(9);
  const std::vector<TokenId> pool = {'a', 's', '<', '>', kBegin, kBegin, kTool};
  const std::vector<std::string> stops = {"<s>a", "a<s>", "s><", "<s><s>", "aa"};
  for (int round = 0; round < RandomRounds(20000); ++round) {
    std::vector<TokenId> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(pool[random() % pool.size()]);
    const std::string stop = stops[random() % stops.size()];
    const std::string all = tokenizer->Decode(ids, false);
    const size_t found = all.find(stop);
    const StopCut cut = CutAtStop(ids, {stop}, true, false);
    ASSERT_EQ(cut.matched, found == std::string::npos ? "" : stop) << all;
    std::string expected;
    size_t at = 0;
    for (TokenId id : ids) {
      const std::string bytes = tokenizer->TokenBytes(id);
      const size_t left = found > at ? found - at : 0;
      if (id != kBegin) expected += bytes.substr(0, left);
      at += bytes.size();
    }
    ASSERT_EQ(cut.out, expected) << all;
  }
}

// The space that a decoder takes off the start is in one view only: <s> stands before it in the other.
TEST(StopMatcherViewsTest, ViewsThatDifferInASpaceAreCutAtTheSameLetter) {
  StopMatcher matcher({"lo"}, false);
  std::string out;
  EXPECT_FALSE(matcher.Push(TokenViews{"<s>", ""}, &out));
  EXPECT_FALSE(matcher.Push(TokenViews{" Hel", "Hel"}, &out));
  EXPECT_TRUE(matcher.Push(TokenViews{"lo", "lo"}, &out));
  EXPECT_EQ(out, "Hel");
  StopMatcher whole({"lo"}, false);
  out.clear();
  EXPECT_TRUE(whole.Push(TokenViews{" Hello", "Hello"}, &out));
  EXPECT_EQ(out, "Hel");
}

}  // namespace
}  // namespace portico
