#include "router/worker.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

TEST(ParseWorkerUrlTest, ReadsSchemeHostPortAndPath) {
  const WorkerSpec plain = *ParseWorkerUrl("http://a.example:30000/");
  EXPECT_EQ(plain.host, "a.example");
  EXPECT_EQ(plain.port, 30000);
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.path_prefix, "");
  const WorkerSpec tls = *ParseWorkerUrl("https://[::1]/api/");
  EXPECT_EQ(tls.host, "::1");
  EXPECT_EQ(tls.port, 443);
  EXPECT_TRUE(tls.tls);
  EXPECT_EQ(tls.path_prefix, "/api");
  const WorkerSpec grpc = *ParseWorkerUrl("grpcs://a:1");
  EXPECT_EQ(grpc.protocol, Protocol::kGrpc);
  EXPECT_TRUE(grpc.tls);
}

TEST(ParseWorkerUrlTest, RefusesWhatIsNoPlaceOfAWorker) {
  for (const char* url : {"", "http://", "ftp://a:1", "http://a:0", "http://a:65536", "http://a:x",
                          "http://a:", "http://u:p@a:1", "http://a:1/?x", "http://a b:1",
                          "http://[::1", "http://[::1]x", "http://::1:30000", "::1", "grpc://a",
                          "grpcs://a:1/x", "http://a:1\r\nx"}) {
    EXPECT_FALSE(ParseWorkerUrl(url).ok()) << url;
  }
  EXPECT_EQ(MessageOf(ParseWorkerUrl("http://a:1,http://b:1").status()),
            "worker `http://a:1,http://b:1`: it has a comma; --worker-urls takes URLs with spaces "
            "between them");
}

TEST(WorkerTest, HalvesOfPairsHaveASchemeAndRanksOnlyOverHttp) {
  const auto refused = [](const char* url, bool dp_aware) {
    WorkerSpec spec = *ParseWorkerUrl(url);
    spec.role = Role::kDecode;
    return FieldOf(CheckPairWorker(spec, dp_aware));
  };
  EXPECT_EQ(refused("http://a:1", true), "");
  EXPECT_EQ(refused("grpc://a:1", false), "");
  EXPECT_EQ(refused("grpcs://a:1", true), "url");
  EXPECT_EQ(refused("a:1", false), "url");
}

TEST(WorkerTest, HasANumberOfItsOwn) {
  const Worker a(*ParseWorkerUrl("http://a:1"));
  const Worker b(*ParseWorkerUrl("http://a:1"));
  EXPECT_LT(a.number(), b.number());
  EXPECT_NE(a.id(), b.id());
}

TEST(WorkerTest, APauseWhoseAnswerIsLostCountsUntilAReadingTellsOtherwise) {
  // It counted until the worker was told to go on, though it had never been paused.
  Worker worker(*ParseWorkerUrl("http://a:1"));
  EXPECT_FALSE(worker.BeginPause(PauseReading::kIsSleeping).paused);
  worker.NoteAsleep(kWeightsMemory);
  EXPECT_EQ(worker.pause_doubt().number, 0u);
  worker.DoubtPause(false);
  const PauseDoubt doubt = worker.pause_doubt();
  EXPECT_NE(doubt.number, 0u);
  EXPECT_EQ(doubt.reading, PauseReading::kIsSleeping);
  EXPECT_TRUE(worker.held_back());
  EXPECT_TRUE(worker.SettlePause(doubt, false));
  EXPECT_FALSE(worker.held_back());
  EXPECT_TRUE(worker.NoteAwake(0));
  EXPECT_FALSE(worker.SettlePause(doubt, false));

  worker.BeginPause(PauseReading::kIsPaused);
  worker.DoubtPause(false);
  EXPECT_FALSE(worker.SettlePause(worker.pause_doubt(), true));
  EXPECT_TRUE(worker.held_back());
  EXPECT_EQ(worker.pause_doubt().number, 0u);
}

TEST(WorkerTest, AReadingFromBeforeAnotherPauseDoesNotEndThatOne) {
  Worker worker(*ParseWorkerUrl("http://a:1"));
  worker.BeginPause(PauseReading::kIsPaused);
  worker.DoubtPause(false);
  const PauseDoubt first = worker.pause_doubt();
  EXPECT_TRUE(worker.BeginPause(PauseReading::kIsPaused).paused);
  EXPECT_FALSE(worker.SettlePause(first, false));
  EXPECT_TRUE(worker.held_back());
  worker.DoubtPause(false);
  EXPECT_FALSE(worker.SettlePause(first, false));
  EXPECT_TRUE(worker.held_back());
  worker.EndPause();
  worker.DoubtPause(false);  // of the pause that is over
  EXPECT_EQ(worker.pause_doubt().number, 0u);
  EXPECT_FALSE(worker.held_back());
}

