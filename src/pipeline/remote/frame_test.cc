#include "pipeline/remote/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace portico::pipeline {
namespace {

std::string Framed(const Datagram& message) {
  const auto head = FrameHead(message);
  std::string bytes(head.data(), head.size());
  bytes += message.bytes;
  if (message.blob != nullptr) bytes += message.blob->bytes();
  return bytes;
}

// What a reader makes of a stream that comes in pieces of this size.
StatusOr<std::vector<Datagram>> ReadAll(std::string_view stream, size_t piece) {
  FrameReader reader;
  std::vector<Datagram> messages;
  while (true) {
    Datagram message;
    auto whole = reader.Next(&message);
    if (!whole.ok()) return whole.status();
    if (*whole) {
      messages.push_back(std::move(message));
      continue;
    }
    if (stream.empty()) return messages;
    const std::span<char> space = reader.Space();
    const size_t bytes = std::min({piece, space.size(), stream.size()});
    std::memcpy(space.data(), stream.data(), bytes);
    reader.Filled(bytes);
    stream.remove_prefix(bytes);
  }
}

TEST(Frame, AStreamGivesTheSameMessagesHoweverItIsTorn) {
  std::string longer(300000, 'b');
  for (size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<char>(i * 7);
  const std::vector<Datagram> sent = {{"one", nullptr},
                                      {std::string(kMaxDatagram, 'x'), Blob::Own(longer)},
                                      {std::string(1, kFlagFrameInFd), Blob::Own("y")},
                                      {"two", nullptr}};
  std::string stream;
  for (const Datagram& message : sent) stream += Framed(message);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, size_t{65537}, stream.size()}) {
    const auto read = ReadAll(stream, piece);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->size(), sent.size()) << piece;
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ((*read)[i].bytes, sent[i].bytes);
      ASSERT_EQ((*read)[i].blob == nullptr, sent[i].blob == nullptr);
      if (sent[i].blob == nullptr) continue;
      EXPECT_EQ((*read)[i].blob->bytes(), sent[i].blob->bytes());
    }
  }
}

TEST(Frame, ATornMessageIsNone) {
  const std::string stream = Framed({"message", Blob::Own("behind")});
  for (size_t size = 0; size < stream.size(); ++size) {
    const auto read = ReadAll(std::string_view(stream).substr(0, size), 5);
    ASSERT_TRUE(read.ok());
    EXPECT_TRUE(read->empty()) << size;
  }
}

TEST(Frame, RefusesSizesBeforeItTakesMemory) {
  const auto refused = [](std::string_view head) {
    return ReadAll(head, 8).status().code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(std::string_view("\0\0\0\0\0\0\0\0", 8)));
  EXPECT_TRUE(refused(std::string_view("\xff\xff\xff\xff\0\0\0\0", 8)));
  EXPECT_TRUE(refused(std::string_view("\0\2\0\1\0\0\0\0", 8)));     // kMaxDatagram + 1
  EXPECT_TRUE(refused(std::string_view("\0\0\0\1\x40\0\0\1", 8)));   // kMaxFrameBytes + 1
  EXPECT_FALSE(refused(std::string_view("\0\2\0\0\x40\0\0\0", 8)));  // the largest; nothing comes
}

TEST(Frame, AnnouncedBytesTakeNoSpaceUntilTheyCome) {
  FrameReader reader;
  Datagram message;
  const std::string head("\0\0\0\1\x40\0\0\0m", 9);
  std::memcpy(reader.Space().data(), head.data(), head.size());
  reader.Filled(head.size());
  ASSERT_FALSE(*reader.Next(&message));
  EXPECT_LE(reader.Space().size(), size_t{1} << 20);
  reader.Filled(0);
  ASSERT_FALSE(*reader.Next(&message));
}

}  // namespace
}  // namespace portico::pipeline
