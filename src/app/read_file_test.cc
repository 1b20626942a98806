#include "app/read_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace portico {
namespace {

TEST(ReadFile, GivesAllBytesAndNothingOfAnEmptyFile) {
  const std::string path = ::testing::TempDir() + "/read_file_test";
  const std::string bytes("a\0\r\n\xff", 5);
  std::ofstream(path, std::ios::binary) << bytes;
  auto read = ReadFile(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, bytes);
  std::ofstream(path, std::ios::trunc).close();
  read = ReadFile(path);
  EXPECT_TRUE(read.ok() && read->empty());
  std::filesystem::remove(path);
}

// A folder given to --chat-template was read as an empty template.
TEST(ReadFile, SaysThatAFolderOrAMissingFileCannotBeRead) {
  for (const std::string& path : {::testing::TempDir(), ::testing::TempDir() + "/not/there"}) {
    auto read = ReadFile(path);
    ASSERT_FALSE(read.ok()) << path;
    EXPECT_EQ(MessageOf(read.status()), "cannot read " + path);
  }
}

}  // namespace
}  // namespace portico
