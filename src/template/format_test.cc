// Formats as Python makes them; the expected texts are CPython 3.11's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "template/template.h"

namespace portico {
namespace {

using testing::HasSubstr;

std::string Render(const std::string& expression) {
  auto parsed = Template::Parse("{{ " + expression + " }}");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  auto text = (*parsed)->Render(Json(JsonObject{}));
  return text.ok() ? *text : "error: " + std::string(MessageOf(text.status()));
}

TEST(FormatTest, ZerosInFrontAreGroupedToo) {
  EXPECT_EQ(Render("'{:08,}'.format(1234)"), "0,001,234");
  EXPECT_EQ(Render("'{:+012,.2f}'.format(1234.5)"), "+0,001,234.50");
  EXPECT_EQ(Render("'{:#010_x}'.format(74565)"), "0x001_2345");
  EXPECT_EQ(Render("'{:*=+12,}'.format(1234)"), "+******1,234");
}

TEST(FormatTest, AFloatWithoutATypeKeepsADigitBehindThePoint) {
  EXPECT_EQ(Render("'{:.3}|{:.4}|{:.1}'.format(123.0, 123.0, 5.0)"), "1.23e+02|123.0|5e+00");
  EXPECT_EQ(Render("'{:#}|{:10}'.format(1e16, 2.5)"), "1.e+16|       2.5");
  EXPECT_EQ(Render("'{:z.1f}|{:.1f}'.format(-0.01, -0.01)"), "0.0|-0.0");
}

TEST(FormatTest, WhatASpecCannotMeanIsRefused) {
  EXPECT_THAT(Render("'{:+}'.format('a')"), HasSubstr("Sign not allowed in string"));
  EXPECT_THAT(Render("'{:=4}'.format('a')"), HasSubstr("'=' alignment not allowed"));
  EXPECT_THAT(Render("'{:q}'.format(3)"),
              HasSubstr("Unknown format code 'q' for object of type 'int'"));
  EXPECT_THAT(Render("'{:d}'.format(3.0)"),
              HasSubstr("Unknown format code 'd' for object of type 'float'"));
  EXPECT_THAT(Render("'{:,x}'.format(3)"), HasSubstr("Cannot specify ',' with 'x'."));
  EXPECT_THAT(Render("'{:_,}'.format(3)"), HasSubstr("Cannot specify both"));
  EXPECT_THAT(Render("'{:.2}'.format(3)"), HasSubstr("Precision not allowed in integer"));
  EXPECT_THAT(Render("'{:c}'.format(-1)"), HasSubstr("not in range(0x110000)"));
  EXPECT_THAT(Render("'{:é}'.format(3)"), HasSubstr("Unknown format code 'é'"));
}

TEST(FormatTest, NumberedAndCountedFieldsDoNotMix) {
  EXPECT_EQ(Render("'{}{}'.format(1, 2)"), "12");
  EXPECT_EQ(Render("'{1}{0}'.format(1, 2)"), "21");
  EXPECT_EQ(Render("'{:{}}'.format(1, 3)"), "  1");
  EXPECT_THAT(Render("'{}{1}'.format(1, 2)"), HasSubstr("cannot switch"));
  EXPECT_THAT(Render("'{0}{}'.format(1, 2)"), HasSubstr("cannot switch"));
  EXPECT_THAT(Render("'{:{:{}}}'.format(1, 2, 3)"), HasSubstr("recursion"));
}

TEST(FormatTest, ConversionsComeBeforeTheSpec) {
  EXPECT_EQ(Render("'{!r:>5}|{!a}|{!s:.1}'.format('a', 'é', 'xyz')"), "  'a'|'\\xe9'|x");
  EXPECT_THAT(Render("'{!q}'.format(1)"), HasSubstr("Unknown conversion specifier q"));
  EXPECT_THAT(Render("'{!rx}'.format(1)"), HasSubstr("expected ':'"));
  EXPECT_THAT(Render("'{'.format(1)"), HasSubstr("Single '{'"));
}

TEST(FormatTest, PercentSignsTakeTheirValuesInTurn) {
  EXPECT_EQ(Render("'%d%% of %s' % (5, 'x')"), "5% of x");
  EXPECT_EQ(Render("'%(a)s' % {'a': 1}"), "1");
  EXPECT_EQ(Render("'%a|%5a' % ('é', 'ü')"), "'\\xe9'|'\\xfc'");
  EXPECT_EQ(Render("'%05c|%05d|%-5d|' % ('x', 3, 4)"), "    x|00003|4    |");
  EXPECT_THAT(Render("'%5%' % 1"), HasSubstr("unsupported format character '%'"));
  EXPECT_THAT(Render("'%(a)s %s' % {'a': 1}"), HasSubstr("not enough arguments"));
  EXPECT_THAT(Render("'%s' % (1, 2)"), HasSubstr("not all arguments converted"));
  EXPECT_THAT(Render("'%c' % 1114112"), HasSubstr("not in range(0x110000)"));
  EXPECT_THAT(Render("'%*d' % ('a', 1)"), HasSubstr("* wants int"));
}

TEST(FormatTest, IntegersAreDividedExactly) {
  EXPECT_EQ(Render("38785078096216191008 / 3"), "1.2928359365405397e+19");
  EXPECT_EQ(Render("(2 ** 1100) / (2 ** 1090 + 1)"), "1024.0");
  EXPECT_EQ(Render("1 / 2 ** 1074"), "5e-324");
  EXPECT_EQ(Render("3 / 2 ** 1075"), "1e-323");
  EXPECT_EQ(Render("-(2 ** 62 + 1) / 2 ** 62"), "-1.0");
  EXPECT_THAT(Render("2 ** 1100 / 3"), HasSubstr("too large for a float"));
}

TEST(FormatTest, NumbersAreReadInTheDigitsOfAnyScript) {
  EXPECT_EQ(Render("'١٢'|int + '１０'|int(0, 2)"), "14");
  EXPECT_EQ(Render("'١٢.५'|float"), "12.5");
  EXPECT_EQ(Render("'²'|int(-1)"), "-1");
}

TEST(FormatTest, RoundingUpOrDownGivesNoNegativeZero) {
  EXPECT_EQ(Render("(-0.2)|round(0, 'ceil')"), "0.0");
  EXPECT_EQ(Render("(-7953580248097286726)|round(5, 'floor')"), "-7.953580248097287e+18");
}

}  // namespace
}  // namespace portico
