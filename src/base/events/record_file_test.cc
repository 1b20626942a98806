#include "base/events/record_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "base/events/record_reader.h"
#include "base/events/recorder_for_test.h"

namespace portico::events {
namespace {

// No file grows beyond so many bytes while it lives, as where the disk is full.
class NoMoreBytes {
 public:
  explicit NoMoreBytes(uintmax_t bytes) : former_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{static_cast<rlim_t>(bytes), before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~NoMoreBytes() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, former_);
  }

 private:
  void (*former_)(int);
  rlimit before_{};
};

class RecordFileTest : public RecorderTest {};

// It was answered with success, left an empty file, and its end was never told.
TEST_F(RecordFileTest, AStartOnAFullDiskIsRefused) {
  Status status;
  {
    const NoMoreBytes full(16);
    status = StartRun("a");
  }
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(FieldOf(status), "event_dir");
  EXPECT_FALSE(On());
  EXPECT_EQ(RecordsPath(), "");
  EXPECT_TRUE(StartRun("a").ok());
  EXPECT_EQ(StopRun(""), "a");
}

// Events of a batch that the disk took in part had lines and were counted as cut, and where the batch went over the end of the
// ring, the second half of an event was counted as one.
TEST_F(RecordFileTest, WhatIsInTheFileIsNotCountedAsCut) {
  const auto ring = std::make_unique<internal::Ring>();
  constexpr uint64_t kFirst = internal::Ring::kSize - 1;
  for (uint64_t i = 0; i < 4; ++i) ring->At(kFirst + i) = {};
  ring->At(kFirst).kind = internal::kHasSecond;  // and two events behind it
  const auto cut = [&](uintmax_t bytes) {
    const std::string path = folder_ + "/" + std::to_string(bytes);
    auto file = internal::RecordFile::Open(path, {}, "a", 64 << 20);
    EXPECT_TRUE(file.ok());
    file->Add(*ring, 0, 0);  // what it has of labels
    const NoMoreBytes full(std::filesystem::file_size(path) + bytes);
    file->Add(*ring, kFirst, kFirst + 4);
    return file->cut();
  };
  EXPECT_EQ(cut(0), 3u);
  EXPECT_EQ(cut(40), 3u);  // half of the first event
  EXPECT_EQ(cut(64), 2u);
  EXPECT_EQ(cut(80), 2u);
  EXPECT_EQ(cut(100), 1u);
  EXPECT_EQ(cut(128), 0u);
  ring->At(kFirst + 3).kind = internal::kGroup | static_cast<uint16_t>(EventGroup::kEngineFirst);
  EXPECT_EQ(cut(101), 4u);
}

// It was read as an event with a second half, which lay behind the end.
TEST_F(RecordFileTest, ALastRecordOfAnUnknownKindIsSkipped) {
  const std::string path = folder_ + "/records";
  {
    std::ofstream file(path, std::ios::binary);
    const internal::RecordsHead head;
    file.write(reinterpret_cast<const char*>(&head), sizeof head);
    for (int i = 0; i < 8192; ++i) {  // as many as are read at once
      internal::Record32 record{};
      record.kind = i < 8191 ? static_cast<uint16_t>(Event::kRequestAdmission) : 0xfff5;
      file.write(reinterpret_cast<const char*>(&record), sizeof record);
    }
  }
  auto input = internal::RecordsInput::Open(path);
  ASSERT_TRUE(input.ok()) << input.status();
  RequestNames names(1);
  EXPECT_TRUE(input->Read(&names, [](const Line&, std::string_view) {}).ok());
}

}  // namespace
}  // namespace portico::events
