#include "base/own_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace portico {
namespace {

namespace fs = std::filesystem;

class OwnFolderTest : public testing::Test {
 protected:
  OwnFolderTest() {
    std::string made = (fs::temp_directory_path() / "own-folder-XXXXXX").string();
    EXPECT_NE(mkdtemp(made.data()), nullptr);
    all_ = made;
    prefix_ = made + "/some-";
  }
  ~OwnFolderTest() override { fs::remove_all(all_); }

  size_t folders() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(all_), fs::directory_iterator()));
  }

  std::string all_;
  std::string prefix_;
};

TEST_F(OwnFolderTest, ItIsThisUsersAndGoneWithItsObject) {
  {
    OwnFolder kept;
    {
      auto made = OwnFolder::Make(prefix_);
      ASSERT_TRUE(made.ok()) << made.status();
      std::ofstream(made->path() + "/file") << "x";
      kept = *std::move(made);
    }
    struct stat about{};
    ASSERT_EQ(stat(kept.path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0700u);
    EXPECT_TRUE(fs::exists(kept.path() + "/file"));
  }
  EXPECT_EQ(folders(), 0u);
}

// They stayed in /tmp for ever, one for each time that a server was killed.
TEST_F(OwnFolderTest, WhatAKilledProcessHasLeftGoesWithTheNextAndWhatIsInUseStays) {
  auto in_use = OwnFolder::Make(prefix_);
  ASSERT_TRUE(in_use.ok()) << in_use.status();
  std::ofstream(in_use->path() + "/file") << "x";
  // As the other, but that nobody has it.
  const std::string left = prefix_ + "killed";
  fs::copy(in_use->path(), left, fs::copy_options::recursive);
  auto next = OwnFolder::Make(prefix_);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(in_use->path() + "/file"));
  EXPECT_EQ(folders(), 2u);
}

TEST_F(OwnFolderTest, WhatIsNotOfTheseIsLeftAlone) {
  fs::create_directory(prefix_ + "without");
  fs::create_directory(all_ + "/elsewhere");
  std::ofstream(all_ + "/elsewhere/in-use") << "x";
  fs::create_directory_symlink(all_ + "/elsewhere", prefix_ + "link");
  std::ofstream(prefix_ + "file") << "x";
  auto made = OwnFolder::Make(prefix_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(folders(), 5u);
  EXPECT_TRUE(fs::exists(all_ + "/elsewhere/in-use"));
}

TEST_F(OwnFolderTest, WhereNoneCanBeMadeThePathIsSaid) {
  const auto made = OwnFolder::Make(all_ + "/none/some-");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(MessageOf(made.status()).find("/none/some-"), std::string::npos);
}

}  // namespace
}  // namespace portico
