#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/events/recorder.h"
#include "observe/profile/breakdown.h"
#include "observe/profile/html_report.h"
#include "observe/profile/perfetto.h"
#include "observe/profile/profile_files.h"
#include "observe/profile/text_report.h"
#include "text/json.h"

namespace portico::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    std::string made = (fs::temp_directory_path() / "profile-XXXXXX").string();
    folder_ = mkdtemp(made.data());
  }
  ~ProfileTest() override { fs::remove_all(folder_); }

  // Milliseconds after an arbitrary second.
  void Event(const std::string& file, double ms, const std::string& request,
             const std::string& stage, const std::string& name, const std::string& metadata = "") {
    std::ofstream(folder_ + "/" + file, std::ios::app) << fmt::format(
        R"({{"request_id": "{}", "stage": "{}", "event_name": "{}", "timestamp_ns": {}, "run_id": "r", "pid": 1, "metadata": {{{}}}}})"
        "\n",
        request, stage, name, int64_t{1'700'000'000'000'000'000} + static_cast<int64_t>(ms * 1e6),
        metadata);
  }
  void Facts(const std::string& name, const std::string& boot, int64_t to_wall) {
    std::ofstream(folder_ + "/run_" + name + ".json") << fmt::format(
        R"({{"host":"h","boot_id":"{}","monotonic_to_wall_ns":{},"ended":true,"dropped":3,"cut":0}})",
        boot, to_wall);
  }
  Profile Read() {
    auto profile = ReadProfile({folder_});
    EXPECT_TRUE(profile.ok()) << profile.status();
    return *std::move(profile);
  }

  static void StartRun(const std::string& run, const std::string& folder) {
    std::promise<Status> started;
    events::Start({.run_id = run, .directory = folder, .stage = "test", .trace_path_template = ""},
                  [&started](Status status) { started.set_value(std::move(status)); });
    ASSERT_TRUE(started.get_future().get().ok());
  }
  // Or none; when all lines of former runs are there.
  static void StopRun(const std::string& run = "") {
    std::promise<void> stopped;
    events::Stop(run, [&stopped](const StatusOr<std::string>&) { stopped.set_value(); });
    stopped.get_future().wait();
  }
  static void AwaitEvents(const std::string& folder, size_t count) {
    const TimePoint patience = Clock::now() + std::chrono::minutes(2);
    while (Clock::now() < patience) {
      const auto profile = ReadProfile({folder});
      if (profile.ok() && profile->events.size() + profile->steps.size() == count) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "there are no " << count << " events";
  }
  // The only file of the folder that ends so.
  fs::path FileThatEnds(const std::string& end) const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().string().ends_with(end)) return entry.path();
    }
    return {};
  }
  // All that is read of each event and step.
  static std::vector<std::string> Shown(const Profile& profile) {
    std::vector<std::string> rows;
    for (const ProfileEvent& event : profile.events) {
      rows.push_back(fmt::format("{} {} {} {} {} {} {} {} {} {}", event.nanoseconds,
                                 profile.words.At(event.request), profile.words.At(event.stage),
                                 profile.words.At(event.name), profile.words.At(event.peer),
                                 profile.words.At(event.modality), event.process, event.chunk,
                                 profile.words.At(event.what), event.number));
    }
    for (const ProfileStep& step : profile.steps) {
      rows.push_back(fmt::format("{} {} {} {} {} {}", step.nanoseconds, step.took, step.batch,
                                 profile.words.At(step.stage), profile.words.At(step.name),
                                 step.process));
    }
    return rows;
  }

  std::string folder_;
};

const StageRow* Find(const Breakdown& breakdown, std::string_view stage,
                     std::string_view interval) {
  for (const StageRow& row : breakdown.stages) {
    if (row.stage == stage && row.interval == interval) return &row;
  }
  return nullptr;
}

const HopRow* FindHop(const Breakdown& breakdown, std::string_view from, std::string_view to,
                      std::string_view kind) {
  for (const HopRow& row : breakdown.hop_rows) {
    if (row.from == from && row.to == to && row.kind == kind) return &row;
  }
  return nullptr;
}

