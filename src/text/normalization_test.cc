#include "text/normalization.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/unicode.h"
#include "text/utf8.h"

namespace portico {
namespace {

std::string Form(NormalForm form, std::string_view text) {
  std::vector<NormalizedChar> chars;
  NormalizeTo(form, text, &chars);
  std::string out;
  for (const NormalizedChar& c : chars) AppendUtf8(c.code_point, &out);
  return out;
}

TEST(NormalizationTest, TheFourFormsOfTheUsualExamples) {
  EXPECT_EQ(Form(NormalForm::kNfc, "e\u0301"), "\u00E9");
  EXPECT_EQ(Form(NormalForm::kNfd, "\u00E9"), "e\u0301");
  EXPECT_EQ(Form(NormalForm::kNfkc, "ﬁ①"), "fi1");
  EXPECT_EQ(Form(NormalForm::kNfkd, "…"), "...");
  EXPECT_EQ(Form(NormalForm::kNfc, "\u1112\u1161\u11AB"), "한");
  EXPECT_EQ(Form(NormalForm::kNfd, "한"), "\u1112\u1161\u11AB");
}

TEST(NormalizationTest, MarksAreOrderedAndABlockedMarkStaysApart) {
  EXPECT_EQ(Form(NormalForm::kNfd, "q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(Form(NormalForm::kNfc, "a\u0328\u0301"), "\u0105\u0301");
  EXPECT_EQ(Form(NormalForm::kNfc, "\u0958"), "\u0915\u093C");
}

TEST(NormalizationTest, TheQuickNfcEqualsTheWholeOne) {
  std::mt19937 random(5);
  const std::vector<std::string> parts = {"a",      "e",      "\u0301", "\u0323", "\u0307", "क",
                                          "\u093C", "\u094D", "\u1112", "\u1161", "\u11A8", "가",
                                          "\u212B", "\u0958", "中",     " ",      "\u0345", "😀"};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 7; ++i) text += parts[random() % parts.size()];
    std::string want = Form(NormalForm::kNfc, text);
    ASSERT_EQ(ToNfc(text), want) << text;
    ASSERT_EQ(IsNfc(text), text == want) << text;
    if (IsSurelyNfc(text)) {
      ASSERT_EQ(text, want);
    }
  }
}

TEST(UnicodeTest, ClassesAndLowercaseOfAFewCharacters) {
  EXPECT_TRUE(PropertiesOf('a').is_letter());
  EXPECT_TRUE(PropertiesOf(0x661).is_number());
  EXPECT_TRUE(PropertiesOf(0x3000).is_space());
  EXPECT_TRUE(PropertiesOf(0x301).is_mark());
  EXPECT_TRUE(PropertiesOf('$').is_symbol());
  EXPECT_FALSE(PropertiesOf(0x110000).is_letter());
  EXPECT_EQ(ToLowercase('A'), uint32_t{'a'});
  EXPECT_EQ(ToLowercase(0xC9), 0xE9u);
  EXPECT_EQ(ToLowercase(0x100), 0x101u);
  EXPECT_EQ(ToLowercase(0x101), 0x101u);
  EXPECT_EQ(ToLowercase(0x1E9E), 0xDFu);
  EXPECT_EQ(ToLowercase(0x10FFFF), 0x10FFFFu);
}

}  // namespace
}  // namespace portico
