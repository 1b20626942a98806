#include "router/routed_engine.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

#include "router/policy/round_robin.h"

namespace portico::router {
namespace {

// Delivers when it is told to.
class FakeEngine final : public Engine {
 public:
  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override {
    if (!refusal.ok()) return refusal;
    if (before_submit) std::exchange(before_submit, nullptr)();
    streams[request.stream] = sink;
    return OkStatus();
  }
  // As an engine does: streams that it does not know are ignored.
  void Abort(StreamId stream, ShardIndex) override {
    if (streams.contains(stream)) aborted.push_back(stream);
  }
  EngineLoad load() const override {
    if (on_load) on_load();
    return {};
  }
  void Stop() override {
    if (on_stop) on_stop();
  }

  void Send(StreamId stream, TokenId token) {
    TokenDelta delta;
    delta.stream = stream;
    delta.tokens.push_back(token);
    Deliver(std::move(delta));
  }
  void End(StreamId stream, FinishReason finish, Status error = OkStatus()) {
    TokenDelta delta;
    delta.stream = stream;
    delta.finish = finish;
    delta.error = std::move(error);
    Deliver(std::move(delta));
  }

  Status refusal;
  std::function<void()> before_submit;
  std::function<void()> on_load;
  std::function<void()> on_stop;
  std::map<StreamId, TokenSink*> streams;
  std::vector<StreamId> aborted;

 private:
  void Deliver(TokenDelta delta) {
    TokenSink* sink = streams.at(delta.stream);
    if (delta.finish != FinishReason::kNone) streams.erase(delta.stream);
    std::vector<TokenDelta> batch;
    batch.push_back(std::move(delta));
    sink->DeliverHere(std::move(batch));
  }
  EngineInfo info_;
};

class GatheringSink final : public TokenSink {
 public:
  ShardIndex shard() const override { return 0; }
  void Deliver(std::vector<TokenDelta> batch) override {
    for (TokenDelta& delta : batch) deltas.push_back(std::move(delta));
  }
  std::vector<TokenDelta> deltas;
};

class RoutedEngineTest : public testing::Test {
 protected:
  RoutedEngineTest() {
    RoutedOptions options;
    options.policy = std::make_shared<RoundRobin>(PolicyOptions());
    engine_ = std::make_unique<RoutedEngine>(std::move(options));
    std::vector<RoutedMember> members;
    for (int i = 0; i < 3; ++i) {
      WorkerSpec spec;
      spec.url = "grpc://secret-host:1";
      workers_.push_back(std::make_shared<Worker>(spec));
      workers_.back()->SetHealth(Health::kHealthy);
      fakes_.push_back(std::make_shared<FakeEngine>());
      members.push_back({workers_.back(), fakes_.back()});
    }
    engine_->SetMembers(std::move(members));
  }

  Status Submit(StreamId stream) {
    GenerateRequest request;
    request.stream = stream;
    request.prompt = std::make_shared<const std::vector<TokenId>>(100, 1);
    request.sampling = std::make_shared<const SamplingParams>();
    return engine_->Submit(std::move(request), &sink_);
  }
  int At(StreamId stream) const {
    for (int i = 0; i < 3; ++i) {
      if (fakes_[static_cast<size_t>(i)]->streams.contains(stream)) return i;
    }
    return -1;
  }
  FakeEngine& Fake(int i) { return *fakes_[static_cast<size_t>(i)]; }
  void ExpectNothingInFlight() {
    for (const auto& worker : workers_) {
      EXPECT_EQ(worker->requests(), 0);
      EXPECT_EQ(worker->tokens(), 0);
    }
  }

