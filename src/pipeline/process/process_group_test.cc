#include "pipeline/process/process_group.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/events/recorder.h"
#include "pipeline/config/config.h"
#include "pipeline/parts_in_process.h"
#include "pipeline/process/spawn.h"

namespace portico::pipeline {
namespace {

using namespace std::chrono_literals;

// What the stage processes of a test have done, and shall do.
struct ProcessScript {
  std::vector<std::string> words;  // of a program that is the process, too; none: nothing is
  std::atomic<int> opened{0};
  std::atomic<int> pings{0};
  std::atomic<bool> mute{false};  // pings are not answered
  std::atomic<std::chrono::milliseconds> held{
      0ms};                     // the group's thread, once, when it has read everything
  std::atomic<int> freezes{0};  // so many pings are answered only after the group's thread was held
  std::atomic<TimePoint> asked{TimePoint{}};  // the first ping that was not answered
  std::atomic<TimePoint> ended{TimePoint{}};  // the process that did not answer
  std::atomic<int> parts{0};                  // that were sent to processes
  std::atomic<int> works{0};                  // so many of them are worked on at once
  std::atomic<int> deaths{0};                 // so many processes are to end
};

// A stage process that is ready and answers pings at once, on the group's own thread.
class ScriptedChannel final : public Channel {
 public:
  explicit ScriptedChannel(ProcessScript* script, Fd socket = Fd())
      : script_(*script),
        socket_(std::move(socket)),
        event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~ScriptedChannel() override {
    if (script_.mute && script_.ended.load() == TimePoint{}) script_.ended = Clock::now();
  }

  // With the group's lock.
  void Send(const Datagram& datagram) override {
    const auto messages = ReadMessages(datagram);
    ASSERT_TRUE(messages.ok()) << messages.status();
    for (const Message& message : *messages) OnMessage(message);
  }
  // Before the group reads its clock.
  void Flush() override {
    const std::chrono::milliseconds held = script_.held.exchange(0ms);
    std::this_thread::sleep_for(held);
    flushed_ = Clock::now();
    if (held == 0ms || frozen_.bytes.empty()) return;
    Answer(std::exchange(frozen_, {}));  // is read after the group has read its clock
    --script_.freezes;
  }
  bool keeps() const override { return false; }
  StatusOr<Received> Receive() override {
    const MutexLock lock(&mutex_);
    Received received;
    if (script_.deaths > 0) {
      --script_.deaths;
      received.ended = true;
      return received;
    }
    received.empty = answers_.empty();
    if (received.empty) {
      uint64_t count = 0;
      static_cast<void>(!read(event_.get(), &count, sizeof count));
      return received;
    }
    received.message = std::move(answers_.front());
    answers_.pop_front();
    return received;
  }
  int fd() const override { return event_.get(); }

 private:
  void OnMessage(const Message& message) {
    if (message.kind == MessageKind::kInit) {
      Answer(*TextMessage(MessageKind::kReady, R"({"stages": {}})"));
    } else if (message.kind == MessageKind::kPart) {
      if (script_.works > 0) {
        --script_.works;
        Answer(RunMessage(MessageKind::kTook, message.run));
      }
      ++script_.parts;
    } else if (message.kind == MessageKind::kPing && !script_.mute && script_.freezes > 0) {
      script_.held = 500ms;
      frozen_ = NumberMessage(MessageKind::kPong, 0, message.number);
    } else if (message.kind == MessageKind::kPing && !script_.mute) {
      Answer(NumberMessage(MessageKind::kPong, 0, message.number));
      ++script_.pings;
    } else if (message.kind == MessageKind::kPing && script_.asked.load() == TimePoint{}) {
      script_.asked = flushed_;
    }
  }
  void Answer(Datagram datagram) {
    const MutexLock lock(&mutex_);
    answers_.push_back(std::move(datagram));
    const uint64_t one = 1;
    static_cast<void>(!write(event_.get(), &one, sizeof one));
  }

  ProcessScript& script_;
  const Fd socket_;  // of the program, until the channel ends
  const Fd event_;
  TimePoint flushed_{};
  Datagram frozen_;  // the answer to a ping of before
  Mutex mutex_;
  std::deque<Datagram> answers_ ABSL_GUARDED_BY(mutex_);
};

// What a run's coordinator is told.
class CountingOutput final : public StageOutput, public PartsInProcess {
 public:
  bool Emit(Part) override { return true; }
  void End(Status) override {}
  bool aborted() const override { return false; }
  void Worked(bool again) override { ++(again ? worked_again : worked); }