// A process that is killed leaves records, and while it makes lines of them some of these, too.
TEST_F(ProfileTest, WhatAProcessHasRecordedIsReadBeforeItsRunEnds) {
  StartRun("run", folder_);
  const events::Key key = events::NextKey();
  events::Name(key, "mine");
  events::Record(events::Event::kStageHopSent, key, events::kFrontend, {.peer = events::kEngine});
  events::Record(events::Event::kStageStreamChunkSent, key, events::kEngine,
                 {.peer = events::kFrontend, .tag = events::LabelOf("audio"), .a = 5});
  events::Record(events::Event::kSchedulerPrefillStart, key, events::kEngine, {.a = 8, .b = 2});
  events::Record(events::Event::kStep, events::kNoKey, events::kEngine, {.a = 3, .b = 700});
  AwaitEvents(folder_, 4);
  const fs::path records = FileThatEnds(".bin");
  const fs::path kept = records.string() + ".kept";
  fs::copy_file(records, kept);
  const Profile before = Read();
  StopRun();
  ASSERT_FALSE(fs::exists(records));
  const Profile lines = Read();
  fs::rename(kept, records);
  const Profile both = Read();
  EXPECT_EQ(before.run_id, "run");
  EXPECT_EQ(before.processes.size(), 1u);
  EXPECT_FALSE(before.processes[0].ended);
  EXPECT_TRUE(both.processes[0].ended);
  EXPECT_EQ(lines.events.size(), 3u);
  EXPECT_EQ(lines.steps.size(), 1u);
  EXPECT_EQ(Shown(before), Shown(lines));
  EXPECT_EQ(Shown(both), Shown(lines));
}

// Its records do not have the names that the former run was told: the events counted twice, and as
// another request's.
TEST_F(ProfileTest, ARequestOfTwoRunsKeepsItsNameWhereLinesAreHalfWritten) {
  const events::Key key = events::NextKey();
  const events::Key stream = events::StreamKey(key);
  StartRun("one", folder_);
  events::Name(key, "mine");
  events::Join(stream, key);
  events::Record(events::Event::kStageDispatch, key, events::kFrontend);
  StartRun("two", folder_);
  for (int i = 0; i < 4; ++i) {
    events::Record(events::Event::kStageStreamChunkSent, key, events::kFrontend, {.a = i});
    events::Record(events::Event::kStageStreamChunkSent, stream, events::kEngine, {.a = i});
  }
  StopRun("neither");
  AwaitEvents(folder_, 9);
  const fs::path records = FileThatEnds(".bin");
  const fs::path kept = records.string() + ".kept";
  fs::copy_file(records, kept);
  StopRun();
  const Profile lines = Read();
  ASSERT_EQ(lines.events.size(), 9u);
  for (const ProfileEvent& event : lines.events) {
    EXPECT_EQ(lines.words.At(event.request), "mine");
  }
  fs::rename(kept, records);
  EXPECT_EQ(Shown(Read()), Shown(lines));
  // It was killed between two lines, or within one.
  const fs::path file = FileThatEnds(".jsonl");
  std::string text;
  std::getline(std::ifstream(file), text, '\0');
  size_t end = text.size();
  for (int i = 0; i < 4; ++i) end = text.rfind('\n', end - 1);
  fs::resize_file(file, end + 1);
  EXPECT_EQ(Shown(Read()), Shown(lines));
  std::ofstream(file, std::ios::app) << "{\"request_id\":\"mi";
  const Profile cut = Read();
  EXPECT_EQ(Shown(cut), Shown(lines));
  EXPECT_EQ(cut.malformed, 0u);
}

// Events counted twice, or not at all, or there was an error, as the records went away.
TEST_F(ProfileTest, AProfileCanBeReadWhileItsLinesAreWritten) {
  constexpr int kEvents = 2000;
  for (int round = 0; round < 5; ++round) {
    const std::string folder = fmt::format("{}/{}", folder_, round);
    StartRun(fmt::format("{}", round), folder);
    const events::Key key = events::NextKey();
    events::Name(key, "mine");
    for (int i = 0; i < kEvents; ++i) {
      events::Record(events::Event::kStageStreamChunkSent, key, events::kFrontend, {.a = i});
    }
    AwaitEvents(folder, kEvents);
    std::thread stop([] { StopRun(); });
    while (true) {
      const bool ended = AllEnded(folder);
      const auto profile = ReadProfile({folder});
      EXPECT_TRUE(profile.ok()) << profile.status();
      if (profile.ok()) {
        EXPECT_EQ(profile->events.size(), size_t{kEvents});
        EXPECT_EQ(profile->malformed, 0u);
      }
      if (ended) break;
    }
    stop.join();
  }
}