  GatheringSink sink_;
  std::vector<WorkerPtr> workers_;
  std::vector<std::shared_ptr<FakeEngine>> fakes_;
  std::unique_ptr<RoutedEngine> engine_;
};

TEST_F(RoutedEngineTest, CountsRequestsAndTokensUntilTheyAreDone) {
  ASSERT_TRUE(Submit(1).ok());
  const int at = At(1);
  Worker& worker = *workers_[static_cast<size_t>(at)];
  EXPECT_EQ(worker.requests(), 1);
  EXPECT_EQ(worker.tokens(), 100);
  Fake(at).Send(1, 7);
  EXPECT_EQ(worker.tokens(), 0) << "the prefill is over";
  EXPECT_EQ(worker.requests(), 1);
  Fake(at).End(1, FinishReason::kLength);
  ExpectNothingInFlight();
  ASSERT_EQ(sink_.deltas.size(), 2u);
  EXPECT_EQ(sink_.deltas[0].tokens[0], 7);
  EXPECT_EQ(sink_.deltas[1].finish, FinishReason::kLength);
}

TEST_F(RoutedEngineTest, AWorkerLostBeforeItsFirstTokenCostsTheClientNothing) {
  ASSERT_TRUE(Submit(1).ok());
  const int first = At(1);
  Fake(first).End(1, FinishReason::kError, Error(StatusCode::kUnavailable, "lost"));
  EXPECT_TRUE(sink_.deltas.empty());
  EXPECT_EQ(workers_[static_cast<size_t>(first)]->health(), Health::kUnhealthy);
  const int second = At(1);
  ASSERT_NE(second, -1);
  EXPECT_NE(second, first);
  Fake(second).Send(1, 7);
  Fake(second).End(1, FinishReason::kLength);
  EXPECT_EQ(sink_.deltas.size(), 2u);
  ExpectNothingInFlight();
}

// The abort of a client that leaves at once came before the engine knew the stream, and was lost.
TEST_F(RoutedEngineTest, AnAbortWhileARequestIsOnItsWayToAnEngineIsNotLost) {
  for (int i = 0; i < 3; ++i) {
    Fake(i).before_submit = [this] { engine_->Abort(1, kNoShard); };
  }
  ASSERT_TRUE(Submit(1).ok());
  ASSERT_NE(At(1), -1);
  EXPECT_EQ(Fake(At(1)).aborted, (std::vector<StreamId>{1}));
}

TEST_F(RoutedEngineTest, AnAbortWhileARequestIsTriedAgainIsNotLost) {
  ASSERT_TRUE(Submit(1).ok());
  const int first = At(1);
  for (int i = 0; i < 3; ++i) {
    if (i != first) Fake(i).before_submit = [this] { engine_->Abort(1, kNoShard); };
  }
  Fake(first).End(1, FinishReason::kError, Error(StatusCode::kUnavailable, "lost"));
  const int second = At(1);
  ASSERT_NE(second, -1);
  EXPECT_EQ(Fake(second).aborted, (std::vector<StreamId>{1}));
  Fake(second).End(1, FinishReason::kAbort);
  ASSERT_EQ(sink_.deltas.size(), 1u);
  EXPECT_EQ(sink_.deltas[0].finish, FinishReason::kAbort);
  ExpectNothingInFlight();
}

TEST_F(RoutedEngineTest, AfterTheFirstTokenNothingIsTriedAgain) {
  ASSERT_TRUE(Submit(1).ok());
  const int at = At(1);
  Fake(at).Send(1, 7);
  Fake(at).End(1, FinishReason::kError, Error(StatusCode::kUnavailable, "lost"));
  EXPECT_EQ(At(1), -1);
  ASSERT_EQ(sink_.deltas.size(), 2u);
  EXPECT_EQ(sink_.deltas[1].finish, FinishReason::kError);
  ExpectNothingInFlight();
}

TEST_F(RoutedEngineTest, ARefusalIsTriedElsewhereAndAnInvalidRequestIsNot) {
  Fake(0).refusal = Error(StatusCode::kResourceExhausted, "full");
  for (StreamId stream = 1; stream <= 6; ++stream) ASSERT_TRUE(Submit(stream).ok());
  EXPECT_TRUE(Fake(0).streams.empty());
  for (int i = 0; i < 3; ++i) Fake(i).refusal = InvalidArgument("seed", "no seed");
  EXPECT_EQ(Submit(7).code(), StatusCode::kInvalidArgument);
}

TEST_F(RoutedEngineTest, WithoutAWorkerTheReasonNamesNoAddress) {
  for (const auto& worker : workers_) worker->SetHealth(Health::kUnhealthy);
  const Status status = Submit(1);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(status), "no worker can take the request: of 3, 3 are down and 0 draining");
  EXPECT_FALSE(engine_->Ready().ok());
  workers_[1]->SetHealth(Health::kUnknown);
  EXPECT_TRUE(Submit(2).ok()) << "one that was not probed yet is better than none";
  EXPECT_EQ(At(2), 1);
}

TEST_F(RoutedEngineTest, AllWorkersLostEndsTheStreamWithTheFirstFailure) {
  ASSERT_TRUE(Submit(1).ok());
  for (int tries = 0; At(1) >= 0 && tries < 5; ++tries) {
    Fake(At(1)).End(1, FinishReason::kError, Error(StatusCode::kUnavailable, "lost"));
  }
  ASSERT_EQ(sink_.deltas.size(), 1u);
  EXPECT_EQ(sink_.deltas[0].error.code(), StatusCode::kUnavailable);
  ExpectNothingInFlight();
}

TEST_F(RoutedEngineTest, AnAbortGoesToTheWorkerAndIsNotTriedAgain) {
  ASSERT_TRUE(Submit(1).ok());
  const int at = At(1);
  engine_->Abort(1, 0);
  EXPECT_EQ(Fake(at).aborted, std::vector<StreamId>{1});
  Fake(at).End(1, FinishReason::kAbort);
  EXPECT_EQ(At(1), -1);
  ASSERT_EQ(sink_.deltas.size(), 1u);
  EXPECT_EQ(sink_.deltas[0].finish, FinishReason::kAbort);
  ExpectNothingInFlight();
}

TEST_F(RoutedEngineTest, WorkersMayLeaveWhileAllOfThemAreAsked) {
  // The list was freed under the loop that went through it.
  Fake(0).on_load = [this] { engine_->SetMembers({}); };
  EXPECT_EQ(engine_->rank_loads().size(), 3u);
  EXPECT_TRUE(engine_->rank_loads().empty());
}

TEST_F(RoutedEngineTest, WorkersMayLeaveWhileAllOfThemAreStopped) {
  int stopped = 0;
  for (int i = 0; i < 3; ++i) {
    Fake(i).on_stop = [this, &stopped] {
      ++stopped;
      engine_->SetMembers({});
    };
  }
  engine_->Stop();
  EXPECT_EQ(stopped, 3);
}

// A video that no decoder reads took the worker out of service, and the next, for requests of text too.
TEST_F(RoutedEngineTest, FailuresOfMediaSayNothingOfAWorker) {
  StreamId stream = 1;
  for (const StatusCode code : {StatusCode::kInternal, StatusCode::kUnavailable}) {
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(Submit(++stream).ok());
      while (At(stream) >= 0) {
        Fake(At(stream)).End(stream, FinishReason::kError, Error(code, "no", {}, kMediaFailed));
      }
    }
  }
  EXPECT_EQ(sink_.deltas.size(), 80u);
  for (const auto& worker : workers_) {
    EXPECT_EQ(worker->health(), Health::kHealthy);
    EXPECT_EQ(worker->breaker().state(), Breaker::State::kClosed);
  }
  EXPECT_TRUE(engine_->Ready().ok());
}

TEST_F(RoutedEngineTest, MediaAreLetGoOfWhenTheAnswerBegins) {
  auto extras = std::make_shared<const RequestExtras>();
  const std::weak_ptr<const RequestExtras> kept = extras;
  GenerateRequest request;
  request.stream = 1;
  request.prompt = std::make_shared<const std::vector<TokenId>>(100, 1);
  request.sampling = std::make_shared<const SamplingParams>();
  request.extras = std::move(extras);
  ASSERT_TRUE(engine_->Submit(std::move(request), &sink_).ok());
  EXPECT_FALSE(kept.expired());  // another worker may be asked
  Fake(At(1)).Send(1, 7);
  EXPECT_TRUE(kept.expired());
  Fake(At(1)).End(1, FinishReason::kStop);
}

}  // namespace
}  // namespace portico::router
