#include "base/events/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/events/record_reader.h"
#include "base/events/recorder_for_test.h"
#include "base/events/tick_clock.h"

namespace portico::events {
namespace {

namespace fs = std::filesystem;

TEST_F(RecorderTest, NothingIsRecordedWithoutARun) {
  EXPECT_FALSE(On());
  Record(Event::kStageDispatch, NextKey(), stage_);
  ASSERT_TRUE(StartRun("a").ok());
  EXPECT_TRUE(On());
  EXPECT_EQ(StopRun(""), "a");
  EXPECT_FALSE(On());
  EXPECT_TRUE(Lines("events_").empty());
}

TEST_F(RecorderTest, ALineHasTheFieldsOfSglangOmni) {
  ASSERT_TRUE(StartRun("a").ok());
  const Key key = NextKey();
  Name(key, "speech-\"1\"");
  Record(Event::kStageStreamChunkSent, key, stage_,
         {.peer = LabelOf("encode"), .tag = LabelOf("audio"), .a = 3});
  EXPECT_EQ(StopRun("a"), "a");
  const auto lines = Lines("events_test_");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with(
      R"({"request_id":"speech-\"1\"","stage":"say","event_name":"stage_stream_chunk_sent",)"
      R"("timestamp_ns":)"))
      << lines[0];
  EXPECT_NE(lines[0].find(R"("run_id":"a","pid":)" + std::to_string(getpid())), std::string::npos);
  EXPECT_NE(lines[0].find(R"("metadata":{"to_stage":"encode","modality":"audio","chunk_id":3,)"),
            std::string::npos);
  const auto facts = Lines("run_");
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_NE(facts[0].find(R"("ended":true)"), std::string::npos);
  EXPECT_NE(facts[0].find(R"("boot_id":")"), std::string::npos);
  EXPECT_NE(facts[0].find(R"("written":1,"dropped":0,"cut":0)"), std::string::npos);
}

TEST_F(RecorderTest, TheTimeOfAnEventIsThatOfTheSystemsClock) {
  const auto now = [] { return Clock::now().time_since_epoch().count(); };
  ASSERT_TRUE(StartRun("a").ok());
  std::vector<int64_t> before, after;
  for (int i = 0; i < 20; ++i) {
    before.push_back(now());
    Record(Event::kStageDispatch, NextKey(), stage_);
    after.push_back(now());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  StopRun("");
  const auto lines = Lines("events_");
  ASSERT_EQ(lines.size(), before.size());
  constexpr int64_t kNear = 20'000;
  for (size_t i = 0; i < lines.size(); ++i) {
    constexpr std::string_view kName = "\"monotonic_ns\":";
    const int64_t time = std::stoll(lines[i].substr(lines[i].find(kName) + kName.size()));
    EXPECT_GE(time, before[i] - kNear);
    EXPECT_LE(time, after[i] + kNear);
  }
}

TEST(TickScaleTest, TicksBetweenTwoMomentsAreInProportion) {
  internal::TickScale scale;
  EXPECT_EQ(scale.Nanoseconds(7), 7);
  scale.Add({.ticks = 1000, .nanoseconds = 500});
  EXPECT_EQ(scale.Nanoseconds(1010), 510);
  scale.Add({.ticks = 3000, .nanoseconds = 1500});
  scale.Add({.ticks = 4000, .nanoseconds = 3500});
  EXPECT_EQ(scale.Nanoseconds(1000), 500);
  EXPECT_EQ(scale.Nanoseconds(2000), 1000);
  EXPECT_EQ(scale.Nanoseconds(3000), 1500);
  EXPECT_EQ(scale.Nanoseconds(3500), 2500);
  EXPECT_EQ(scale.Nanoseconds(4500), 4500);
  EXPECT_EQ(scale.Nanoseconds(500), 250);
  for (int64_t i = 1; i <= 1000; ++i) {
    scale.Add({.ticks = 4000 + i * 10, .nanoseconds = 3500 + i * 10});
  }
  EXPECT_EQ(scale.Nanoseconds(13'995), 13'495);
}

TEST(TickScaleTest, MomentsAtBothEndsOfTimeAreTaken) {
  internal::TickScale scale;
  scale.Add({.ticks = INT64_MIN, .nanoseconds = INT64_MIN});
  scale.Add({.ticks = INT64_MAX, .nanoseconds = INT64_MAX});
  for (const int64_t ticks : {INT64_MIN, int64_t{0}, INT64_MAX}) scale.Nanoseconds(ticks);
  EXPECT_EQ(scale.Nanoseconds(INT64_MIN), INT64_MIN);
}

// What a process that is killed leaves: its lines are made when the run ends.
TEST_F(RecorderTest, WhatIsRecordedCanBeReadBeforeTheRunEnds) {
  ASSERT_TRUE(StartRun("a").ok());
  const Key key = NextKey();
  const std::string name(100, 'n');
  Name(key, name);
  Join(StreamKey(9), key);
  Record(Event::kSchedulerPrefillStart, StreamKey(9), stage_, {.a = 3, .b = 4});
  Record(Event::kStageHopSent, key, stage_, {.peer = LabelOf("a stage with a long name")});
  std::string path = RecordsPath();
  ASSERT_FALSE(path.empty());
  const auto read = [&path] {
    std::vector<std::pair<Line, std::string>> lines;
    RequestNames names(getpid());
    const auto take = [&lines](const Line& line, std::string_view request) {
      lines.emplace_back(line, request);
    };
    const auto records = internal::RecordsInput::Open(path);
    EXPECT_TRUE(records.ok() && records->Read(&names, take).ok());
    return lines;
  };
  const TimePoint patience = Clock::now() + std::chrono::minutes(2);
  while (read().size() < 2 && Clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto facts = internal::RecordsInput::Open(path)->ReadFacts();
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->run_id, "a");
  EXPECT_EQ(facts->head.pid, getpid());
  const auto lines = read();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].second, name);
  EXPECT_EQ(lines[0].first.event, Event::kSchedulerPrefillStart);
  EXPECT_EQ(lines[0].first.details.a, 3);
  EXPECT_EQ(lines[0].first.details.b, 4);
  EXPECT_EQ(lines[1].second, name);
  EXPECT_EQ(NameOf(lines[1].first.stage), "say");
  EXPECT_EQ(NameOf(lines[1].first.details.peer), "a stage with a long name");
  EXPECT_EQ(lines[1].first.details.b, Details::kNothing);
  // A file that was cut ends before what is not whole.
  fs::copy_file(path, folder_ + "/cut");
  StopRun("");
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(Lines("events_").size(), 2u);
  path = folder_ + "/cut";
  for (size_t read_now = 2; const auto size = fs::file_size(path);) {
    fs::resize_file(path, size - 1);
    if (!internal::RecordsInput::Open(path)->ReadFacts().ok()) break;
    ASSERT_LE(read().size(), read_now);
    read_now = read().size();
  }
}

TEST_F(RecorderTest, TheEventsOfAGroupAreLinesWithWhatEachOfThemSays) {
  const uint64_t before = Count().written;
  ASSERT_TRUE(StartRun("a").ok());
  const Key key = NextKey();
  const Label peer = LabelOf("encode");
  Record(EventGroup::kEngineQueued, key, stage_, {.peer = peer, .a = 7});
  Record(EventGroup::kEngineFirst, key, stage_, {.peer = peer, .a = 0});
  Record(EventGroup::kFrontendReceived, key, stage_, {.peer = peer, .a = 2});
  StopRun("");
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"stage_input_received", R"("from_stage":"encode",)"},
      {"scheduler_queue_enter", R"("prompt_tokens":7,)"},
      {"scheduler_prefill_end", ""},
      {"scheduler_first_emit", ""},
      {"stage_first_stream_chunk_sent", R"("to_stage":"encode","chunk_id":0,)"},
      {"stage_stream_chunk_sent", R"("to_stage":"encode","chunk_id":0,)"},
      {"stage_stream_chunk_received", R"("from_stage":"encode","chunk_id":0,)"},
      {"detokenize_start", R"("tokens":2,)"}};
  const auto lines = Lines("events_");
  ASSERT_EQ(lines.size(), wanted.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NE(lines[i].find("\"event_name\":\"" + wanted[i].first + "\""), std::string::npos);
    EXPECT_NE(lines[i].find("\"metadata\":{" + wanted[i].second + "\"monotonic_ns\""),
              std::string::npos)
        << lines[i];
  }
  EXPECT_EQ(Count().written - before, wanted.size());
}

