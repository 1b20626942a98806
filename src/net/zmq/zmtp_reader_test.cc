#include "net/zmq/zmtp_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace portico::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kZmtpTestLimit = 1 << 20;

// As libzmq's PUSH sends it; rfc.zeromq.org/spec/37.
std::string ZmtpGreeting() {
  std::string bytes("\xFF\0\0\0\0\0\0\0\1\x7F\3\1NULL", 16);
  bytes.resize(64);
  return bytes;
}

std::string ZmtpSize(uint64_t size) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  return bytes;
}

std::string ZmtpFrame(std::string_view body, int flags = 0) {
  std::string bytes;
  if (body.size() < 256) {
    bytes += static_cast<char>(flags);
    bytes += static_cast<char>(body.size());
  } else {
    bytes += static_cast<char>(flags | 2);
    bytes += ZmtpSize(body.size());
  }
  return bytes.append(body);
}

std::string ZmtpReadyOf(std::string_view type) {
  std::string body("\5READY");
  body.append("\x0BSocket-Type").append(ZmtpSize(type.size()).substr(4)).append(type);
  body.append("\x08Identity").append(4, '\0');
  return ZmtpFrame(body, 4);
}

std::string ZmtpOpening() { return ZmtpGreeting() + ZmtpReadyOf("PUSH"); }

// What a reader gives of bytes that come so many at once: parts, with "+" where another follows, and at the end why it failed.
std::vector<std::string> ReadZmtp(std::string_view bytes, size_t at_once, ZmtpReader* reader) {
  std::vector<std::string> got;
  while (true) {
    std::string_view part;
    switch (reader->Next(&part)) {
      case ZmtpReader::Step::kPart:
        got.push_back(std::string(part) + (reader->HasMore() ? "+" : ""));
        break;
      case ZmtpReader::Step::kFailed:
        got.push_back("failed: " + std::string(reader->why()));
        return got;
      case ZmtpReader::Step::kMore: {
        if (bytes.empty()) return got;
        const auto space = reader->Space();
        EXPECT_FALSE(space.empty());
        const size_t size = std::min({space.size(), bytes.size(), at_once});
        std::memcpy(space.data(), bytes.data(), size);
        reader->Added(size);
        bytes.remove_prefix(size);
      }
    }
  }
}

std::vector<std::string> ReadZmtp(std::string_view bytes, size_t at_once = 1 << 20) {
  ZmtpReader reader(kZmtpTestLimit);
  return ReadZmtp(bytes, at_once, &reader);
}

TEST(ZmtpReader, APeerIsGreetedAndToldTheTypeOfTheSocket) {
  ZmtpReader reader(kZmtpTestLimit);
  EXPECT_EQ(reader.output(), ZmtpGreeting());
  reader.output().clear();
  ReadZmtp(ZmtpGreeting(), 64, &reader);
  EXPECT_EQ(reader.output(), ZmtpFrame(std::string("\5READY\x0BSocket-Type\0\0\0\4PULL", 26), 4));
  EXPECT_FALSE(reader.is_ready());
  ReadZmtp(ZmtpReadyOf("PUSH"), 64, &reader);
  EXPECT_TRUE(reader.is_ready());
}

