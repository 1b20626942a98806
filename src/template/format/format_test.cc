// Formats as Python makes them; the expected texts are CPython 3.11's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "template/render_for_test.h"

namespace portico {
namespace {

using testing::HasSubstr;

TEST(FormatTest, ZerosInFrontAreGroupedToo) {
  EXPECT_EQ(Printed("'{:08,}'.format(1234)"), "0,001,234");
  EXPECT_EQ(Printed("'{:+012,.2f}'.format(1234.5)"), "+0,001,234.50");
  EXPECT_EQ(Printed("'{:#010_x}'.format(74565)"), "0x001_2345");
  EXPECT_EQ(Printed("'{:*=+12,}'.format(1234)"), "+******1,234");
}

TEST(FormatTest, AFloatWithoutATypeKeepsADigitBehindThePoint) {
  EXPECT_EQ(Printed("'{:.3}|{:.4}|{:.1}'.format(123.0, 123.0, 5.0)"), "1.23e+02|123.0|5e+00");
  EXPECT_EQ(Printed("'{:#}|{:10}'.format(1e16, 2.5)"), "1.e+16|       2.5");
  EXPECT_EQ(Printed("'{:z.1f}|{:.1f}'.format(-0.01, -0.01)"), "0.0|-0.0");
}

TEST(FormatTest, WhatASpecCannotMeanIsRefused) {
  EXPECT_THAT(Printed("'{:+}'.format('a')"), HasSubstr("Sign not allowed in string"));
  EXPECT_THAT(Printed("'{:=4}'.format('a')"), HasSubstr("'=' alignment not allowed"));
  EXPECT_THAT(Printed("'{:q}'.format(3)"),
              HasSubstr("Unknown format code 'q' for object of type 'int'"));
  EXPECT_THAT(Printed("'{:d}'.format(3.0)"),
              HasSubstr("Unknown format code 'd' for object of type 'float'"));
  EXPECT_THAT(Printed("'{:,x}'.format(3)"), HasSubstr("Cannot specify ',' with 'x'."));
  EXPECT_THAT(Printed("'{:_,}'.format(3)"), HasSubstr("Cannot specify both"));
  EXPECT_THAT(Printed("'{:.2}'.format(3)"), HasSubstr("Precision not allowed in integer"));
  EXPECT_THAT(Printed("'{:c}'.format(-1)"), HasSubstr("not in range(0x110000)"));
  EXPECT_THAT(Printed("'{:é}'.format(3)"), HasSubstr("Unknown format code 'é'"));
}

TEST(FormatTest, NumberedAndCountedFieldsDoNotMix) {
  EXPECT_EQ(Printed("'{}{}'.format(1, 2)"), "12");
  EXPECT_EQ(Printed("'{1}{0}'.format(1, 2)"), "21");
  EXPECT_EQ(Printed("'{:{}}'.format(1, 3)"), "  1");
  EXPECT_THAT(Printed("'{}{1}'.format(1, 2)"), HasSubstr("cannot switch"));
  EXPECT_THAT(Printed("'{0}{}'.format(1, 2)"), HasSubstr("cannot switch"));
  EXPECT_THAT(Printed("'{:{:{}}}'.format(1, 2, 3)"), HasSubstr("recursion"));
}

TEST(FormatTest, ConversionsComeBeforeTheSpec) {
  EXPECT_EQ(Printed("'{!r:>5}|{!a}|{!s:.1}'.format('a', 'é', 'xyz')"), "  'a'|'\\xe9'|x");
  EXPECT_THAT(Printed("'{!q}'.format(1)"), HasSubstr("Unknown conversion specifier q"));
  EXPECT_THAT(Printed("'{!rx}'.format(1)"), HasSubstr("expected ':'"));
  EXPECT_THAT(Printed("'{'.format(1)"), HasSubstr("Single '{'"));
}

TEST(FormatTest, PercentSignsTakeTheirValuesInTurn) {
  EXPECT_EQ(Printed("'%d%% of %s' % (5, 'x')"), "5% of x");
  EXPECT_EQ(Printed("'%(a)s' % {'a': 1}"), "1");
  EXPECT_EQ(Printed("'%a|%5a' % ('é', 'ü')"), "'\\xe9'|'\\xfc'");
  EXPECT_EQ(Printed("'%05c|%05d|%-5d|' % ('x', 3, 4)"), "    x|00003|4    |");
  EXPECT_THAT(Printed("'%5%' % 1"), HasSubstr("unsupported format character '%'"));
  EXPECT_THAT(Printed("'%(a)s %s' % {'a': 1}"), HasSubstr("not enough arguments"));
  EXPECT_THAT(Printed("'%s' % (1, 2)"), HasSubstr("not all arguments converted"));
  EXPECT_THAT(Printed("'%c' % 1114112"), HasSubstr("not in range(0x110000)"));
  EXPECT_THAT(Printed("'%*d' % ('a', 1)"), HasSubstr("* wants int"));
}

TEST(FormatTest, IntegersAreDividedExactly) {
  EXPECT_EQ(Printed("38785078096216191008 / 3"), "1.2928359365405397e+19");
  EXPECT_EQ(Printed("(2 ** 1100) / (2 ** 1090 + 1)"), "1024.0");
  EXPECT_EQ(Printed("1 / 2 ** 1074"), "5e-324");
  EXPECT_EQ(Printed("3 / 2 ** 1075"), "1e-323");
  EXPECT_EQ(Printed("-(2 ** 62 + 1) / 2 ** 62"), "-1.0");
  EXPECT_THAT(Printed("2 ** 1100 / 3"), HasSubstr("too large for a float"));
}

TEST(FormatTest, IntegersBeyond64BitsAreExact) {
  EXPECT_EQ(Printed("[-2 ** 63, 2 ** 63 - 1, -(2 ** 63) - 1, 2 ** 64 - 2 ** 64 - 1]"),
            "[-9223372036854775808, 9223372036854775807, -9223372036854775809, -1]");
  EXPECT_EQ(Printed("[2 ** 64 // -3, 2 ** 64 % -3, -(2 ** 64) // 2 ** 65]"),
            "[-6148914691236517206, -2, -1]");
  EXPECT_EQ(Printed("-(10 ** 40 + 7) // (10 ** 20 + 3)"), "-99999999999999999998");
  EXPECT_EQ(Printed("-(10 ** 40 + 7) % (10 ** 20 + 3)"), "99999999999999999987");
  EXPECT_EQ(Printed("(10 ** 40 + 7) % -(10 ** 20 + 3)"), "-99999999999999999987");
  EXPECT_EQ(Printed("(2 ** 96 - 1) * (2 ** 96 + 1)"),
            "6277101735386680763835789423207666416102355444464034512895");
  EXPECT_EQ(Printed("'%x %o %x %X' % (2 ** 100 - 1, 2 ** 100, -(2 ** 65), 2 ** 80 + 10)"),
            "fffffffffffffffffffffffff 2000000000000000000000000000000000 -20000000000000000 "
            "10000000000000000000A");
  EXPECT_EQ(Printed("'{:b} {:o} {:x}'.format(2 ** 65 + 1, -(2 ** 64), 0)"),
            "100000000000000000000000000000000000000000000000000000000000000001 "
            "-2000000000000000000000 0");
  EXPECT_EQ(Printed("[2 ** 64 > 2 ** 63, -(2 ** 64) < -(2 ** 63), 2 ** 64 == 2 ** 64]"),
            "[True, True, True]");
  EXPECT_EQ(Printed("[1e30|int, -1e25|int, (2 ** 70 + 1)|float]"),
            "[1000000000000000019884624838656, -10000000000000000905969664, "
            "1.1805916207174113e+21]");
}

TEST(FormatTest, NumbersAreReadInTheDigitsOfAnyScript) {
  EXPECT_EQ(Printed("'١٢'|int + '１０'|int(0, 2)"), "14");
  EXPECT_EQ(Printed("'١٢.५'|float"), "12.5");
  EXPECT_EQ(Printed("'²'|int(-1)"), "-1");
}

TEST(FormatTest, RoundingUpOrDownGivesNoNegativeZero) {
  EXPECT_EQ(Printed("(-0.2)|round(0, 'ceil')"), "0.0");
  EXPECT_EQ(Printed("(-7953580248097286726)|round(5, 'floor')"), "-7.953580248097287e+18");
}

}  // namespace
}  // namespace portico
