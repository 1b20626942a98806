#include "engine/sampler/grammar_constraint.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/sampler/sampler.h"
#include "grammar/compile/grammar_pack.h"
#include "grammar/grammar_for_test.h"
#include "grammar/mask/token_table.h"

namespace portico {
namespace {

using grammar::kTestEnd;
using grammar::kTestMarker;
using grammar::kTestQuoteEnd;

// Of tokens that are bytes; without those in `missing`.
Constraint Compiled(std::string_view regex, std::string_view missing = "",
                    grammar::GrammarKind kind = grammar::GrammarKind::kRegex) {
  grammar::Vocabulary vocabulary = grammar::ByteVocabulary();
  for (const char c : missing) vocabulary.texts[static_cast<unsigned char>(c)].clear();
  auto table = std::make_shared<grammar::TokenTable>(
      grammar::TokenTable{grammar::MakeTokenizerInfo(vocabulary)});
  const auto compiled = grammar::CompileText({kind, std::string(regex)}, vocabulary, table->tokens);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  auto read = grammar::CompiledGrammar::Read(grammar::PackGrammar(*compiled), table);
  EXPECT_TRUE(read.ok()) << read.status();
  Constraint constraint;
  constraint.kind = ConstraintKind::kRegex;
  constraint.compiled = std::make_shared<const GrammarConstraint>(*std::move(read));
  return constraint;
}

TEST(ConstraintState, AllowsWhatTheGrammarAllowsAndEndsWithIt) {
  ConstraintState state(Compiled("ab?"));
  EXPECT_TRUE(Allows(state.mask(), 'a'));
  EXPECT_FALSE(Allows(state.mask(), 'b'));
  EXPECT_FALSE(Allows(state.mask(), kTestEnd));
  EXPECT_FALSE(state.Accept('b'));
  EXPECT_TRUE(state.Accept('a'));
  EXPECT_TRUE(Allows(state.mask(), 'b'));
  EXPECT_TRUE(Allows(state.mask(), kTestEnd));
  EXPECT_FALSE(state.finished());
  EXPECT_TRUE(state.Accept(kTestEnd));
  EXPECT_TRUE(state.finished());
}

// vllm 44012: no schema behind reasoning.
TEST(ConstraintState, TheGrammarStartsBehindTheReasoning) {
  Constraint constraint = Compiled("ab?");
  constraint.think_end = kTestMarker;
  ConstraintState state(constraint);
  for (const char c : std::string_view("bzz")) {
    EXPECT_TRUE(Allows(state.mask(), c));
    EXPECT_FALSE(state.stuck());
    EXPECT_TRUE(state.Accept(c));
  }
  EXPECT_TRUE(Allows(state.mask(), kTestMarker));
  EXPECT_FALSE(Allows(state.mask(), kTestEnd)) << "the answer would end without its form";
  EXPECT_TRUE(state.Accept(kTestMarker));
  EXPECT_TRUE(Allows(state.mask(), 'a'));
  EXPECT_FALSE(Allows(state.mask(), 'b'));
  EXPECT_FALSE(Allows(state.mask(), kTestMarker));
  EXPECT_FALSE(state.Accept('z'));
  EXPECT_TRUE(state.Accept('a'));
}

TEST(ConstraintState, ReasoningThatMayBeginIsEnteredByItsFirstTokenOnly) {
  Constraint constraint = Compiled("ab?");
  constraint.think_start = 'T';
  constraint.think_end = kTestMarker;
  ConstraintState thinks(constraint);
  EXPECT_TRUE(Allows(thinks.mask(), 'T'));
  EXPECT_TRUE(Allows(thinks.mask(), 'a'));
  EXPECT_FALSE(Allows(thinks.mask(), 'z'));
  EXPECT_TRUE(thinks.Accept('T'));
  EXPECT_TRUE(Allows(thinks.mask(), 'z'));
  EXPECT_TRUE(thinks.Accept(kTestMarker));
  EXPECT_FALSE(Allows(thinks.mask(), 'T'));
  ConstraintState answers(constraint);
  EXPECT_TRUE(answers.Accept('a'));
  EXPECT_FALSE(Allows(answers.mask(), 'T'));
  EXPECT_FALSE(answers.Accept('T'));
}

TEST(ConstraintState, ReasoningEndsAfterItsTokens) {
  Constraint constraint;
  constraint.kind = ConstraintKind::kReasoning;
  constraint.think_end = kTestMarker;
  constraint.max_thinking_tokens = 2;
  ConstraintState state(constraint);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Allows(state.mask(), 'z'));
    EXPECT_TRUE(state.Accept('z'));
  }
  EXPECT_FALSE(Allows(state.mask(), 'z'));
  EXPECT_TRUE(Allows(state.mask(), kTestMarker));
  EXPECT_TRUE(state.Accept(kTestMarker));
  EXPECT_TRUE(Allows(state.mask(), 'z'));
  EXPECT_TRUE(state.Accept('z'));
}

