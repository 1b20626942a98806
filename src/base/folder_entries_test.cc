#include "base/folder_entries.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <set>
#include <string>

namespace portico {
namespace {

TEST(FolderEntriesTest, WhatIsThereIsListedAndWhatCannotBeReadIsAnError) {
  std::string folder = testing::TempDir() + "folder-entries-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (const char* name : {"a", "b"}) std::ofstream(folder + "/" + name) << name;
  std::error_code error = std::make_error_code(std::errc::io_error);  // of something before
  std::set<std::string> names;
  for (const auto& entry : FolderEntries(folder, &error)) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_FALSE(error);
  EXPECT_EQ(names, (std::set<std::string>{"a", "b"}));
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(FolderEntries(folder, &error).empty());
  EXPECT_TRUE(error);
}

}  // namespace
}  // namespace portico
