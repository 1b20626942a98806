#include "grammar/compile/grammar_pack.h"

#include <gtest/gtest.h>
#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "grammar/grammar_for_test.h"
#include "grammar/mask/mask_tensor.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace portico::grammar {
namespace {

// So many tokens of letters and of digits that the core has lists of what a state allows, lists of what it does not, and bit sets.
const Vocabulary& WordVocabulary() {
  static const Vocabulary vocabulary = [] {
    Vocabulary made = ByteVocabulary();
    for (int i = 0; i < 2500; ++i) {
      std::string number = std::to_string(100000 + i);
      std::string word = number;
      for (char& c : word) c = static_cast<char>('a' + (c - '0'));
      made.texts.push_back(std::move(word));
      made.texts.push_back(std::move(number));
    }
    return made;
  }();
  return vocabulary;
}

const xgrammar::TokenizerInfo& WordTokens() {
  static const xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(WordVocabulary());
  return tokens;
}

std::vector<uint32_t> WordMaskOf(xgrammar::GrammarMatcher* matcher) {
  std::vector<uint32_t> mask(MaskWords(WordVocabulary().texts.size()), ~uint32_t{0});
  MaskTensor tensor(mask);
  matcher->FillNextTokenBitmask(tensor.get());
  return mask;
}

StatusOr<xgrammar::CompiledGrammar> CompiledForWords(GrammarKind kind, std::string_view text) {
  return CompileText({kind, std::string(text)}, WordVocabulary(), WordTokens());
}

TEST(GrammarPack, AGrammarThatWasReadMasksAsTheOneThatWasWritten) {
  for (const auto& [kind, text, answer] :
       {std::tuple(GrammarKind::kRegex, "[a-z]*[0-9][^x]*", "abc7 and more"),
        std::tuple(GrammarKind::kChoice, R"(["yes","no"])", "yes"),
        std::tuple(GrammarKind::kJsonSchema,
                   R"({"properties":{"a":{"type":"string","maxLength":12,"minLength":2},"b":{}}})",
                   R"({"a": "x\ny", "b": [1, "é"]})"),
        std::tuple(
            GrammarKind::kJsonSchema,
            R"({"type":"object","properties":{"a":{"type":"string","maxLength":25},
                      "b":{"anyOf":[{"type":"string","minLength":2,"maxLength":40},{"type":"null"}]}},
                      "required":["a","b"],"additionalProperties":false})",
            R"x({"a": "The end is near: \"\\ é😀!", "b": "bé, still and so on until the 40th"})x"),
        std::tuple(GrammarKind::kStructuralTag,
                   R"({"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f"],
                      "tags":[{"type":"tag","begin":"<f>","end":"</f>","content":
                      {"type":"json_schema","json_schema":{"type":"integer"}}}]}})",
                   "see <f>12</f> x")}) {
    const auto written = CompiledForWords(kind, text);
    ASSERT_TRUE(written.ok()) << written.status();
    const auto read = UnpackGrammar(PackGrammar(*written, SpaceRule::kJson), WordTokens());
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->space, SpaceRule::kJson);
    EXPECT_GT(read->bytes, 0u);
    xgrammar::GrammarMatcher first(*written);
    xgrammar::GrammarMatcher second(read->grammar);
    for (const char c : std::string_view(answer)) {
      EXPECT_EQ(WordMaskOf(&first), WordMaskOf(&second)) << text << " at " << c;
      ASSERT_TRUE(first.AcceptToken(static_cast<unsigned char>(c))) << text << " at " << c;
      ASSERT_TRUE(second.AcceptToken(static_cast<unsigned char>(c)));
    }
    EXPECT_EQ(WordMaskOf(&first), WordMaskOf(&second)) << text;
    EXPECT_TRUE(first.IsCompleted() && second.IsCompleted()) << text;
  }
}

// As a compiling process sends it.
std::string PackedForAttack() {
  const auto written = CompiledForWords(
      GrammarKind::kJsonSchema,
      R"({"type":"object","properties":{"a":{"type":"string","maxLength":25},"b":{"type":"integer"}}})");
  EXPECT_TRUE(written.ok()) << written.status();
  return PackGrammar(*written);
}

constexpr size_t kPackHead = 2 + sizeof(uint64_t);

// What a process that is wrong about the content may send: with the right checksum.
std::string Resummed(std::string packed) {
  const auto seed = static_cast<uint64_t>(static_cast<unsigned char>(packed[0]) << 8 |
                                          static_cast<unsigned char>(packed[1]));
  const uint64_t sum =
      XXH3_64bits_withSeed(packed.data() + kPackHead, packed.size() - kPackHead, seed);
  std::memcpy(packed.data() + 2, &sum, sizeof sum);
  return packed;
}

