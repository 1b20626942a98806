// What tests of the recorder have in common: runs in a folder of their own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "base/events/recorder.h"

namespace portico::events {

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    std::string made = (std::filesystem::temp_directory_path() / "events-XXXXXX").string();
    folder_ = mkdtemp(made.data());
  }
  ~RecorderTest() override {
    StopRun("");
    std::filesystem::remove_all(folder_);
  }

  Status StartRun(const std::string& run, const std::string& below = "",
                  int64_t max_bytes = 64 << 20) {
    RunOptions options;
    options.run_id = run;
    options.directory = folder_ + below;
    options.stage = "test";
    options.max_bytes = max_bytes;
    std::promise<Status> done;
    Start(options, [&done](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  std::string StopRun(const std::string& run) {
    std::promise<std::string> done;
    Stop(run, [&done](StatusOr<std::string> stopped) { done.set_value(stopped.value_or("!")); });
    return done.get_future().get();
  }
  std::vector<std::string> Lines(const std::string& prefix, const std::string& below = "") const {
    std::vector<std::string> lines;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + below)) {
      if (!entry.path().filename().string().starts_with(prefix)) continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
    return lines;
  }

  // Of the run that goes on; empty where there are none.
  std::string RecordsPath() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with("records_")) return entry.path();
    }
    return "";
  }

  std::string folder_;
  const Label stage_ = LabelOf("say");
};

}  // namespace portico::events
