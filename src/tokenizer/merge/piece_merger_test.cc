#include "tokenizer/merge/piece_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/model/byte_level.h"

namespace portico::tokenizer {
namespace {

// Characters of one to four bytes that share their first bytes, so that merges across their borders are common.
constexpr uint32_t kCharacters[] = {'a',    'b',    ' ',    0xE9,   0xE8,    0x4E00,
                                    0x4E01, 0x4E80, 0x5000, 0x3042, 0x1F600, 0x1F601};

std::string RandomText(std::mt19937* random, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i) {
    AppendUtf8(kCharacters[(*random)() % std::size(kCharacters)], &text);
  }
  return text;
}

// A model whose merges join random neighbours of random texts, characters whole or not.
std::unique_ptr<Bpe> RandomModel(std::mt19937* random, size_t merges, bool ignore_merges) {
  Vocabulary vocabulary;
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  std::set<std::pair<TokenId, TokenId>> pairs;
  MergeTable table;
  table.Reserve(merges);
  uint32_t rank = 0;
  while (rank < merges) {
    std::string text = RandomText(random, 4);
    size_t at = (*random)() % (text.size() - 1);
    size_t middle = at + 1 + (*random)() % (text.size() - at - 1);
    size_t end = middle + 1 + (*random)() % (text.size() - middle);
    auto id_of = [&](const std::string& bytes) {
      for (size_t id = 0; id < tokens.size(); ++id) {
        if (tokens[id] == bytes) return static_cast<TokenId>(id);
      }
      return TokenId{-1};
    };
    TokenId left = id_of(text.substr(at, middle - at));
    TokenId right = id_of(text.substr(middle, end - middle));
    if (left < 0 || right < 0 || !pairs.emplace(left, right).second) continue;
    TokenId whole = id_of(text.substr(at, end - at));
    if (whole < 0) {
      whole = static_cast<TokenId>(tokens.size());
      tokens.push_back(text.substr(at, end - at));
    }
    table.Add(left, right, {rank++, whole});
  }
  // Tokens that nothing merges to count where merges are ignored.
  for (size_t i = 0; ignore_merges && i < 3; ++i) {
    std::string token = RandomText(random, 2 + i % 2);
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  for (size_t id = 0; id < tokens.size(); ++id) {
    vocabulary.Add(ToByteLevel(tokens[id]), static_cast<TokenId>(id));
  }
  vocabulary.Seal();
  BpeOptions options;
  options.ignore_merges = ignore_merges;
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(table), std::move(options));
}

// The model's own way over the spelled bytes is the reference.
TEST(PieceMerger, EqualsTheModelOnRandomMergesAndTexts) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::unique_ptr<Bpe> model = RandomModel(&random, 20 + random() % 200, round % 4 == 0);
    std::unique_ptr<const PieceMerger> merger = PieceMerger::Make(*model);
    ASSERT_NE(merger, nullptr);
    for (int i = 0; i < 200; ++i) {
      std::string text = RandomText(&random, 1 + random() % (i % 10 == 0 ? 120 : 12));
      std::vector<Token> expected;
      ASSERT_TRUE(model->Tokenize(ToByteLevel(text), &expected).ok());
      std::vector<TokenId> ids(text.size());
      ids.resize(merger->Encode(text, ids.data()));
      ASSERT_EQ(ids.size(), expected.size()) << text;
      for (size_t k = 0; k < ids.size(); ++k) ASSERT_EQ(ids[k], expected[k].id) << text;
    }
  }
}

TEST(PieceParts, HaveTogetherTheIdsOfThePiece) {
  std::mt19937 random(9);
  size_t cut = 0;
  for (int round = 0; round < 120; ++round) {
    std::unique_ptr<Bpe> model = RandomModel(&random, 5 + random() % 100, round % 2 == 0);
    std::unique_ptr<const PieceMerger> merger = PieceMerger::Make(*model);
    for (int i = 0; i < 200; ++i) {
      std::string text = RandomText(&random, 1 + random() % 12);
      std::vector<Token> expected;
      ASSERT_TRUE(model->Tokenize(ToByteLevel(text), &expected).ok());
      std::vector<TokenId> ids;
      const char* end = text.data() + text.size();
      for (const char* p = text.data(); p < end;) {
        const char* part_end = merger->parts().NextEnd(p, end);
        std::vector<TokenId> of_part(static_cast<size_t>(part_end - p));
        of_part.resize(merger->Encode({p, part_end}, of_part.data()));
        ids.insert(ids.end(), of_part.begin(), of_part.end());
        cut += p > text.data() ? 1 : 0;
        p = part_end;
      }
      ASSERT_EQ(ids.size(), expected.size()) << text;
      for (size_t k = 0; k < ids.size(); ++k) ASSERT_EQ(ids[k], expected[k].id) << text;
    }
  }
  EXPECT_GT(cut, 10000u);
}

