#include "service/control/profiling.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace portico {
namespace {

namespace fs = std::filesystem;

class ProfilingTest : public testing::Test {
 protected:
  ProfilingTest() {
    std::string made = (fs::temp_directory_path() / "profiles-XXXXXX").string();
    folder_ = mkdtemp(made.data());
    EXPECT_TRUE(SetProfileOptions({.directory = folder_, .stage = "frontend"}, &registry_).ok());
  }
  ~ProfilingTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  size_t Folders() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
  Registry registry_;
};

// Names were counted within a process only: two servers with one folder of profiles that began a run in the same second
// wrote into one folder, and the report mixed their requests.
TEST_F(ProfilingTest, RunsThatBeginInOneSecondHaveFoldersOfTheirOwn) {
  std::vector<std::set<std::string>> seen(4);
  std::vector<std::thread> threads;
  for (std::set<std::string>& mine : seen) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 20; ++i) {
        const auto request = ReadProfileStart("", /*events_only=*/true);
        if (request.ok()) mine.insert(request->recorder->directory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const std::set<std::string>& mine : seen) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 80U);
  EXPECT_EQ(Folders(), 80U) << "another process would take a name whose folder is not there yet";
}

TEST_F(ProfilingTest, ARunThatIsNamedGoesOnInItsFolder) {
  for (int i = 0; i < 2; ++i) {
    const auto request = ReadProfileStart(R"({"run_id": "mine"})", /*events_only=*/true);
    ASSERT_TRUE(request.ok());
    EXPECT_EQ(request->recorder->run_id, "mine");
    EXPECT_EQ(fs::path(request->recorder->directory).parent_path().filename(), "mine");
  }
}

TEST_F(ProfilingTest, ARunThatWritesElsewhereLeavesNoEmptyFolder) {
  EXPECT_TRUE(ReadProfileStart(R"({"event_dir": "a", "trace_path_template": "b/c"})",
                               /*events_only=*/true)
                  .ok());
  EXPECT_EQ(Folders(), 0U);
}

TEST_F(ProfilingTest, ARunThatIsRefusedLeavesNoFolder) {
  for (const char* body : {R"({"event_dir": "../x"})", R"({"trace_path_template": 5})",
                           R"({"run_id": null, "num_steps": "x", "event_dir": "y"})"}) {
    EXPECT_EQ(ReadProfileStart(body, /*events_only=*/false).status().code(),
              StatusCode::kInvalidArgument)
        << body;
  }
  EXPECT_EQ(Folders(), 0U);
}

}  // namespace
}  // namespace portico