TEST(ZmtpReader, MessagesAreTheSameWhereverTheirBytesAreSplit) {
  const std::string long_body(70'000, 'x');
  const std::string bytes =
      ZmtpOpening() + ZmtpFrame("one") + ZmtpFrame("") + ZmtpFrame("a", 1) + ZmtpFrame("", 1) +
      ZmtpFrame("b") + ZmtpFrame(std::string("\4PING\0\0ctx", 10), 4) + ZmtpFrame(long_body) +
      ZmtpFrame(std::string(255, 'y')) + ZmtpFrame(std::string(256, 'z')) + ZmtpFrame("last");
  const std::vector<std::string> whole = ReadZmtp(bytes);
  EXPECT_THAT(whole, ElementsAre("one", "", "a+", "+", "b", long_body, std::string(255, 'y'),
                                 std::string(256, 'z'), "last"));
  for (const size_t at_once : {1, 2, 3, 7, 63, 64, 65, 4095, 16'384, 20'000}) {
    EXPECT_EQ(ReadZmtp(bytes, at_once), whole) << at_once;
  }
  for (size_t split = 1; split < 200; ++split) {
    ZmtpReader reader(kZmtpTestLimit);
    std::vector<std::string> got =
        ReadZmtp(std::string_view(bytes).substr(0, split), split, &reader);
    for (auto& part : ReadZmtp(std::string_view(bytes).substr(split), 1 << 20, &reader)) {
      got.push_back(std::move(part));
    }
    EXPECT_EQ(got, whole) << split;
  }
}

TEST(ZmtpReader, APingIsAnsweredWithItsContext) {
  ZmtpReader reader(kZmtpTestLimit);
  ReadZmtp(ZmtpOpening(), 1 << 20, &reader);
  reader.output().clear();
  ReadZmtp(ZmtpFrame(std::string("\4PING\0\x0A", 7), 4) + ZmtpFrame("\5OTHER what", 4) +
               ZmtpFrame(std::string("\4PING\0\x0Ahere", 11), 4),
           1 << 20, &reader);
  EXPECT_EQ(reader.output(), ZmtpFrame("\4PONG", 4) + ZmtpFrame("\4PONGhere", 4));
}

TEST(ZmtpReader, APeerThatOnlyAsksIsDisconnected) {
  ZmtpReader reader(kZmtpTestLimit);
  std::string pings = ZmtpOpening();
  for (int i = 0; i < 10'000; ++i) pings += ZmtpFrame(std::string("\4PING\0\x0A here", 12), 4);
  EXPECT_THAT(ReadZmtp(pings, 1 << 20, &reader), ElementsAre(HasSubstr("does not read")));
  EXPECT_LT(reader.output().size(), 70'000U);
}

TEST(ZmtpReader, WhatIsNoPushOfTheProtocolIsRefusedAsSoonAsItCanBeSeen) {
  std::string curve = ZmtpGreeting().replace(12, 5, "CURVE");
  std::string old = ZmtpGreeting();
  old[10] = 1;
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string("\xFF\0\0\0\0\0\0\0\1\0", 10),
        old.substr(0, 11), curve, ZmtpGreeting() + ZmtpReadyOf("PUB"),
        ZmtpGreeting() + ZmtpReadyOf(""), ZmtpGreeting() + ZmtpFrame("a message"),
        ZmtpGreeting() + ZmtpFrame("\4PING", 4), ZmtpGreeting() + ZmtpFrame("\5ERROR\4 no!", 4),
        ZmtpGreeting() + ZmtpFrame("", 4), ZmtpGreeting() + ZmtpFrame("\5READY\x0BSocket", 4),
        ZmtpGreeting() + ZmtpFrame(std::string("\5READY\x0BSocket-Type\xFF\xFF\xFF\xFF", 22), 4),
        ZmtpGreeting() + ZmtpFrame(std::string("\5READY\0\0\0\0\0", 11), 4)}) {
    EXPECT_THAT(ReadZmtp(bytes), ElementsAre(HasSubstr("failed"))) << bytes;
    EXPECT_THAT(ReadZmtp(bytes, 1), ElementsAre(HasSubstr("failed"))) << bytes;
  }
}

TEST(ZmtpReader, AFrameOfAWrongFormEndsWhatFollowsAndNotWhatCameBefore) {
  const std::string good = ZmtpOpening() + ZmtpFrame("good");
  for (const std::string& bytes :
       {ZmtpFrame("x", 8), ZmtpFrame("x", 128), ZmtpFrame("\1X", 5),
        ZmtpFrame(std::string("\0", 1), 4), ZmtpFrame("\x09short", 4), ZmtpFrame("\4PING", 4),
        ZmtpFrame("\4PING" + std::string(19, 'x'), 4), ZmtpFrame(std::string(5000, 'x'), 4),
        "\2" + ZmtpSize(kZmtpTestLimit + 1), "\2" + ZmtpSize(uint64_t{1} << 63),
        "\3" + ZmtpSize(~uint64_t{0}), ZmtpFrame("a", 1) + "\2" + ZmtpSize(kZmtpTestLimit)}) {
    EXPECT_THAT(ReadZmtp(good + bytes + ZmtpFrame("later")),
                ElementsAre("good", HasSubstr("failed")));
  }
  std::string parts = good;
  for (size_t i = 0; i < ZmtpReader::kMaxParts; ++i) parts += ZmtpFrame("", 1);
  EXPECT_THAT(ReadZmtp(parts), ElementsAre("good"));
  EXPECT_THAT(ReadZmtp(parts + ZmtpFrame("")), ElementsAre("good", HasSubstr("too many parts")));
}

TEST(ZmtpReader, AMessageAsLongAsTheLimitIsTaken) {
  const std::string body(kZmtpTestLimit, 'm');
  EXPECT_THAT(ReadZmtp(ZmtpOpening() + ZmtpFrame(body) + ZmtpFrame("x")), ElementsAre(body, "x"));
}

// A peer that announces a GiB and sends a byte of it must not make anybody hold a GiB.
TEST(ZmtpReader, MemoryFollowsWhatHasComeAndIsGivenBack) {
  ZmtpReader reader(size_t{1} << 30);
  EXPECT_THAT(ReadZmtp(ZmtpOpening() + "\2" + ZmtpSize(1 << 30) + "x", 1 << 20, &reader),
              ElementsAre());
  EXPECT_LE(reader.Space().size(), 32'768U);
  ZmtpReader other(size_t{1} << 30);
  const std::string body(3 << 20, 'm');
  EXPECT_THAT(ReadZmtp(ZmtpOpening() + ZmtpFrame(body), 1 << 20, &other), ElementsAre(body));
  EXPECT_LE(other.Space().size(), 32'768U);
}

TEST(ZmtpReader, AnyBytesAreReadOrRefusedAlikeWhereverTheyAreSplit) {
  std::mt19937 random(24);
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = ZmtpOpening();
    for (int i = below(6); i > 0; --i) {
      bytes += ZmtpFrame(std::string(static_cast<size_t>(below(600)), 'a'), below(2));
    }
    for (int i = below(4); i > 0; --i) {
      bytes[static_cast<size_t>(below(static_cast<int>(bytes.size())))] =
          static_cast<char>(random());
    }
    const auto whole = ReadZmtp(bytes);
    EXPECT_EQ(ReadZmtp(bytes, 1), whole);
    EXPECT_EQ(ReadZmtp(bytes, static_cast<size_t>(1 + below(300))), whole);
  }
}

}  // namespace
}  // namespace portico::net