TEST(ConstraintState, AVocabularyThatCannotSayItLeavesNothing) {
  ConstraintState state(Compiled("az", "z"));
  EXPECT_FALSE(state.stuck());
  EXPECT_TRUE(state.Accept('a'));
  EXPECT_TRUE(state.stuck());
}

std::vector<TokenId> ForcedOf(const ConstraintState& state, size_t most = 100) {
  std::vector<TokenId> tokens;
  state.ForcedTokens(most, &tokens);
  return tokens;
}

std::vector<TokenId> AllowedBy(ConstraintState* state) {
  std::vector<TokenId> allowed;
  const TokenMask mask = state->mask();
  for (TokenId token = 0; token <= kTestQuoteEnd; ++token) {
    if (Allows(mask, token)) allowed.push_back(token);
  }
  return allowed;
}

TEST(ConstraintState, FindsTheTokensOfTheOnlyTextUpToItsBound) {
  ConstraintState state(Compiled("abc(d|e)fg"), 8);
  EXPECT_TRUE(ForcedOf(state).empty());
  state.Prepare();
  EXPECT_EQ(ForcedOf(state), (std::vector<TokenId>{'a', 'b', 'c'}));
  EXPECT_EQ(ForcedOf(state, 2), (std::vector<TokenId>{'a', 'b'}));
  EXPECT_EQ(AllowedBy(&state), (std::vector<TokenId>{'a'}));
  for (const TokenId token : {'a', 'b', 'c'}) EXPECT_TRUE(state.Accept(token));
  EXPECT_TRUE(ForcedOf(state).empty());
  EXPECT_EQ(AllowedBy(&state), (std::vector<TokenId>{'d', 'e'}));
  EXPECT_TRUE(state.Accept('e'));
  state.Prepare();
  EXPECT_EQ(ForcedOf(state), (std::vector<TokenId>{'f', 'g'})) << "not the end";
  ConstraintState bounded(Compiled("abc"), 2);
  bounded.Prepare();
  EXPECT_EQ(ForcedOf(bounded), (std::vector<TokenId>{'a', 'b'}));
}

// Sixteen slow masks in one step would hold up every stream.
TEST(ConstraintState, LooksAheadOnlyAsLongAsItIsToldToGoOn) {
  ConstraintState state(Compiled("abcdef"), 8);
  int left = 2;
  state.Prepare([&] { return left-- > 0; });
  EXPECT_EQ(ForcedOf(state), (std::vector<TokenId>{'a', 'b'}));
  EXPECT_EQ(state.ahead(), 2u);
  EXPECT_TRUE(state.Accept('a'));
  state.Prepare([] { return false; });
  EXPECT_EQ(ForcedOf(state), (std::vector<TokenId>{'b'}));
  EXPECT_TRUE(state.Accept('b'));
  EXPECT_EQ(AllowedBy(&state), (std::vector<TokenId>{'c'}));
  state.Prepare();
  EXPECT_EQ(ForcedOf(state), (std::vector<TokenId>{'c', 'd', 'e', 'f'}));
}

// A text is fixed, and the model may still spell it in more tokens than the fewest.
TEST(ConstraintState, GoesBackWhereTheModelSpellsTheTextInOtherTokens) {
  ConstraintState state(Compiled(R"(x"\}y)"), 8);
  state.Prepare();
  EXPECT_EQ(ForcedOf(state), (std::vector<TokenId>{'x', kTestQuoteEnd, 'y'}));
  EXPECT_TRUE(state.Accept('x'));
  EXPECT_EQ(AllowedBy(&state), (std::vector<TokenId>{'"', kTestQuoteEnd}));
  EXPECT_TRUE(state.Accept('"'));
  EXPECT_TRUE(ForcedOf(state).empty());
  EXPECT_EQ(AllowedBy(&state), (std::vector<TokenId>{'}'}));
  EXPECT_TRUE(state.Accept('}'));
  EXPECT_TRUE(state.Accept('y'));
  EXPECT_EQ(AllowedBy(&state), (std::vector<TokenId>{kTestEnd}));
}

