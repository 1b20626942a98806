#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "message/msgpack/reader.h"
#include "message/msgpack/writer.h"

namespace portico::msgpack {
namespace {

TEST(Msgpack, IntegersAreWrittenInTheirShortestFormAndReadBack) {
  const std::pair<int64_t, size_t> cases[] = {
      {0, 1},     {127, 1},        {128, 2},       {255, 2},      {256, 3}, {65535, 3},
      {65536, 5}, {4294967295, 5}, {INT64_MAX, 9}, {-1, 1},       {-32, 1}, {-33, 2},
      {-128, 2},  {-129, 3},       {-32769, 5},    {INT64_MIN, 9}};
  for (const auto& [value, size] : cases) {
    std::string bytes;
    Writer(&bytes).Int(value);
    EXPECT_EQ(bytes.size(), size) << value;
    Reader reader(bytes);
    int64_t back = 0;
    EXPECT_TRUE(reader.Int(&back));
    EXPECT_EQ(back, value);
    EXPECT_TRUE(reader.done());
  }
}

TEST(Msgpack, ALengthBeyondTheBytesIsNotBelieved) {
  for (const std::string& bytes :
       {std::string("\xdd\xff\xff\xff\xff", 5), std::string("\xdf\x7f\xff\xff\xff\x01", 6),
        std::string("\xdb\x00\x00\x00\x09 ab", 7), std::string("\xc9\x00\x00\x00\x09\x01x", 7)}) {
    EXPECT_FALSE(Reader(bytes).Skip());
  }
}

TEST(Msgpack, SkippingNeedsNoStackForDepth) {
  const std::string deep = std::string(5'000'000, '\x91') + '\xc0';
  Reader reader(deep);
  EXPECT_TRUE(reader.Skip());
  EXPECT_TRUE(reader.done());
}

TEST(Msgpack, AFailureStays) {
  std::string bytes;
  Writer writer(&bytes);
  writer.Int(1);
  writer.Int(2);
  Reader reader(bytes);
  std::string_view text;
  int64_t number = 0;
  EXPECT_FALSE(reader.Str(&text));
  EXPECT_FALSE(reader.Int(&number));
  EXPECT_EQ(reader.Peek(), Kind::kEnd);
}

TEST(Msgpack, AnIntegerIsAFloatButNotTheOtherWayRound) {
  std::string bytes;
  Writer writer(&bytes);
  writer.Int(-3);
  writer.Float(1.0);
  Reader reader(bytes);
  double number = 0;
  int64_t integer = 0;
  EXPECT_TRUE(reader.Float(&number));
  EXPECT_EQ(number, -3.0);
  EXPECT_FALSE(reader.Int(&integer));
}

}  // namespace
}  // namespace portico::msgpack