TokenId WordOf(const PieceMerger& merger, std::string_view piece) {
  PieceKey key = PieceKey::Of(piece);
  return merger.words().Find(key, merger.words().LineOf(key.Hash()));
}

TEST(WordTable, HoldsNearlyAllTokensThatTheirBytesMergeToAndNoOther) {
  std::mt19937 random(8);
  size_t found = 0;
  size_t missing = 0;
  for (int round = 0; round < 60; ++round) {
    std::unique_ptr<Bpe> model = RandomModel(&random, 20 + random() % 300, /*ignore_merges=*/false);
    std::unique_ptr<const PieceMerger> merger = PieceMerger::Make(*model);
    for (TokenId id = 0; id <= model->vocabulary().max_id(); ++id) {
      std::string_view bytes = merger->tokens().Of(id);
      if (bytes.size() > WordTable::kMostBytes ||
          !WordTable::MayHave(PieceKey::Of(bytes), bytes.size())) {
        continue;
      }
      std::vector<Token> expected;
      ASSERT_TRUE(model->Tokenize(model->vocabulary().Spelling(id), &expected).ok());
      bool whole = expected.size() == 1;
      TokenId word = WordOf(*merger, bytes);
      if (word >= 0) {
        ASSERT_TRUE(whole) << bytes;
        ASSERT_EQ(word, expected[0].id) << bytes;
      }
      found += word >= 0 ? 1 : 0;
      missing += whole && word < 0 ? 1 : 0;
    }
  }
  EXPECT_GT(found, 5000u);
  EXPECT_LT(missing, found / 4);  // ranks without order
}

TEST(WordTable, LeavesOutTokensThatTheirBytesDoNotMergeTo) {
  // b+c comes first and takes the b of "abc" away.
  Vocabulary vocabulary;
  for (int b = 0; b < 256; ++b)
    vocabulary.Add(ToByteLevel(std::string(1, static_cast<char>(b))), b);
  for (const char* token : {"bc", "ab", "abc"}) {
    vocabulary.Add(token, static_cast<TokenId>(vocabulary.size()));
  }
  vocabulary.Seal();
  MergeTable merges;
  merges.Reserve(3);
  merges.Add('b', 'c', {0, 256});
  merges.Add('a', 'b', {1, 257});
  merges.Add(257, 'c', {2, 258});
  Bpe model(std::move(vocabulary), std::move(merges), BpeOptions());
  std::unique_ptr<const PieceMerger> merger = PieceMerger::Make(model);
  EXPECT_EQ(WordOf(*merger, "bc"), 256);
  EXPECT_EQ(WordOf(*merger, "ab"), 257);
  EXPECT_EQ(WordOf(*merger, "abc"), -1);
  EXPECT_EQ(WordOf(*merger, std::string_view("bc\0", 3)), -1);
  EXPECT_EQ(WordOf(*merger, "b"), 'b');
}

TEST(PieceMerger, NeedsATokenForEachByte) {
  Vocabulary vocabulary;
  vocabulary.Add("a", 0);
  vocabulary.Seal();
  Bpe model(std::move(vocabulary), MergeTable(), BpeOptions());
  EXPECT_EQ(PieceMerger::Make(model), nullptr);
}

TEST(ByteTokens, LeavesOutTokensThatSpellNoBytes) {
  Vocabulary vocabulary;
  vocabulary.Add("a", 0);
  vocabulary.Add("\xE4\xB8\xAD", 1);  // a character beyond the 256
  vocabulary.Add(ToByteLevel("\xE4\xB8\xAD"), 2);
  vocabulary.Seal();
  ByteTokens tokens(vocabulary);
  EXPECT_EQ(tokens.Find("a"), 0);
  EXPECT_EQ(tokens.Find("\xE4\xB8\xAD"), 2);
  EXPECT_EQ(tokens.Find("b"), -1);
  EXPECT_EQ(tokens.Of(1), "");
}

}  // namespace
}  // namespace portico::tokenizer
