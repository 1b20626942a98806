#include "api/planning.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "api/control_call.h"
#include "net/loop/run_on_shard_for_test.h"
#include "router/proxy/local_call.h"

namespace portico::api {
namespace {

struct FakeTransport {
  void set_on_closed(absl::AnyInvocable<void()> closed) { on_closed = std::move(closed); }
  net::BodyLease& lease() { return body; }
  absl::AnyInvocable<void()> on_closed;
  net::BodyLease body;
};

class FakeCall final : public Call {
 public:
  FakeCall(std::string name, int* aborts) : aborts_(aborts) { rid = std::move(name); }
  void Abort() override { ++*aborts_; }

 private:
  int* aborts_;
};

// A shard and a pool; a request is planned until the test lets it be.
class PlanningTest : public testing::Test {
 protected:
  PlanningTest() {
    api_.pool = &pool_;
    shard_.Start();
  }
  ~PlanningTest() override {
    OnShard([&] { context_.calls.Clear(); });
    shard_.Stop();
  }

  void OnShard(const std::function<void()>& task) { net::RunOnShard(shard_, task); }

  // The answer is a call that bears `rid`.
  void Begin(const std::string& rid) {
    auto prepare = [this](const std::string& body) {
      planned_.get_future().wait();
      return body;
    };
    auto answer = [this](std::unique_ptr<FakeTransport>, ShardContext& shard, std::string name) {
      shard.calls.Add(std::make_unique<FakeCall>(std::move(name), &aborts_));
      answered_.set_value();
    };
    OnShard([&] {
      auto transport = std::make_unique<FakeTransport>();
      transport_ = transport.get();
      std::string body = rid;
      ASSERT_TRUE(PlanOnPool(transport, body, context_, prepare, answer));
    });
  }
  void Finish() {
    planned_.set_value();
    answered_.get_future().wait();
    OnShard([] {});  // the turn of the answer is over
  }

  ApiContext api_;
  CpuPool pool_{1, 10};
  net::Shard shard_{0};
  ShardContext context_{shard_, api_};
  FakeTransport* transport_ = nullptr;
  std::promise<void> planned_;
  std::promise<void> answered_;
  int aborts_ = 0;
};

// It had no effect: the rid was not known before the plan was there.
TEST_F(PlanningTest, AnAbortByRidHoldsForACallThatIsStillPlanned) {
  Begin("mine");
  OnShard([&] { context_.calls.Abort("other", false); });
  OnShard([&] { context_.calls.Abort("mine", false); });
  Finish();
  OnShard([&] { EXPECT_EQ(aborts_, 1); });
}

TEST_F(PlanningTest, AnAbortOfAllHoldsForACallThatIsStillPlanned) {
  Begin("mine");
  OnShard([&] { context_.calls.Abort("", true); });
  Finish();
  OnShard([&] { EXPECT_EQ(aborts_, 1); });
}

TEST_F(PlanningTest, AnAbortOfAnotherRidIsAboutOthers) {
  Begin("mine");
  int others = 0;
  OnShard([&] { context_.calls.Add(std::make_unique<FakeCall>("other", &others)); });
  OnShard([&] { context_.calls.Abort("other", false); });
  Finish();
  OnShard([&] {
    EXPECT_EQ(aborts_, 0);
    EXPECT_EQ(others, 1);
  });
}

TEST_F(PlanningTest, AClientThatLeavesTakesItsPlanAlong) {
  Begin("mine");
  OnShard([&] { transport_->on_closed(); });
  planned_.set_value();
  // The pool has one thread: its next task comes after the plan's.
  std::promise<void> later;
  ASSERT_TRUE(pool_.Submit([&] { later.set_value(); }));
  later.get_future().wait();
  OnShard([&] { EXPECT_EQ(context_.calls.size(), 0u); });
}

// It ended the process.
TEST_F(PlanningTest, APlanForWhichMemoryLacksIsAnError) {
  std::promise<Status> told;
  auto prepare = [](const std::string&) -> StatusOr<int> { throw std::bad_alloc(); };
  auto answer = [&told](std::unique_ptr<FakeTransport>, ShardContext&, StatusOr<int> planned) {
    told.set_value(planned.status());
  };
  OnShard([&] {
    auto transport = std::make_unique<FakeTransport>();
    std::string body = "x";
    ASSERT_TRUE(PlanOnPool(transport, body, context_, prepare, answer));
  });
  EXPECT_EQ(told.get_future().get().code(), StatusCode::kUnavailable);
}

TEST_F(PlanningTest, AnAnswerForWhichMemoryLacksEndsItsRequestAlone) {
  bool gone = false;
  struct Noting {
    explicit Noting(bool* to) : gone(to) {}
    ~Noting() { *gone = net::IsOutOfMemory(); }
    bool* gone;
  };
  std::promise<void> begun;
  auto prepare = [](const std::string&) { return 1; };
  auto answer = [&](std::unique_ptr<FakeTransport>, ShardContext&, int) {
    const Noting noting(&gone);
    begun.set_value();
    throw std::bad_alloc();
  };
  OnShard([&] {
    auto transport = std::make_unique<FakeTransport>();
    std::string body = "x";
    ASSERT_TRUE(PlanOnPool(transport, body, context_, prepare, answer));
  });
  begun.get_future().wait();
  OnShard([&] { EXPECT_EQ(context_.calls.size(), 0u); });
  EXPECT_TRUE(gone);
}

TEST_F(PlanningTest, APlanEndsBeforeItsNextStepWhenItsClientHasLeft) {
  std::promise<void> begun;
  std::vector<Status> steps;
  auto prepare = [&](const std::string&, StepGate& gate) {
    steps.push_back(gate.Pass(size_t{1} << 40));
    begun.set_value();
    planned_.get_future().wait();
    steps.push_back(gate.Pass(1));
    return 1;
  };
  auto answer = [](std::unique_ptr<FakeTransport>, ShardContext&, int) {};
  OnShard([&] {
    auto transport = std::make_unique<FakeTransport>();
    transport_ = transport.get();
    std::string body = "x";
    ASSERT_TRUE(PlanOnPool(transport, body, context_, prepare, answer));
  });
  begun.get_future().wait();
  OnShard([&] { transport_->on_closed(); });
  OnShard([&] { EXPECT_EQ(context_.calls.size(), 0u); });  // the call is gone after the turn
  planned_.set_value();
  std::promise<void> later;
  ASSERT_TRUE(pool_.Submit([&] { later.set_value(); }));
  later.get_future().wait();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(steps[0].ok());
  EXPECT_EQ(steps[1].code(), StatusCode::kCancelled);
}

// Its body is the work that it makes.
struct WorkApi {
  using Planned = bool;  // with helpers: on the pool
  static StatusOr<bool> Prepare(const std::string& body, simdjson::dom::parser&,
                                const PlanContext& context) {
    PORTICO_RETURN_IF_ERROR(PassGate(context.gate, std::stoul(body)));
    return context.helpers != nullptr;
  }
  static void Answer(std::unique_ptr<net::Exchange> exchange, ShardContext&, bool on_pool) {
    net::HttpResponse response;
    response.body = on_pool ? "pool" : "shard";
    exchange->Respond(std::move(response));
  }
};

class WorkAnswer final : public net::HttpCallEvents {
 public:
  std::future<std::string> body() { return told_.get_future(); }

