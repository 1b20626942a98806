#include "net/websocket/frame_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace portico::net {
namespace {

std::string Masked(uint8_t first, std::string_view data) {
  std::string frame(1, static_cast<char>(first));
  if (data.size() < 126) {
    frame.push_back(static_cast<char>(0x80 | data.size()));
  } else {
    frame.push_back(static_cast<char>(0x80 | 126));
    frame.push_back(static_cast<char>(data.size() >> 8));
    frame.push_back(static_cast<char>(data.size() & 0xFF));
  }
  const std::string mask = "\x12\x34\x56\x78";
  frame += mask;
  for (size_t i = 0; i < data.size(); ++i)
    frame.push_back(static_cast<char>(data[i] ^ mask[i % 4]));
  return frame;
}

struct Seen {
  std::vector<std::string> messages;
  uint16_t code = 0;
};
Seen Read(std::string_view bytes, size_t piece, size_t limit = 1000) {
  Seen seen;
  WsFrameReader reader(limit);
  for (size_t at = 0; at < bytes.size() && seen.code == 0; at += piece) {
    seen.code = reader.Feed(bytes.substr(at, piece), [&](const WsMessage& message) {
      constexpr char kKinds[] = "tbpqc";
      seen.messages.push_back(std::string(1, kKinds[message.kind]) + std::string(message.data));
      return true;
    });
  }
  return seen;
}

TEST(WsFrameReader, JoinsFragmentsAtEverySplitAndLetsControlsBetween) {
  const std::string bytes = Masked(0x01, "Hel") + Masked(0x89, "ping") + Masked(0x80, "lo") +
                            Masked(0x82, std::string(300, 'b')) +
                            Masked(0x88,
                                   "\x03\xE8"
                                   "bye");
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Seen seen = Read(bytes, piece);
    EXPECT_EQ(seen.code, 0);
    EXPECT_EQ(seen.messages,
              (std::vector<std::string>{"pping", "tHello", "b" + std::string(300, 'b'), "cbye"}));
  }
}

TEST(WsFrameReader, RefusesWhatBreaksARule) {
  EXPECT_EQ(Read("\x81\x02hi", 100).code, kWsProtocolError) << "not masked";
  EXPECT_EQ(Read(Masked(0xC1, "x"), 100).code, kWsProtocolError) << "a reserved bit";
  EXPECT_EQ(Read(Masked(0x83, "x"), 100).code, kWsProtocolError) << "a reserved opcode";
  EXPECT_EQ(Read(Masked(0x80, "x"), 100).code, kWsProtocolError) << "continues nothing";
  EXPECT_EQ(Read(Masked(0x01, "x") + Masked(0x81, "y"), 100).code, kWsProtocolError);
  EXPECT_EQ(Read(Masked(0x09, "x"), 100).code, kWsProtocolError) << "a control in fragments";
  EXPECT_EQ(Read(Masked(0x89, std::string(126, 'x')), 100).code, kWsProtocolError);
  EXPECT_EQ(Read(Masked(0x81, "\xFF"), 100).code, kWsInvalidText);
  EXPECT_EQ(Read(Masked(0x82, std::string(1001, 'x')), 100).code, kWsTooLarge);
  EXPECT_EQ(
      Read(Masked(0x02, std::string(600, 'x')) + Masked(0x80, std::string(600, 'x')), 5000).code,
      kWsTooLarge);
  EXPECT_EQ(Read(Masked(0x88, "\x03"), 100).code, kWsProtocolError);
  EXPECT_EQ(Read(Masked(0x88, "\x03\xED"), 100).code, kWsProtocolError) << "1005 is never sent";
}

TEST(WsFrameReader, RefusesALengthOf63BitsBeforeItComes) {
  EXPECT_EQ(Read(std::string("\x82\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                             "abcd",
                             14),
                 100)
                .code,
            kWsTooLarge);
}

TEST(WsFrameReader, ReadsNothingBehindAClose) {
  const Seen seen = Read(Masked(0x88, "") + Masked(0x81, "late"), 100);
  EXPECT_EQ(seen.messages, std::vector<std::string>{"c"});
}

TEST(WsAccept, IsTheExampleOfTheRfc) {
  EXPECT_EQ(WsAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WsFrame, HasTheShortestLength) {
  std::string out;
  AppendWsFrame(WsMessage::kText, std::string(125, 'a'), &out);
  EXPECT_EQ(out.size(), 127U);
  out.clear();
  AppendWsFrame(WsMessage::kText, std::string(126, 'a'), &out);
  EXPECT_EQ(out.size(), 130U);
  out.clear();
  AppendWsFrame(WsMessage::kText, std::string(65536, 'a'), &out);
  EXPECT_EQ(out.size(), 65546U);
}

}  // namespace
}  // namespace portico::net
