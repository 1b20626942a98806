#include "grammar/compile/grammar_compiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "grammar/grammar_for_test.h"

namespace portico::grammar {
namespace {

using Compiled = GrammarCompiler::Compiled;

struct Fixture {
  explicit Fixture(const GrammarCompilerOptions& options = {}) {
    compiler = std::make_unique<GrammarCompiler>(*CompileProcess::Start(), options, &metrics);
    model = *compiler->AddModel(ByteVocabulary());
  }
  Compiled Get(GrammarText text) {
    std::promise<Compiled> promise;
    compiler->Compile(*model, std::move(text),
                      [&](const Compiled& result) { promise.set_value(result); });
    return promise.get_future().get();
  }
  Registry metrics;
  std::unique_ptr<GrammarCompiler> compiler;
  std::shared_ptr<const GrammarModel> model;
};

std::string Nested(int depth) {
  std::string schema = R"({"type":"null"})";
  for (int i = 0; i < depth; ++i) {
    schema = R"({"type":"array","minItems":0,"maxItems":900,"items":)" + schema + "}";
  }
  return schema;
}

TEST(GrammarCompiler, GivesAGrammarThatMasks) {
  Fixture setup;
  const Compiled compiled = setup.Get({GrammarKind::kChoice, R"(["yes","no"])"});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Matcher matcher(*compiled);
  std::vector<uint32_t> mask(MaskWords((*compiled)->vocab_size()));
  ASSERT_TRUE(matcher.FillMask(mask));
  for (int id = 0; id < 259; ++id) {
    EXPECT_EQ((mask[id / 32] >> (id % 32)) & 1, id == 'y' || id == 'n') << id;
  }
  EXPECT_FALSE(matcher.Accept('x'));
  for (const char c : {'n', 'o'}) EXPECT_TRUE(matcher.Accept(c));
  EXPECT_TRUE(matcher.complete());
  ASSERT_TRUE(matcher.FillMask(mask));
  EXPECT_EQ(mask[kTestEnd / 32] >> (kTestEnd % 32) & 1, 1u);
  EXPECT_TRUE(matcher.Accept(kTestEnd));
  EXPECT_TRUE(matcher.finished());
}

TEST(GrammarCompiler, CompilesEqualTextsOnce) {
  Fixture setup;
  const Compiled first = setup.Get({GrammarKind::kJsonObject, ""});
  const Compiled second = setup.Get({GrammarKind::kJsonObject, ""});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(GrammarCompiler, RefusesByName) {
  Fixture setup;
  for (const auto& [kind, text] :
       {std::pair(GrammarKind::kEbnf, "root ::= missing"),
        std::pair(GrammarKind::kEbnf, "root ::= root root | root"),
        std::pair(GrammarKind::kRegex, "(a"), std::pair(GrammarKind::kChoice, "[]"),
        std::pair(GrammarKind::kStructuralTag, "{}"), std::pair(GrammarKind::kJsonSchema, "{")}) {
    const Compiled compiled = setup.Get({kind, text});
    EXPECT_EQ(compiled.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_FALSE(MessageOf(compiled.status()).empty());
  }
}

// vllm 54003: a small schema that kept a processor busy without end.
TEST(GrammarCompiler, EndsWhatTakesTooLong) {
  GrammarCompilerOptions options;
  options.limits.time = std::chrono::milliseconds(300);
  Fixture setup(options);
  const Compiled compiled =
      setup.Get({GrammarKind::kEbnf,
                 "root ::= " + std::string(2000, '(') + "\"a\"{0,9000}" + std::string(2000, ')')});
  const Compiled other = setup.Get({GrammarKind::kJsonSchema, Nested(3)});
  EXPECT_FALSE(compiled.ok() && other.ok());
  for (const Compiled& one : {compiled, other}) {
    EXPECT_TRUE(one.ok() || one.status().code() == StatusCode::kInvalidArgument) << one.status();
  }
  // And the next is served.
  EXPECT_TRUE(setup.Get({GrammarKind::kChoice, R"(["a"])"}).ok());
}

TEST(GrammarCompiler, TheLimitsOfATextCanBeSet) {
  const std::string nested = R"({"type":"array","items":{"type":"array","items":{"enum":[1]}}})";
  const std::string branches = R"({"anyOf":[{"type":"null"},{"type":"boolean"},{"const":1}]})";
  const auto compile = [&](const std::string& text, TextLimits limits) {
    GrammarCompilerOptions options;
    options.limits.text = limits;
    return Fixture(options).Get({GrammarKind::kJsonSchema, text}).ok();
  };
  EXPECT_TRUE(compile(nested, {}) && compile(branches, {}));
  EXPECT_FALSE(compile(nested, {.bytes = 20}));
  EXPECT_TRUE(compile(nested, {.depth = 2}));
  EXPECT_FALSE(compile(nested, {.depth = 1}));
  EXPECT_FALSE(compile(branches, {.branches = 2}));
  EXPECT_FALSE(compile(nested, {.rules = 1}));
}

TEST(GrammarCompiler, RefusesWhatDoesNotFitIntoItsQueue) {
  GrammarCompilerOptions options;
  options.max_queued = 0;
  Fixture setup(options);
  EXPECT_EQ(setup.Get({GrammarKind::kJsonObject, ""}).status().code(),
            StatusCode::kResourceExhausted);
}

// Grammars of clients that had left kept their places in the queue, and were compiled one after the other.
TEST(GrammarCompiler, WhatNobodyWaitsForLeavesTheQueue) {
  GrammarCompilerOptions options;
  options.max_queued = 2;
  options.max_wait = std::chrono::minutes(10);
  Fixture setup(options);
  const auto ask = [&setup](const std::string& word, std::promise<Status>* told,
                            GrammarCompiler::Wanted wanted) {
    setup.compiler->Compile(
        *setup.model, {GrammarKind::kChoice, R"([")" + word + R"("])"},
        [told](const Compiled& result) { told->set_value(result.status()); }, std::move(wanted));
  };
  std::promise<void> begun;
  std::promise<void> go;
  setup.compiler->Compile(*setup.model, {GrammarKind::kJsonObject, ""}, [&](const Compiled&) {
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();  // the only thread is held
  std::promise<Status> first, second, third, fourth, beside;
  auto one = std::make_shared<char>();
  auto two = std::make_shared<char>();
  ask("first", &first, one);
  ask("second", &second, two);
  one.reset();
  ask("third", &third, std::weak_ptr<const void>());  // its client is gone already
  EXPECT_EQ(first.get_future().get().code(), StatusCode::kCancelled);
  ask("fourth", &fourth, std::nullopt);  // takes the place of the third
  EXPECT_EQ(third.get_future().get().code(), StatusCode::kCancelled);
  ask("second", &beside, std::nullopt);
  two.reset();  // another still waits for it
  std::promise<Status> fifth;
  ask("fifth", &fifth, std::nullopt);
  EXPECT_EQ(fifth.get_future().get().code(), StatusCode::kResourceExhausted);
  go.set_value();
  EXPECT_TRUE(second.get_future().get().ok());
  EXPECT_TRUE(beside.get_future().get().ok());
  EXPECT_TRUE(fourth.get_future().get().ok());
}

TEST(GrammarCompiler, WhatNobodyWaitsForIsNotCompiledWhenItsTurnComes) {
  Fixture setup;
  std::promise<void> begun;
  std::promise<void> go;
  setup.compiler->Compile(*setup.model, {GrammarKind::kJsonObject, ""}, [&](const Compiled&) {
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  auto client = std::make_shared<char>();
  std::promise<Status> told;
  setup.compiler->Compile(
      *setup.model, {GrammarKind::kChoice, R"(["a"])"},
      [&told](const Compiled& result) { told.set_value(result.status()); }, client);
  client.reset();
  go.set_value();
  EXPECT_EQ(told.get_future().get().code(), StatusCode::kCancelled);
  EXPECT_TRUE(setup.Get({GrammarKind::kChoice, R"(["a"])"}).ok());
}

TEST(GrammarCompiler, TagsOfBothFormsConstrainWhatIsBetween) {
  Fixture setup;
  const std::string_view older =
      R"({"structures":[{"begin":"<f>","schema":{"type":"integer"},"end":"</f>"}],"triggers":["<f"]})";
  const std::string_view newer =
      R"({"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f"],"tags":[
          {"type":"tag","begin":"<f>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</f>"}]}})";
  for (const std::string_view text : {older, newer}) {
    const Compiled compiled = setup.Get({GrammarKind::kStructuralTag, std::string(text)});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    Matcher good(*compiled);
    for (const char c : std::string_view("hi <f>12</f> x")) EXPECT_TRUE(good.Accept(c)) << c;
    Matcher bad(*compiled);
    for (const char c : std::string_view("<f>")) EXPECT_TRUE(bad.Accept(c));
    EXPECT_FALSE(bad.Accept('"'));
    EXPECT_FALSE(bad.Accept(kTestMarker));
  }
}

}  // namespace
}  // namespace portico::grammar