TEST(WorkerTest, ADoubtOfAWorkerThatHasBeenDownStaysOneOfThat) {
  // A /continue_generation that was lost made it one that only a reading could settle.
  Worker worker(*ParseWorkerUrl("http://a:1"));
  worker.BeginPause(PauseReading::kInference);
  worker.DoubtPause(true);
  worker.DoubtPause(false);
  EXPECT_TRUE(worker.pause_doubt().been_down);
}

TEST(WorkerTest, APauseThatIsSureEndsByAReadingOfThatPauseAlone) {
  // One that was resumed past the gateway counted for ever.
  Worker worker(*ParseWorkerUrl("http://a:1"));
  EXPECT_EQ(worker.sure_pause().number, 0u);
  EXPECT_FALSE(worker.EndSurePause(worker.sure_pause()));
  worker.BeginPause(PauseReading::kIsSleeping);
  worker.NoteAsleep(kWeightsMemory);
  const SurePause first = worker.sure_pause();
  EXPECT_EQ(first.reading, PauseReading::kIsSleeping);
  worker.EndPause();
  EXPECT_FALSE(worker.EndSurePause(first));
  worker.BeginPause(PauseReading::kIsPaused);
  EXPECT_FALSE(worker.EndSurePause(first));
  const SurePause second = worker.sure_pause();
  worker.DoubtPause(false);
  EXPECT_EQ(worker.sure_pause().number, 0u);
  EXPECT_FALSE(worker.EndSurePause(second));
  EXPECT_FALSE(worker.SettlePause(worker.pause_doubt(), true));
  worker.NoteAsleep(kWeightsMemory);
  EXPECT_TRUE(worker.EndSurePause(worker.sure_pause()));
  EXPECT_FALSE(worker.held_back());
  EXPECT_TRUE(worker.NoteAwake(0));
}

TEST(WorkerTest, ARankThatIsNewIsInTheDoubtOfItsServer) {
  Worker first(*ParseWorkerUrl("http://a:1"));
  first.BeginPause(PauseReading::kIsPaused);
  first.DoubtPause(true);
  Worker second(*ParseWorkerUrl("http://a:1"));
  second.ChangeLike(first);
  EXPECT_TRUE(second.held_back());
  EXPECT_NE(second.pause_doubt().number, 0u);
  EXPECT_EQ(second.pause_doubt().reading, PauseReading::kIsPaused);
  EXPECT_TRUE(second.pause_doubt().been_down);
}

TEST(BreakerTest, OpensAfterItsFailuresAndLetsOneTrialThrough) {
  Breaker breaker({.failure_threshold = 2, .open_time = std::chrono::seconds(10)});
  const TimePoint start = Clock::now();
  breaker.OnFailure(start);
  EXPECT_TRUE(breaker.Begin(start));
  breaker.OnFailure(start);
  EXPECT_FALSE(breaker.Begin(start));
  const TimePoint later = start + std::chrono::seconds(11);
  EXPECT_TRUE(breaker.Allows(later));
  EXPECT_TRUE(breaker.Begin(later));
  EXPECT_FALSE(breaker.Begin(later));
  breaker.OnSuccess();
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

TEST(BreakerTest, FailuresOutsideTheWindowAreForgotten) {
  Breaker breaker({.failure_threshold = 2, .window = std::chrono::seconds(10)});
  const TimePoint start = Clock::now();
  breaker.OnFailure(start);
  breaker.OnFailure(start + std::chrono::seconds(11));
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

TEST(BreakerTest, ARecoveredWorkerStartsWithAClosedOne) {
  Breaker breaker({.failure_threshold = 2});
  const TimePoint now = Clock::now();
  breaker.OnFailure(now);
  breaker.OnFailure(now);
  EXPECT_FALSE(breaker.Allows(now));
  breaker.Close();
  EXPECT_TRUE(breaker.Begin(now));
  breaker.OnFailure(now);
  EXPECT_EQ(breaker.state(), Breaker::State::kClosed);
}

TEST(BreakerTest, ATrialThatSaysNothingLeavesThePlaceForAnother) {
  Breaker breaker({.failure_threshold = 1, .open_time = Duration::zero()});
  const TimePoint now = Clock::now();
  breaker.OnFailure(now);
  EXPECT_TRUE(breaker.Begin(now));
  EXPECT_FALSE(breaker.Begin(now));
  breaker.OnNothing();
  EXPECT_TRUE(breaker.Begin(now));
}

}  // namespace
}  // namespace portico::router