TEST_F(RecorderTest, BothNumbersOfAnEventAreKeptWhateverTheirSize) {
  ASSERT_TRUE(StartRun("a").ok());
  const int64_t numbers[] = {0, 1, UINT32_MAX, int64_t{UINT32_MAX} + 1, INT64_MAX, -1};
  for (const int64_t a : numbers) {
    for (const int64_t b : numbers) Record(Event::kStep, kNoKey, stage_, {.a = a, .b = b});
  }
  StopRun("");
  const auto lines = Lines("steps_");
  ASSERT_EQ(lines.size(), std::size(numbers) * std::size(numbers));
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string wanted = "\"batch_size\":" + std::to_string(numbers[i / 6]) +
                               ",\"duration_ns\":" + std::to_string(numbers[i % 6]) + ",";
    EXPECT_NE(lines[i].find(wanted), std::string::npos) << lines[i];
  }
}

TEST_F(RecorderTest, AStreamHasTheNameOfItsRequestWhicheverComesFirst) {
  ASSERT_TRUE(StartRun("a").ok());
  const Key key = NextKey();
  std::thread engine([&] { Record(Event::kSchedulerFirstEmit, StreamKey(7), stage_); });
  engine.join();
  Join(StreamKey(7), key);
  Record(Event::kSocketReceived, key, stage_);
  const std::string name(200, 'x');
  Name(key, name);
  Name(key, "a later one");
  StopRun("");
  const auto lines = Lines("events_");
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with("{\"request_id\":\"" + name + "\"")) << line;
  }
}