 private:
  void OnHead(net::ResponseHead&) override {}
  void OnBody(std::string_view bytes) override { body_ += bytes; }
  void OnDone() override { told_.set_value(body_); }
  void OnFailed(net::CallFailure, const std::string& why) override { told_.set_value(why); }
  std::string body_;
  std::promise<std::string> told_;
};

TEST_F(PlanningTest, APlanThatTurnsOutToBeLongIsMadeOnThePool) {
  for (const auto& [work, place] : {std::pair(kShardWork, "shard"), {kShardWork + 1, "pool"}}) {
    WorkAnswer answer;
    router::LocalCall call;
    OnShard([&, bytes = work] {
      net::HttpRequest request;
      request.body = std::to_string(bytes);
      call = router::MakeLocalCall(shard_, std::move(request), answer, 1 << 20);
      HandlePlanned<WorkApi>(std::move(call.exchange), context_);
    });
    EXPECT_EQ(answer.body().get(), place) << work;
    OnShard([&] { call = {}; });
  }
}

// Long bodies of clients that had left were planned, one after the other, and counted nowhere meanwhile.
TEST_F(PlanningTest, ARequestWhoseClientLeavesBeforeItsTurnIsNotPlannedAndCountsUntilThen) {
  std::promise<void> go;
  ASSERT_TRUE(pool_.Submit([&] { go.get_future().wait(); }));
  const auto budget = std::make_shared<net::BodyBudget>(1 << 20);
  int planned = 0;
  auto prepare = [&planned](const std::string&) { return ++planned; };
  auto answer = [](std::unique_ptr<FakeTransport>, ShardContext&, int) {};
  OnShard([&] {
    auto transport = std::make_unique<FakeTransport>();
    transport_ = transport.get();
    std::string body(100000, 'x');
    ASSERT_TRUE(transport->body.Hold(budget, body.size()));
    ASSERT_TRUE(PlanOnPool(transport, body, context_, prepare, answer));
    transport_->on_closed();
  });
  OnShard([&] { EXPECT_EQ(context_.calls.size(), 0u); });
  EXPECT_EQ(budget->taken(), 100000u);
  go.set_value();
  std::promise<void> later;
  ASSERT_TRUE(pool_.Submit([&] { later.set_value(); }));
  later.get_future().wait();
  EXPECT_EQ(planned, 0);
  EXPECT_EQ(budget->taken(), 0u);
}

// Tensors of weights were counted only until they had been read: their text then waited for an engine, as long as it took,
// beside any number of others.
TEST_F(PlanningTest, AControlCallTakesItsShareOfTheBudgetUntilItsWorkEnds) {
  const auto budget = std::make_shared<net::BodyBudget>(1 << 20);
  std::promise<ControlDone> begun;
  auto prepare = [](const std::string& body) { return body.size(); };
  auto answer = [&begun](std::unique_ptr<FakeTransport> transport, ShardContext& shard, size_t) {
    begun.set_value(AnswerWhenDone(std::move(transport), shard,
                                   [](std::unique_ptr<FakeTransport>, ShardContext&, Status) {}));
  };
  OnShard([&] {
    auto transport = std::make_unique<FakeTransport>();
    transport_ = transport.get();
    std::string body(100000, 'x');
    ASSERT_TRUE(transport->body.Hold(budget, body.size()));
    ASSERT_TRUE(PlanOnPool(transport, body, context_, prepare, answer, LeaseEnds::kTaken));
  });
  ControlDone done = begun.get_future().get();
  EXPECT_EQ(budget->taken(), 100000u);
  // A client that leaves does not stop the engine.
  OnShard([&] { transport_->on_closed(); });
  OnShard([&] { EXPECT_EQ(context_.calls.size(), 0u); });
  EXPECT_EQ(budget->taken(), 100000u);
  done(OkStatus());
  EXPECT_EQ(budget->taken(), 0u);
}

}  // namespace
}  // namespace portico::api
