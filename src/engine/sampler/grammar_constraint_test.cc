#include "engine/sampler/grammar_constraint.h"

#include <gtest/gtest.h>

#include <memory>
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

// Of tokens that are bytes; without those in `missing`.
Constraint Compiled(std::string_view regex, std::string_view missing = "") {
  grammar::Vocabulary vocabulary = grammar::ByteVocabulary();
  for (const char c : missing) vocabulary.texts[static_cast<unsigned char>(c)].clear();
  auto table = std::make_shared<grammar::TokenTable>(
      grammar::TokenTable{grammar::MakeTokenizerInfo(vocabulary)});
  const auto compiled = grammar::CompileText({grammar::GrammarKind::kRegex, std::string(regex)},
                                             vocabulary, table->tokens);
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
