#include "grammar/tag/ebnf_literals.h"

#include <gtest/gtest.h>

#include <string_view>
#include <tuple>

#include "grammar/grammar_for_test.h"

namespace portico::grammar {
namespace {

// The library ends a literal at a NUL: the grammar "\x00" allowed the empty answer alone.
TEST(EbnfLiterals, NulIsFoundInEverySpelling) {
  for (const char* const grammar :
       {R"(root ::= "\x00")", R"(root ::= "a\x0")", R"(root ::= "\x000g")", R"(root ::= "\0")",
        R"(root ::= "a\u0000b")", R"(root ::= "\U00000000")", R"(root ::= "\\\x00")",
        "root ::= \"a\" # \"b\n  [\"] \"\\x00\"", R"(start: "\u0000")", R"(start: /"/ "\x00")",
        R"(root ::= [\x00] "a")", R"(root ::= [a\x00]+)", R"(root ::= [\]\0])",
        R"(root ::= [\u0000-\x00])", R"(root ::= [\u00000-9])", R"(root ::= [a-z\U00000000-])",
        R"(start: /[b\x00]/)", R"(start: /a\x00/)"}) {
    EXPECT_TRUE(HasNulInLiteral(grammar)) << grammar;
  }
}

TEST(EbnfLiterals, OtherCharactersClassesAndCommentsAreNoNul) {
  for (const char* const grammar :
       {R"(root ::= "\x01")", R"(root ::= "\x000a")", R"(root ::= "\\x00")",
        R"(root ::= [^\x00-\x1f"]+)", R"(root ::= [\x00-\x1f] "a")", R"(root ::= [\]\x00-a] "a")",
        R"(root ::= "a" # "\x00")", R"(start: /"[^\x00]*"/)", "start: \"a\" // \"\\x00\"",
        R"(root ::= "\)", "", "\""}) {
    EXPECT_FALSE(HasNulInLiteral(grammar)) << grammar;
  }
}

// [\x00] allowed nothing in its place.
TEST(EbnfLiterals, ARangeWithNulTakesIt) {
  using std::string_view_literals::operator""sv;
  for (const auto& [grammar, text, takes] :
       {std::tuple(R"(root ::= [\x00-\x02] "a")", "\0a"sv, true),
        std::tuple(R"(root ::= [\x00-\x02] "a")", "\1a"sv, true),
        std::tuple(R"(root ::= [\x00-\x02] "a")", "\3a"sv, false),
        std::tuple(R"(root ::= [\x00-\x02] "a")", "a"sv, false),
        std::tuple(R"(root ::= [^a] "a")", "\0a"sv, true),
        std::tuple(R"(root ::= [^\x00] "a")", "\0a"sv, false),
        std::tuple(R"(root ::= [^\x00] "a")", "ba"sv, true)}) {
    const auto compiled = CompiledForTest({GrammarKind::kEbnf, grammar});
    ASSERT_TRUE(compiled.ok()) << grammar << ": " << compiled.status();
    EXPECT_EQ(Takes(*compiled, text), takes) << grammar << " " << text.size();
  }
  EXPECT_EQ(CompiledForTest({GrammarKind::kEbnf, R"(root ::= [\x00] "a")"}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace portico::grammar
