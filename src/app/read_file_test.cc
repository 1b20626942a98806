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
TEST(ReadFile, SaysWhyAFolderOrAMissingFileCannotBeRead) {
  const std::string folder = ::testing::TempDir(), missing = folder + "/not/there";
  EXPECT_EQ(MessageOf(ReadFile(folder).status()), "cannot read " + folder + ": Is a directory");
  EXPECT_EQ(MessageOf(ReadFile(missing).status()),
            "cannot read " + missing + ": No such file or directory");
}

}  // namespace
}  // namespace portico