  std::atomic<int> worked{0};
  std::atomic<int> worked_again{0};
};

class ProcessGroupTest : public testing::Test {
 protected:
  void StartGroup(double stall_s) {
    stage_.name = "a";
    ProcessGroupOptions options;
    options.name = "p";
    options.stages = {&stage_};
    options.stall_s = stall_s;
    options.init = "{}";
    options.open = [this](int, const std::function<bool()>&) -> StatusOr<StageLink> {
      ++script_.opened;
      StageLink link;
      if (script_.words.empty()) {
        link.channel = std::make_unique<ScriptedChannel>(&script_);
        return link;
      }
      PORTICO_ASSIGN_OR_RETURN(Spawned spawned,
                               SpawnStage({.words = script_.words, .environment = {}}));
      link.channel = std::make_unique<ScriptedChannel>(&script_, std::move(spawned.socket));
      link.pid = spawned.pid;
      link.exit = std::move(spawned.exit);
      return link;
    };
    auto group = ProcessGroup::Start(std::move(options), &registry_);
    ASSERT_TRUE(group.ok()) << group.status();
    group_ = *std::move(group);
  }

  static bool InTime(const std::function<bool()>& holds) {
    for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(10ms);
    return holds();
  }

  ProcessScript script_;
  StageConfig stage_;
  Registry registry_;
  std::unique_ptr<ProcessGroup> group_;
};

// The silence was counted from the last message, also while nothing had been asked: a server that was stopped, or whose machine was
// busy, for half of the stall timeout then ended every one of its stage processes.
TEST_F(ProcessGroupTest, KeepsAProcessThatWasNotAskedWhileTheServerStoodStill) {
  StartGroup(/*stall_s=*/0.4);
  for (int i = 0; i < 3; ++i) {
    const int before = script_.pings;
    script_.held = 500ms;
    ASSERT_TRUE(InTime([&] { return script_.held.load() == 0ms && script_.pings > before + 3; }));
  }
  EXPECT_EQ(script_.opened, 1);
}

// A container that was frozen while a ping was under way: the answer was due long ago when both went on, and was not read any more.
TEST_F(ProcessGroupTest, KeepsAProcessThatStoodStillTogetherWithTheServer) {
  StartGroup(/*stall_s=*/0.4);
  script_.freezes = 3;
  ASSERT_TRUE(InTime([&] { return script_.freezes == 0; }));
  const int before = script_.pings;
  ASSERT_TRUE(InTime([&] { return script_.pings > before + 3; }));
  EXPECT_EQ(script_.opened, 1);
}

// Its time ran from the answer before: a process that was idle, and got its work with the next ping, had five eighths of it.
TEST_F(ProcessGroupTest, GivesAProcessTheWholeTimeFromWhenItIsAsked) {
  StartGroup(/*stall_s=*/0.8);
  ASSERT_TRUE(InTime([&] { return script_.pings > 3; }));
  script_.mute = true;
  ASSERT_TRUE(InTime([&] { return script_.ended.load() != TimePoint{}; }));
  EXPECT_GE(script_.ended.load() - script_.asked.load(), 400ms);
  script_.mute = false;
  EXPECT_TRUE(InTime([&] { return script_.opened > 1; }));
}

// The time that a part may wait in a process counts from these; that of a process which had died went on (hop_timeout_s).
TEST_F(ProcessGroupTest, TellsPartsApartThatAreWorkedOnOnceMoreInANewProcess) {
  StartGroup(/*stall_s=*/0);
  const auto output = std::make_shared<CountingOutput>();
  script_.works = 2;
  const auto run = group_->NewRun(stage_, std::make_shared<Request>(), output);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(run->OnPart(TextPart{"x"}, "").ok());
  run->OnPause();
  ASSERT_TRUE(InTime([&] { return output->worked == 2; }));

  script_.works = 3;
  script_.deaths = 1;
  ASSERT_TRUE(InTime([&] { return output->worked == 3; }));
  EXPECT_EQ(output->worked_again, 2);
  EXPECT_EQ(script_.parts, 8);
  EXPECT_EQ(script_.opened, 2);
}

// It was killed half a second after its socket had closed, within the lines of its profile.
TEST_F(ProcessGroupTest, AProcessThatKeepsAProfileHasTheTimeToWriteIt) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "group-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string written = folder + "/written";
  script_.words = {"/bin/sh", "-c", "cat <&3 >/dev/null; sleep 1; : >" + written};
  StartGroup(/*stall_s=*/0);
  std::promise<Status> started;
  events::Start({.run_id = "r", .directory = folder, .stage = "test", .trace_path_template = ""},
                [&started](Status status) { started.set_value(std::move(status)); });
  ASSERT_TRUE(started.get_future().get().ok());
  group_->Stop();
  EXPECT_TRUE(fs::exists(written));
  std::promise<void> stopped;
  events::Stop("", [&stopped](const StatusOr<std::string>&) { stopped.set_value(); });
  stopped.get_future().wait();
  fs::remove_all(folder);
}

}  // namespace
}  // namespace portico::pipeline