TEST(ConstraintState, DoesNotLookAheadWhileTheModelThinksNorWhereItMayBegin) {
  Constraint constraint = Compiled("ab");
  constraint.think_end = kTestMarker;
  ConstraintState thinks(constraint, 8);
  thinks.Prepare();
  EXPECT_TRUE(ForcedOf(thinks).empty());
  EXPECT_TRUE(thinks.Accept(kTestMarker));
  thinks.Prepare();
  EXPECT_EQ(ForcedOf(thinks), (std::vector<TokenId>{'a', 'b'}));
  constraint.think_start = 'T';
  ConstraintState may(constraint, 8);
  may.Prepare();
  EXPECT_TRUE(ForcedOf(may).empty());
  EXPECT_TRUE(may.Accept('a'));
  may.Prepare();
  EXPECT_EQ(ForcedOf(may), (std::vector<TokenId>{'b'}));
}

TEST(ConstraintState, DoesNotLookAheadWhereItCouldNotGoBack) {
  const std::string ebnf = "root ::= \"ab\" rest\nrest[max_chars=3] ::= [a-z]*";
  ConstraintState state(Compiled(ebnf, "", grammar::GrammarKind::kEbnf), 8);
  state.Prepare();
  EXPECT_TRUE(ForcedOf(state).empty());
  EXPECT_EQ(AllowedBy(&state), (std::vector<TokenId>{'a'}));
}

TEST(ConstraintState, AVocabularyThatCannotSayTheRestIsFoundWhenItIsReached) {
  ConstraintState state(Compiled("abz", "z"), 8);
  state.Prepare();
  EXPECT_EQ(ForcedOf(state), (std::vector<TokenId>{'a', 'b'}));
  EXPECT_FALSE(state.stuck());
  EXPECT_TRUE(state.Accept('a'));
  EXPECT_FALSE(state.stuck());
  EXPECT_TRUE(state.Accept('b'));
  EXPECT_TRUE(state.stuck());
}

TEST(ConstraintState, MasksAreTheSameWithAndWithoutLookingAhead) {
  const std::string schema = R"({"type": "object", "additionalProperties": false,
      "required": ["name", "kind"], "properties": {"name": {"enum": ["\"}", "x\"}", "xy"]},
      "kind": {"type": "array", "items": {"type": "boolean"}}}})";
  const Constraint constraints[] = {Compiled(R"((x"\}){1,4}z?)"),
                                    Compiled(R"((ab"\}"\}|ab"\}c|ab"x)*"\})"),
                                    Compiled(schema, "", grammar::GrammarKind::kJsonSchema)};
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Constraint& constraint = constraints[round % 3];
    ConstraintState plain(constraint);
    ConstraintState ahead(constraint, 1 + random() % 9);
    for (int i = 0; i < 80 && !plain.finished(); ++i) {
      if (random() % 3 != 0) ahead.Prepare();
      ASSERT_EQ(plain.stuck(), ahead.stuck());
      const std::vector<TokenId> allowed = AllowedBy(&plain);
      ASSERT_EQ(allowed, AllowedBy(&ahead)) << "round " << round << ", token " << i;
      ASSERT_FALSE(allowed.empty());
      const TokenId token = allowed[random() % allowed.size()];
      ASSERT_TRUE(plain.Accept(token));
      ASSERT_TRUE(ahead.Accept(token));
      ASSERT_EQ(plain.finished(), ahead.finished());
    }
  }
}

TEST(Sampler, DrawsOnlyWhatAMaskAllows) {
  auto params = std::make_shared<SamplingParams>();
  params->temperature = 1;
  Sampler sampler(params, 0, {}, 1);
  SamplerScratch scratch;
  const std::vector<float> logits{9, 1, 1, 9};
  const std::vector<uint32_t> mask{0b0110};
  for (int i = 0; i < 50; ++i) {
    std::span<const float> row;
    const TokenId token = sampler.Next(logits, &scratch, &row, mask);
    EXPECT_TRUE(token == 1 || token == 2) << token;
    EXPECT_EQ(row[0], 9) << "log-probabilities are the model's";
  }
  const std::vector<uint32_t> none{0};
  EXPECT_EQ(sampler.Next(logits, &scratch, nullptr, none), -1);
}

}  // namespace
}  // namespace portico