TEST_F(RecorderTest, ARequestWithoutANameGetsOne) {
  ASSERT_TRUE(StartRun("a").ok());
  Record(Event::kSocketReceived, NextKey(), stage_);
  StopRun("");
  const auto lines = Lines("events_");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("{\"request_id\":\"request-")) << lines[0];
}

TEST_F(RecorderTest, WhatThreadsDoForManyRequestsHasAFileOfItsOwn) {
  ASSERT_TRUE(StartRun("a").ok());
  Record(Event::kStep, kNoKey, stage_, {.a = 12, .b = 3400});
  StopRun("");
  EXPECT_TRUE(Lines("events_").empty());
  const auto lines = Lines("steps_");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find(R"("batch_size":12,"duration_ns":3400)"), std::string::npos);
}

TEST_F(RecorderTest, TheSameRunGoesOnAnotherOneEndsIt) {
  ASSERT_TRUE(StartRun("a", "/a").ok());
  ASSERT_TRUE(StartRun("a", "/elsewhere").ok());
  Record(Event::kStageDispatch, NextKey(), stage_);
  EXPECT_EQ(StopRun("other"), "");
  ASSERT_TRUE(StartRun("b", "/b").ok());
  Record(Event::kStageDispatch, NextKey(), stage_);
  EXPECT_EQ(StopRun("b"), "b");
  EXPECT_EQ(Lines("events_", "/a").size(), 1u);
  EXPECT_EQ(Lines("events_", "/b").size(), 1u);
  EXPECT_FALSE(fs::exists(folder_ + "/elsewhere"));
}

TEST_F(RecorderTest, AFolderThatCannotBeMadeIsRefused) {
  std::ofstream(folder_ + "/file") << "x";
  const Status status = StartRun("a", "/file/below");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(FieldOf(status), "event_dir");
  EXPECT_FALSE(On());
}

