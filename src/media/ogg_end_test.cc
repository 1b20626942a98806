#include "media/ogg_end.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::media {
namespace {

std::string OggPage(char flags, size_t bytes) {
  std::string page = "OggS";
  page.push_back('\0');
  page.push_back(flags);
  page += std::string(20, '\0');
  page.push_back('\1');
  page.push_back(static_cast<char>(bytes));
  return page + std::string(bytes, 'x');
}

TEST(OggEnd, IsThePageThatSaysSo) {
  const std::string file = OggPage(2, 30) + OggPage(0, 200) + OggPage(4, 100);
  EXPECT_FALSE(OggIsCut(file));
  EXPECT_FALSE(OggIsCut(file + file));  // one stream behind the other
  EXPECT_FALSE(OggIsCut(file + "noise"));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_TRUE(OggIsCut(std::string_view(file).substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace portico::media
