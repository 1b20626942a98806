#include "media/flac_end.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace portico::media {
namespace {

// As RFC 9639 describes the checksums: bit by bit, most significant first.
uint32_t Checksum(std::string_view bytes, int bits, uint32_t polynomial) {
  uint32_t sum = 0;
  for (const char c : bytes) {
    for (int bit = 7; bit >= 0; --bit) {
      const uint32_t in = (static_cast<uint8_t>(c) >> bit) & 1;
      const uint32_t out = (sum >> (bits - 1)) & 1;
      sum = (sum << 1) & ((1U << bits) - 1);
      if (in != out) sum ^= polynomial;
    }
  }
  return sum;
}

// `head` is what stands between the pattern that begins a frame and the checksum of the head.
std::string Frame(std::string_view head, std::string_view samples) {
  std::string frame = "\xFF\xF8";
  frame += head;
  frame.push_back(static_cast<char>(Checksum(frame, 8, 0x07)));
  frame += samples;
  const uint32_t sum = Checksum(frame, 16, 0x8005);
  frame.push_back(static_cast<char>(sum >> 8));
  frame.push_back(static_cast<char>(sum & 0xFF));
  return frame;
}

std::string Start() { return "fLaC" + std::string(38, '\0'); }

TEST(FlacEnd, TellsWholeFramesFromThoseThatAreCut) {
  const std::string_view heads[] = {
      {"\xC9\x08\x05", 3},                  // a frame's number below 128
      {"\xC9\x08\xC5\x81", 4},              // above
      {"\x69\x08\x05\x7F", 4},              // with a size of block of its own
      {"\x7E\x08\x05\x0F\xFF\x3E\x80", 7},  // and a rate
  };
  for (const std::string_view head : heads) {
    std::string file = Start();
    for (int i = 0; i < 5; ++i) {
      const size_t begin = file.size();
      // The pattern that begins a frame may be among the samples.
      file += Frame(head, std::string(200 + static_cast<size_t>(i), 'x') + "\xFF\xF8\xC9\x08yyy");
      EXPECT_FALSE(FlacEndsWithinFrame(file));
      for (size_t end = begin + 20; end < file.size(); ++end) {
        EXPECT_TRUE(FlacEndsWithinFrame(std::string_view(file).substr(0, end))) << end - begin;
      }
    }
  }
}

TEST(FlacEnd, TakesSilenceBehindTheLastFrame) {
  EXPECT_FALSE(
      FlacEndsWithinFrame(Start() + Frame({"\xC9\x08\x05", 3}, "x") + std::string(9, '\0')));
}

TEST(FlacEnd, CannotTellWhereThereIsNoFrame) {
  EXPECT_FALSE(FlacEndsWithinFrame(""));
  EXPECT_FALSE(FlacEndsWithinFrame(Start()));
  EXPECT_FALSE(FlacEndsWithinFrame(Start() + std::string(100000, '\xFF')));
}

}  // namespace
}  // namespace portico::media
