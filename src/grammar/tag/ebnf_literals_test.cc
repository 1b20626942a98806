#include "grammar/tag/ebnf_literals.h"

#include <gtest/gtest.h>

namespace portico::grammar {
namespace {

// The library ends a literal at a NUL: the grammar "\x00" allowed the empty answer alone.
TEST(EbnfLiterals, NulIsFoundInEverySpelling) {
  for (const char* const grammar :
       {R"(root ::= "\x00")", R"(root ::= "a\x0")", R"(root ::= "\x000g")", R"(root ::= "\0")",
        R"(root ::= "a\u0000b")", R"(root ::= "\U00000000")", R"(root ::= "\\\x00")",
        "root ::= \"a\" # \"b\n  [\"] \"\\x00\"", R"(start: "\u0000")", R"(start: /"/ "\x00")"}) {
    EXPECT_TRUE(HasNulInLiteral(grammar)) << grammar;
  }
}

TEST(EbnfLiterals, OtherCharactersClassesAndCommentsAreNoNul) {
  for (const char* const grammar :
       {R"(root ::= "\x01")", R"(root ::= "\x000a")", R"(root ::= "\\x00")",
        R"(root ::= [^\x00-\x1f"]+)", R"(root ::= [\]\x00] "a")", R"(root ::= "a" # "\x00")",
        R"(start: /"[^\x00]*"/)", "start: \"a\" // \"\\x00\"", R"(root ::= "\)", "", "\""}) {
    EXPECT_FALSE(HasNulInLiteral(grammar)) << grammar;
  }
}

}  // namespace
}  // namespace portico::grammar
