#include "media/mp3_end.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::media {
namespace {

// Version 2, 16 kHz, 32 kbit/s, mono: 144 bytes.
std::string Mp3Frame(std::string_view tag = {}) {
  std::string frame = std::string("\xFF\xF3\x48\xC4", 4) + std::string(140, '\x55');
  return frame.replace(4 + 9, tag.size(), tag);
}

std::string Mp3File(int frames) {
  std::string file;
  for (int i = 0; i < frames; ++i) file += Mp3Frame();
  return file;
}

TEST(Mp3End, SeesAFrameThatIsCut) {
  const std::string file = Mp3File(5);
  for (size_t size = 145; size <= file.size(); ++size) {
    EXPECT_EQ(Mp3IsCut(std::string_view(file).substr(0, size)), size % 144 != 0) << size;
  }
  EXPECT_FALSE(Mp3IsCut(file + "TAG" + std::string(125, ' ')));
  EXPECT_FALSE(Mp3IsCut(file + std::string(1000, '\0')));
  EXPECT_FALSE(Mp3IsCut(file + "noise" + file));
  EXPECT_FALSE(Mp3IsCut(std::string("ID3\4\0\0\0\0\1\0", 10) + std::string(128, 'x') + file));
  EXPECT_TRUE(Mp3IsCut(std::string("ID3\4\0\0\0\0\1\0", 10) + std::string(128, 'x')));
}

TEST(Mp3End, ComparesTheNumberOfFramesWithTheHead) {
  for (const std::string name : {"Xing", "Info"}) {
    const std::string head = Mp3Frame(name + std::string("\0\0\0\1\0\0\0\5", 8));
    EXPECT_FALSE(Mp3IsCut(head + Mp3File(5))) << name;
    EXPECT_FALSE(Mp3IsCut(head + Mp3File(4))) << name;  // the head may count itself
    EXPECT_FALSE(Mp3IsCut(head + Mp3File(9))) << name;  // files one behind the other
    EXPECT_TRUE(Mp3IsCut(head + Mp3File(3))) << name;
    EXPECT_TRUE(Mp3IsCut(head)) << name;
  }
  std::string vbri = Mp3Frame();
  vbri.replace(36, 18, std::string("VBRI\0\0\0\0\0\0\0\0\0\0\0\0\0\5", 18));
  EXPECT_FALSE(Mp3IsCut(vbri + Mp3File(5)));
  EXPECT_TRUE(Mp3IsCut(vbri + Mp3File(3)));
}

TEST(Mp3End, CannotTellWhereThereIsNoFrame) {
  EXPECT_FALSE(Mp3IsCut(""));
  EXPECT_FALSE(Mp3IsCut("ID3"));
  EXPECT_FALSE(Mp3IsCut(std::string(1000, '\xFF')));
}

}  // namespace
}  // namespace portico::media