void Overwrite(std::string* packed, size_t at, uint64_t number) {
  std::memcpy(packed->data() + at, &number, sizeof number);
}

TEST(GrammarPack, BytesThatAreNotWholeOrOfAnotherVocabularyAreNoGrammar) {
  const std::string packed = PackedForAttack();
  ASSERT_TRUE(UnpackGrammar(packed, WordTokens()));
  ASSERT_EQ(Resummed(packed), packed);
  for (size_t size = 0; size < packed.size(); size += 1 + size / 50) {
    const std::string cut = packed.substr(0, size);
    EXPECT_FALSE(UnpackGrammar(cut, WordTokens())) << size;
    if (size < kPackHead) continue;
    EXPECT_FALSE(UnpackGrammar(Resummed(cut), WordTokens())) << size;
  }
  EXPECT_FALSE(UnpackGrammar(packed + '\0', WordTokens()));
  EXPECT_FALSE(UnpackGrammar(Resummed(packed + '\0'), WordTokens()));
  EXPECT_FALSE(UnpackGrammar(packed, MakeTokenizerInfo(ByteVocabulary())));
}

TEST(GrammarPack, AFlippedBitIsSeen) {
  std::string packed = PackedForAttack();
  std::mt19937 draw(3);
  for (int i = 0; i < 2000; ++i) {
    const size_t at = i < 64 ? static_cast<size_t>(i) % packed.size() : draw() % packed.size();
    const auto bit = static_cast<char>(1 << draw() % 8);
    packed[at] = static_cast<char>(packed[at] ^ bit);
    EXPECT_FALSE(UnpackGrammar(packed, WordTokens())) << "bit of byte " << at;
    packed[at] = static_cast<char>(packed[at] ^ bit);
  }
}

TEST(GrammarPack, SizesThatLieAreRefused) {
  const std::string packed = PackedForAttack();
  uint64_t json_size = 0;
  std::memcpy(&json_size, packed.data() + kPackHead, sizeof json_size);
  const size_t masks = kPackHead + sizeof json_size + json_size;
  ASSERT_LT(masks, packed.size());
  // Of the text, the number of masks, and the first mask's first list, which is behind its state and its kind.
  const size_t list = masks + sizeof(uint64_t) + 11 * sizeof(int32_t);
  for (const size_t at : {kPackHead, masks, list}) {
    uint64_t size = 0;
    std::memcpy(&size, packed.data() + at, sizeof size);
    const size_t rest = packed.size() - at - sizeof size;
    for (const uint64_t lie :
         {size - 1, size + 1, uint64_t{rest}, uint64_t{rest / 4}, uint64_t{1} << 31,
          uint64_t{1} << 62, (uint64_t{1} << 62) + size, ~uint64_t{0}}) {
      if (lie == size) continue;
      std::string lying = packed;
      Overwrite(&lying, at, lie);
      EXPECT_FALSE(UnpackGrammar(Resummed(std::move(lying)), WordTokens())) << at << " " << lie;
    }
  }
}

// Either it is refused, or its masks may be wrong, but nothing is read that is not there.
TEST(GrammarPack, WrongContentIsReadWithinItsBounds) {
  const std::string packed = PackedForAttack();
  uint64_t json_size = 0;
  std::memcpy(&json_size, packed.data() + kPackHead, sizeof json_size);
  std::mt19937 draw(5);
  int refused = 0;
  for (int i = 0; i < 600; ++i) {
    std::string wrong = packed;
    for (int edits = 1 + static_cast<int>(draw() % 3); edits > 0; --edits) {
      // Every other one is of the text, whose digits become other digits.
      if (draw() % 2 == 0) {
        const size_t at = kPackHead + sizeof json_size + draw() % json_size;
        wrong[at] = wrong[at] >= '0' && wrong[at] <= '9' ? static_cast<char>('0' + draw() % 10)
                                                         : static_cast<char>(draw() % 256);
      } else {
        wrong[kPackHead + draw() % (wrong.size() - kPackHead)] = static_cast<char>(draw() % 256);
      }
    }
    try {
      const auto read = UnpackGrammar(Resummed(std::move(wrong)), WordTokens());
      if (!read) {
        ++refused;
        continue;
      }
      xgrammar::GrammarMatcher matcher(read->grammar);
      for (const char c : std::string_view(R"({"a": "\n", "b": 1})")) {
        WordMaskOf(&matcher);
        if (!matcher.AcceptToken(static_cast<unsigned char>(c))) break;
      }
    } catch (const std::exception&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace portico::grammar
