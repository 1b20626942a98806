#include "base/events/converter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/events/record_reader.h"
#include "base/events/recorder_for_test.h"

namespace portico::events {
namespace {

class ConverterTest : public RecorderTest {};

// The former run's lines are written while the next one is running already.
TEST_F(ConverterTest, ARunInTheFilesOfTheFormerOneHasNotEnded) {
  ASSERT_TRUE(StartRun("a").ok());
  Record(Event::kStageDispatch, NextKey(), stage_);
  ASSERT_TRUE(StartRun("b").ok());
  Record(Event::kStageDispatch, NextKey(), stage_);
  EXPECT_EQ(StopRun("a"), "");  // comes when the lines are there
  EXPECT_EQ(Lines("events_").size(), 1u);
  EXPECT_NE(Lines("run_")[0].find(R"("run_id":"b")"), std::string::npos);
  EXPECT_NE(Lines("run_")[0].find(R"("ended":false)"), std::string::npos);
  StopRun("b");
  EXPECT_EQ(Lines("events_").size(), 2u);
  EXPECT_NE(Lines("run_")[0].find(R"("ended":true)"), std::string::npos);
}

// They were removed, and the run was said to have ended.
TEST_F(ConverterTest, RecordsThatCannotBeReadAreKept) {
  ASSERT_TRUE(StartRun("a").ok());
  Record(Event::kStageDispatch, NextKey(), stage_);
  std::filesystem::resize_file(RecordsPath(), 0);
  EXPECT_EQ(StopRun(""), "a");
  EXPECT_NE(RecordsPath(), "");
  EXPECT_NE(Lines("run_")[0].find(R"("ended":false)"), std::string::npos);
  const internal::RecordsInput cannot("cannot", open(RecordsPath().c_str(), O_WRONLY));
  EXPECT_EQ(cannot.ReadFacts().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(internal::RecordsInput::Open(folder_ + "/none").status().code(), StatusCode::kNotFound);
}

// As where the disk is full.
TEST_F(ConverterTest, RecordsStayWhereTheirLinesCannotBeWritten) {
  ASSERT_TRUE(StartRun("a").ok());
  std::filesystem::create_directory(folder_ + "/steps_test_" + std::to_string(getpid()) + ".jsonl");
  const Key key = NextKey();
  Name(key, "r");
  Record(Event::kStep, kNoKey, stage_, {.a = 12, .b = 3400});
  Record(Event::kStageDispatch, key, stage_);
  EXPECT_EQ(StopRun(""), "a");
  EXPECT_NE(Lines("run_")[0].find(R"("ended":false)"), std::string::npos);
  ASSERT_NE(RecordsPath(), "");
  RequestNames names(getpid());
  std::vector<std::string> requests;
  const auto records = internal::RecordsInput::Open(RecordsPath());
  ASSERT_TRUE(records.ok());
  const auto take = [&requests](const Line&, std::string_view request) {
    requests.emplace_back(request);
  };
  EXPECT_TRUE(records->Read(&names, take).ok());
  EXPECT_EQ(requests, (std::vector<std::string>{"", "r"}));
}

// Files of the version before have none of today's compact records; what comes after is refused, not read in part.
TEST_F(ConverterTest, OlderFilesAreReadAndNewerOnesAreNot) {
  ASSERT_TRUE(StartRun("a").ok());
  std::filesystem::create_directory(folder_ + "/steps_test_" + std::to_string(getpid()) + ".jsonl");
  Record(Event::kStep, kNoKey, stage_,
         {.a = 12, .b = 3400});  // cannot be written: the records stay
  EXPECT_EQ(StopRun(""), "a");
  const int file = open(RecordsPath().c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  for (const auto& [version, reads] : {std::pair('1', true), {'2', true}, {'3', false}}) {
    ASSERT_EQ(pwrite(file, &version, 1, sizeof(uint64_t) - 1), 1);
    const auto records = internal::RecordsInput::Open(RecordsPath());
    ASSERT_TRUE(records.ok());
    EXPECT_EQ(records->ReadFacts().ok(), reads) << version;
  }
  close(file);
}

// A stage process gave up after a second, and its first events were not recorded.
TEST_F(ConverterTest, AStartDoesNotWaitForTheLinesOfFormerRuns) {
  ASSERT_TRUE(StartRun("a").ok());
  std::promise<void> reached, over;
  Stop("a", [&](const StatusOr<std::string>&) {
    reached.set_value();
    over.get_future().wait();  // no lines are made meanwhile
  });
  reached.get_future().wait();
  ASSERT_TRUE(StartRun("b").ok());
  Record(Event::kStageDispatch, NextKey(), stage_);
  std::promise<std::string> stopped;
  Stop("b", [&stopped](StatusOr<std::string> run) { stopped.set_value(run.value_or("!")); });
  ASSERT_TRUE(StartRun("c").ok());
  EXPECT_TRUE(Lines("events_").empty());
  over.set_value();
  EXPECT_EQ(stopped.get_future().get(), "b");
  EXPECT_EQ(Lines("events_").size(), 1u);
  // It is about the run that goes on.
  EXPECT_NE(Lines("run_")[0].find(R"("run_id":"c")"), std::string::npos);
  EXPECT_NE(Lines("run_")[0].find(R"("ended":false)"), std::string::npos);
  StopRun("c");
  EXPECT_NE(Lines("run_")[0].find(R"("ended":true)"), std::string::npos);
}

// The records, which are gone then, took a part of the bound.
TEST_F(ConverterTest, LinesMayTakeAllOfTheBound) {
  constexpr int kEvents = 5000;
  const auto record = [this](const std::string& run, Event event, int64_t max_bytes) {
    EXPECT_TRUE(StartRun(run, "/" + run, max_bytes).ok());
    const Key key = NextKey();
    Name(key, std::string(64, 'r'));
    // The second number takes a record of its own: it is not small enough for a part of the first.
    const bool two = event == Event::kStep;
    const Details details = two ? Details{.a = 12, .b = int64_t{1} << 32} : Details{};
    for (int i = 0; i < kEvents; ++i) Record(event, two ? kNoKey : key, stage_, details);
    StopRun("");
    return Lines("run_", "/" + run)[0];
  };
  const std::string all = fmt::format(R"("written":{},"dropped":0,"cut":0)", kEvents);
  for (const Event event : {Event::kStageDispatch, Event::kStep}) {
    const std::string run = fmt::format("{}", static_cast<int>(event));
    EXPECT_NE(record(run, event, 64 << 20).find(all), std::string::npos);
    int64_t bytes = 0;
    for (const char* file : {"events_", "steps_"}) {
      for (const std::string& line : Lines(file, "/" + run)) bytes += std::ssize(line) + 1;
    }
    // The clock may have more digits by now.
    EXPECT_NE(record(run + "b", event, bytes + 6 * kEvents).find(all), std::string::npos);
  }
}

TEST_F(ConverterTest, FilesStayWithinTheirBound) {
  ASSERT_TRUE(StartRun("a", "", 100 << 10).ok());
  const Key key = NextKey();
  Name(key, "r");
  for (int i = 0; i < 5000; ++i) Record(Event::kStageDispatch, key, stage_);
  StopRun("");
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) bytes += entry.file_size();
  EXPECT_LE(bytes, uintmax_t{110 << 10});
  EXPECT_EQ(Lines("run_")[0].find("\"cut\":0}"), std::string::npos);
}

}  // namespace
}  // namespace portico::events
