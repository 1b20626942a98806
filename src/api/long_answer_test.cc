#include "api/long_answer.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "net/loop/run_on_shard_for_test.h"

namespace portico::api {
namespace {

class BodyCall final : public Call {
 public:
  explicit BodyCall(std::string* body) : body_(body) {}
  void Abort() override {}
  void SendBody(std::string body) { *body_ = std::move(body); }

 private:
  std::string* body_;
};

class LongAnswerTest : public testing::Test {
 protected:
  LongAnswerTest() {
    api_.pool = &pool_;
    shard_.Start();
  }
  ~LongAnswerTest() override {
    OnShard([&] { context_.calls.Clear(); });
    shard_.Stop();
  }

  void OnShard(const std::function<void()>& task) { net::RunOnShard(shard_, task); }

  // The call's bytes are made once `let_go_` is set. False: the pool was full.
  bool Begin() {
    bool begun = false;
    OnShard([&] {
      auto call = std::make_unique<BodyCall>(&body_);
      call_ = call.get();
      context_.calls.Add(std::move(call));
      begun = EncodeOnPool(*call_, context_, [held = let_go_.get_future().share()] {
        held.wait();
        return std::string("the body");
      });
    });
    return begun;
  }
  // Until the pool has done what it had, and the shard what came of it.
  void Settle() {
    let_go_.set_value();
    std::promise<void> last;
    ASSERT_TRUE(pool_.Submit([&] { last.set_value(); }));
    last.get_future().wait();
    OnShard([] {});
  }

  ApiContext api_;
  CpuPool pool_{1, 2};
  net::Shard shard_{0};
  ShardContext context_{shard_, api_};
  std::promise<void> let_go_;
  BodyCall* call_ = nullptr;
  std::string body_;
};

TEST_F(LongAnswerTest, ACallGetsTheBytesThatThePoolHasMade) {
  ASSERT_TRUE(Begin());
  OnShard([&] { EXPECT_EQ(body_, ""); });
  Settle();
  EXPECT_EQ(body_, "the body");
}

TEST_F(LongAnswerTest, ACallThatHasLeftMeanwhileGetsNothing) {
  ASSERT_TRUE(Begin());
  OnShard([&] { context_.calls.Remove(call_); });
  Settle();
  EXPECT_EQ(body_, "");
  OnShard([&] { EXPECT_EQ(context_.calls.size(), 0u); });
}

TEST_F(LongAnswerTest, AFullPoolIsToldToTheCaller) {
  std::promise<void> running;
  std::promise<void> held;
  ASSERT_TRUE(pool_.Submit([&running, goes_on = held.get_future()] {
    running.set_value();
    goes_on.wait();
  }));
  running.get_future().wait();
  while (pool_.Submit([] {})) {
  }
  EXPECT_FALSE(Begin());
  held.set_value();
}

}  // namespace
}  // namespace portico::api