TEST_F(ProfileTest, StagesAndHopsAreTimedAsSglangOmniDoesIt) {
  const std::string file = "events_coordinator_1.jsonl";
  for (int i = 0; i < 3; ++i) {
    const std::string id = fmt::format("r{}", i);
    const double at = i * 100;
    Event(file, at, id, "coordinator", "request_admission", R"("entry_stage": "a")");
    Event(file, at + 1, id, "a", "stage_input_received", R"("from_stage": "coordinator")");
    Event(file, at + 3, id, "a", "stage_hop_sent", R"("to_stage": "b")");
    Event(file, at + 3, id, "a", "stage_stream_chunk_sent", R"("to_stage": "b", "chunk_id": 0)");
    Event(file, at + 4, id, "b", "stage_input_received", R"("from_stage": "a")");
    Event(file, at + 4, id, "b", "stage_stream_chunk_received",
          R"("from_stage": "a", "chunk_id": 0)");
    Event(file, at + 5 + i, id, "a", "stage_complete", R"("terminal": false)");
  }
  const Profile profile = Read();
  const Breakdown breakdown = BreakDown(profile);
  EXPECT_EQ(breakdown.timelines.size(), 3u);
  const StageRow* a = Find(breakdown, "a", "stage_input_received->stage_complete");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->durations.count, 3u);
  EXPECT_NEAR(a->durations.total_ms, 15, 1e-3);
  EXPECT_NEAR(a->durations.p50_ms, 5, 1e-3);
  EXPECT_NEAR(a->durations.p95_ms, 5.9, 1e-3);
  EXPECT_NEAR(a->durations.max_ms, 6, 1e-3);
  const HopRow* payload = FindHop(breakdown, "a", "b", "payload");
  ASSERT_NE(payload, nullptr);
  EXPECT_NEAR(payload->durations.avg_ms, 1, 1e-3);
  EXPECT_TRUE(payload->of_sglang_omni);
  EXPECT_NE(FindHop(breakdown, "a", "b", "stream_chunk"), nullptr);
  // sglang-omni does not measure the coordinator's own.
  const HopRow* entry = FindHop(breakdown, "coordinator", "a", "entry");
  ASSERT_NE(entry, nullptr);
  EXPECT_FALSE(entry->of_sglang_omni);
  const auto json = Json::Parse(JsonReport(profile, breakdown));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->GetInt("request_count", 0), 3);
  EXPECT_EQ(json->Find("hop_breakdown")->as_array().size(), 2u);
  EXPECT_EQ(json->Find("timelines")->Find("r1")->as_array().size(), 7u);
}

TEST_F(ProfileTest, ALineThatACrashHasCutIsCounted) {
  Event("events_a_1.jsonl", 0, "r", "a", "stage_dispatch");
  std::ofstream(folder_ + "/events_a_1.jsonl", std::ios::app) << "{\"request_id\":\"r\",\"sta";
  const Profile profile = Read();
  EXPECT_EQ(profile.events.size(), 1u);
  EXPECT_EQ(profile.malformed, 1u);
  EXPECT_THAT(TextReport(profile, BreakDown(profile), 1), HasSubstr("1 lines could not be read"));
}