// Starting the profiler hung a busy stage of sglang-omni (its issue 1779).
TEST_F(RecorderTest, StartsAndStopsUnderLoadLoseNothing) {
  constexpr int kRuns = 60;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const Label stage = LabelOf("thread" + std::to_string(t));
      const Key key = NextKey();
      for (int64_t i = 0; !over.load(); ++i) {
        Record(Event::kStageStreamChunkSent, key, stage, {.a = i});
        if (i % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  const Totals before = Count();
  for (int i = 0; i < kRuns; ++i) {
    ASSERT_TRUE(StartRun("r" + std::to_string(i)).ok());
    EXPECT_EQ(StopRun(""), "r" + std::to_string(i));
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  const Totals after = Count();
  EXPECT_EQ(after.dropped, before.dropped);
  EXPECT_EQ(after.cut, before.cut);
  EXPECT_EQ(after.runs - before.runs, uint64_t{kRuns});
  const auto lines = Lines("events_");
  EXPECT_EQ(lines.size(), after.written - before.written);
  // Within a run no number of a thread is missing.
  std::string run;
  int64_t next[3] = {-1, -1, -1};
  for (const std::string& line : lines) {
    const auto field = [&line](std::string_view name) {
      const size_t at = line.find(name) + name.size();
      return line.substr(at, line.find_first_of(",\"}", at) - at);
    };
    if (const std::string now = field("\"run_id\":\""); now != run) {
      run = now;
      next[0] = next[1] = next[2] = -1;
    }
    const size_t thread = static_cast<size_t>(std::stoi(field("\"stage\":\"thread")));
    const int64_t number = std::stoll(field("\"chunk_id\":"));
    if (next[thread] >= 0) {
      ASSERT_EQ(number, next[thread]) << run;
    }
    next[thread] = number + 1;
  }
}

// What was recorded while the files of the next run were made belonged to neither.
TEST_F(RecorderTest, RunsThatFollowEachOtherLoseNothingBetweenThem) {
  constexpr int kRuns = 60;
  constexpr size_t kThreads = 3;
  std::atomic<bool> over{false};
  std::vector<int64_t> recorded(kThreads);
  std::vector<std::thread> threads;
  ASSERT_TRUE(StartRun("first").ok());
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Label stage = LabelOf("thread" + std::to_string(t));
      const Key key = NextKey();
      int64_t& i = recorded[t];
      for (; !over.load(); ++i) {
        Record(Event::kStageStreamChunkSent, key, stage, {.a = i});
        // Slow enough for the ring to hold a second of it, in which the collector may do other work.
        if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  const Totals before = Count();
  for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(StartRun("r" + std::to_string(i)).ok());
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(StopRun(""), "r" + std::to_string(kRuns - 1));
  EXPECT_EQ(Count().dropped, before.dropped);
  EXPECT_EQ(Count().cut, before.cut);
  std::vector<int64_t> next(kThreads);
  for (const std::string& line : Lines("events_")) {
    const auto field = [&line](std::string_view name) {
      const size_t at = line.find(name) + name.size();
      return line.substr(at, line.find_first_of(",\"}", at) - at);
    };
    const auto thread = static_cast<size_t>(std::stoi(field("\"stage\":\"thread")));
    ASSERT_EQ(std::stoll(field("\"chunk_id\":")), next[thread]++) << line;
  }
  EXPECT_EQ(next, recorded);
}

TEST_F(RecorderTest, AStartThatFailsLeavesTheCurrentRunAlone) {
  std::ofstream(folder_ + "/file") << "x";
  ASSERT_TRUE(StartRun("a").ok());
  EXPECT_FALSE(StartRun("b", "/file/below").ok());
  Record(Event::kStageDispatch, NextKey(), stage_);
  EXPECT_EQ(StopRun(""), "a");
  EXPECT_EQ(Lines("events_").size(), 1u);
}

TEST_F(RecorderTest, ListenersAreToldOfRuns) {
  std::vector<std::string> told;
  ASSERT_TRUE(StartRun("a").ok());
  const uint64_t id = AddListener(
      [&told](const RunOptions* runs) { told.push_back(runs == nullptr ? "-" : runs->run_id); });
  StopRun("");
  ASSERT_TRUE(StartRun("b").ok());
  RemoveListener(id);
  StopRun("");
  EXPECT_EQ(told, (std::vector<std::string>{"a", "-", "b"}));
}

TEST_F(RecorderTest, AThreadKnowsItsRequest) {
  EXPECT_EQ(OnThread().key, kNoKey);
  {
    const Scope scope({.key = 5, .request_id = "r"});
    EXPECT_EQ(OnThread().key, 5u);
    EXPECT_EQ(OnThread().request_id, "r");
    const Scope none({});
    EXPECT_EQ(OnThread().key, 5u);
  }
  EXPECT_EQ(OnThread().key, kNoKey);
}

}  // namespace
}  // namespace portico::events
