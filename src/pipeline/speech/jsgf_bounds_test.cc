#include "pipeline/speech/jsgf_bounds.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace portico::pipeline {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHead = "#JSGF V1.0; grammar g; ";

std::string Why(std::string_view rules) {
  const auto bounded = BoundedJsgf(std::string(kHead) + std::string(rules));
  return bounded.ok() ? "" : std::string(bounded.status().message());
}

std::string Repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(JsgfBounds, TakeGrammarsOfUsualSize) {
  EXPECT_EQ(Why("public <s> = [please] what is the capital of (japan | france) [now];"), "");
  EXPECT_EQ(Why("<n> = one | two | three; public <sum> = <n> plus <g.n>;"), "");
  EXPECT_EQ(Why("public <s> = <w> | <w> <s>; <w> = a | b;"), "");
  EXPECT_EQ(Why("public <s> = (a | <NULL>)+ b*;"), "");
}

// A kilobyte of such rules took all memory of the server.
TEST(JsgfBounds, RefuseRulesThatMultiply) {
  std::string rules = "<r0> = a;";
  for (int i = 1; i < 30; ++i) rules += fmt::format("<r{}> = <r{}> <r{}>;", i, i - 1, i - 1);
  EXPECT_THAT(Why(rules + "public <s> = <r29>;"), HasSubstr("is too large"));
  EXPECT_THAT(Why("public <s> = " + Repeated("a ", 5000) + ";"), HasSubstr("is too large"));
  EXPECT_THAT(Why("public <s> = " + Repeated("a ", 40000) + ";"), HasSubstr("bytes"));
}

// The recognizer computed for minutes, after its request had ended.
TEST(JsgfBounds, RefuseManyOptionalParts) {
  EXPECT_EQ(Why("public <s> = " + Repeated("[a] ", 96) + ";"), "");
  EXPECT_THAT(Why("public <s> = " + Repeated("[a] ", 97) + ";"), HasSubstr("is too costly"));
  EXPECT_THAT(Why("public <s> = " + Repeated("a* ", 97) + ";"), HasSubstr("is too costly"));
  EXPECT_THAT(Why("<o> = [a]; public <s> = " + Repeated("<o> ", 97) + ";"),
              HasSubstr("is too costly"));
}

TEST(JsgfBounds, RefuseRulesThatTheRecognizerCannotFollow) {
  EXPECT_THAT(Why("public <s> = <t>;"), HasSubstr("has no rule <t>"));
  EXPECT_THAT(Why("public <s> = <s> a;"), HasSubstr("uses <s> within itself"));
  EXPECT_THAT(Why("<t> = b <s>; public <s> = <t> a;"), HasSubstr("within itself"));
  EXPECT_THAT(Why("public <s> = a; <s> = b;"), HasSubstr("twice"));
  EXPECT_THAT(Why("import <etc.secret>; public <s> = a;"), HasSubstr("import"));
  EXPECT_THAT(Why(""), HasSubstr("has no rule"));
  EXPECT_EQ(FieldOf(BoundedJsgf("nonsense").status()), "stage_params");
  std::string chain = "<r0> = a;";
  for (int i = 1; i < 1500; ++i) chain += fmt::format("<r{}> = <r{}>;", i, i - 1);
  EXPECT_THAT(Why(chain + "public <s> = <r1499>;"), HasSubstr("within rules"));
}

TEST(JsgfBounds, GiveTheRecognizerOnlyWhatWasCounted) {
  const auto bounded = BoundedJsgf(
      "#JSGF V1.0;\ngrammar g; // <a>\n/* <b> */ public <s> = /0.5/ \"one\" {<c>;} | / <d> / two>;"
      "<d> = \\\" x;");
  ASSERT_TRUE(bounded.ok()) << bounded.status().message();
  EXPECT_EQ(*bounded, "#JSGF V1.0 ; grammar g ; public <s> = /0.5/ one | <d> two ; <d> = x ;");
  for (const std::string_view end : {"{", "/*", "//", "\"", "<", "/", "\\", "<>"}) {
    EXPECT_TRUE(BoundedJsgf("#JSGF; public <s> = a;" + std::string(end)).ok()) << end;
  }
}

}  // namespace
}  // namespace portico::pipeline