// The last column had no heading, and its numbers no units.
TEST_F(ProfileTest, ATimelineSaysWhatItsNumbersAre) {
  const std::string file = "events_frontend_1.jsonl";
  Event(file, 0, "r", "frontend", "socket_received", "\"body_bytes\": 60");
  Event(file, 1, "r", "frontend", "tokenize_end", "\"tokens\": 16");
  Event(file, 2, "r", "frontend", "write_start", "\"status\": 200");
  Event(file, 3, "r", "frontend", "terminal_response",
        "\"from_stage\": \"engine\", \"success\": true");
  const Profile profile = Read();
  const std::string report = TextReport(profile, BreakDown(profile), 1);
  EXPECT_THAT(report, HasSubstr("| event             | detail\n"));
  EXPECT_THAT(report, HasSubstr("| socket_received   | 60 body bytes\n"));
  EXPECT_THAT(report, HasSubstr("| tokenize_end      | 16 tokens\n"));
  EXPECT_THAT(report, HasSubstr("| write_start       | status 200\n"));
  EXPECT_THAT(report, HasSubstr("| terminal_response | engine success true\n"));
}

TEST_F(ProfileTest, AFolderWithoutEventsIsRefused) {
  EXPECT_EQ(ReadProfile({folder_}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadProfile({folder_ + "/nothing"}).status().code(), StatusCode::kNotFound);
}

// The prefill worker was taken for the decode worker, and its first byte for the other's.
TEST_F(ProfileTest, TheCallsOfARequestToSeveralWorkersAreToldApart) {
  const std::string gateway = "events_gateway_1.jsonl";
  const auto sent = [&](int at, const char* id, const std::string& worker) {
    Event(gateway, at, id, "gateway", "stage_hop_sent", "\"to_stage\": \"worker:" + worker + "\"");
  };
  const auto back = [&](int at, const char* id, const std::string& worker) {
    Event(gateway, at, id, "gateway", "stage_stream_chunk_received",
          "\"from_stage\": \"worker:" + worker + "\", \"chunk_id\": 0");
  };
  // A pair, whose decode worker gets it first; nothing says yet which is which.
  sent(10, "pair", "prefill");
  sent(11, "pair", "decode");
  Event("events_frontend_3.jsonl", 12, "pair", "frontend", "socket_received");
  Event("events_frontend_2.jsonl", 14, "pair", "frontend", "socket_received");
  Event("events_frontend_2.jsonl", 20, "pair", "frontend", "write_start");
  Event("events_frontend_3.jsonl", 21, "pair", "frontend", "write_start");
  back(23, "pair", "decode");
  back(25, "pair", "prefill");
  // A request of the decode worker alone tells.
  sent(30, "one", "decode");
  Event("events_frontend_3.jsonl", 31, "one", "frontend", "socket_received");
  // A worker was lost; the time of the attempt is not the next one's.
  sent(40, "again", "prefill");
  Event(gateway, 45, "again", "gateway", "stage_hop_failed", R"("to_stage": "worker:prefill")");
  sent(50, "again", "other");
  back(53, "again", "other");
  const Breakdown breakdown = BreakDown(Read());
  const auto total = [&](std::string_view from, std::string_view to, std::string_view kind) {
    const HopRow* row = FindHop(breakdown, from, to, kind);
    return row == nullptr ? -1.0 : row->durations.total_ms;
  };
  EXPECT_NEAR(total("gateway", "worker:decode", "request"), 1 + 1, 1e-3);
  EXPECT_NEAR(total("gateway", "worker:prefill", "request"), 4, 1e-3);
  EXPECT_NEAR(total("worker:decode", "gateway", "first_byte"), 2, 1e-3);
  EXPECT_NEAR(total("worker:prefill", "gateway", "first_byte"), 5, 1e-3);
  const StageRow* answers =
      Find(breakdown, "gateway", "stage_hop_sent->stage_stream_chunk_received");
  ASSERT_NE(answers, nullptr);
  EXPECT_EQ(answers->durations.count, 3u);
  EXPECT_NEAR(answers->durations.total_ms, 12 + 15 + 3, 1e-3);
}

// The worker's clock is 5 s ahead; 2 ms there, 1 ms back.
TEST_F(ProfileTest, TheClocksOfTwoHostsAreJoinedByWhatTheySendEachOther) {
  Facts("gateway_1", "boot-a", 0);
  Facts("frontend_2", "boot-b", 0);
  const std::string gateway = "events_gateway_1.jsonl";
  const std::string worker = "events_frontend_2.jsonl";
  Event(gateway, 10, "r", "gateway", "request_admission");
  Event(gateway, 10, "r", "gateway", "stage_hop_sent", R"("to_stage": "worker:b")");
  Event(worker, 5012, "r", "frontend", "socket_received");
  Event(worker, 5030, "r", "frontend", "write_start");
  Event(gateway, 32, "r", "gateway", "stage_stream_chunk_received",
        R"("from_stage": "worker:b", "chunk_id": 0)");
  const Profile profile = Read();
  const Breakdown breakdown = BreakDown(profile);
  const HopRow* out = FindHop(breakdown, "gateway", "worker:b", "request");
  const HopRow* back = FindHop(breakdown, "worker:b", "gateway", "first_byte");
  ASSERT_NE(out, nullptr);
  ASSERT_NE(back, nullptr);
  // Their sum is known, and shared out evenly.
  EXPECT_NEAR(out->durations.total_ms, 2, 1e-3);
  EXPECT_NEAR(back->durations.total_ms, 2, 1e-3);
  EXPECT_EQ(breakdown.timelines.front().events.size(), 5u);
}

TEST_F(ProfileTest, OneBootHasOneTimeThoughItsWallClockWasSet) {
  Facts("a_1", "boot", 0);
  Facts("b_2", "boot", int64_t{3'000'000'000});
  Event("events_a_1.jsonl", 10, "r", "a", "stage_hop_sent", R"("to_stage": "b")");
  Event("events_b_2.jsonl", 3011, "r", "b", "stage_input_received", R"("from_stage": "a")");
  const Breakdown breakdown = BreakDown(Read());
  const HopRow* hop = FindHop(breakdown, "a", "b", "payload");
  ASSERT_NE(hop, nullptr);
  EXPECT_NEAR(hop->durations.total_ms, 1, 1e-3);
}

TEST_F(ProfileTest, TorchTracesAreJoinedAtTheirTime) {
  Event("events_a_1.jsonl", 0, "r", "a", "stage_input_received");
  Event("events_a_1.jsonl", 9, "r", "a", "stage_complete");
  const std::string text =
      R"({"baseTimeNanoseconds": 1700000000000000000, "traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 5000, "dur": 7, "pid": 4, "tid": 4}]})";
  gzFile file = gzopen((folder_ + "/trace_rank0.trace.json.gz").c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ofstream(folder_ + "/broken.trace.json") << "{";
  const Profile profile = Read();
  std::vector<std::string> left_out;
  const auto trace = Json::Parse(PerfettoTrace(profile, BreakDown(profile), &left_out));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(left_out.size(), 1u);
  bool found = false;
  for (const Json& event : trace->Find("traceEvents")->as_array()) {
    if (event.GetString("name") != "aten::mm") continue;
    found = true;
    EXPECT_NEAR(event.GetDouble("ts", 0), 5000, 1e-3);  // after the first event
  }
  EXPECT_TRUE(found);
}

TEST_F(ProfileTest, APageNeedsNoNetworkAndTakesNamesAsText) {
  Event("events_a_1.jsonl", 0, "<script>alert(1)</script>", "a", "stage_input_received");
  Event("events_a_1.jsonl", 2, "<script>alert(1)</script>", "a", "stage_complete");
  const Profile profile = Read();
  const std::string page = HtmlReport(profile, BreakDown(profile));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("2.000 ms"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

TEST_F(ProfileTest, StepsAreAddedUp) {
  Event("events_a_1.jsonl", 0, "r", "engine", "stage_dispatch");
  Event("steps_a_1.jsonl", 5, "", "engine", "step", R"("batch_size": 4, "duration_ns": 2000000)");
  Event("steps_a_1.jsonl", 9, "", "engine", "step", R"("batch_size": 2, "duration_ns": 4000000)");
  const Breakdown breakdown = BreakDown(Read());
  ASSERT_EQ(breakdown.steps.size(), 1u);
  EXPECT_NEAR(breakdown.steps[0].batch, 3, 1e-9);
  EXPECT_NEAR(breakdown.steps[0].durations.total_ms, 6, 1e-6);
}

}  // namespace
}  // namespace portico::observe
