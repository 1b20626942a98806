#include "router/proxy/local_call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "net/loop/run_on_shard_for_test.h"

namespace portico::router {
namespace {

// Writes down what it is told.
class Told final : public net::HttpCallEvents {
 public:
  std::string log;
  std::unique_ptr<net::HttpCall> call;
  bool drop_at_head = false;

 private:
  void OnHead(net::ResponseHead& head) override {
    log += "head " + std::to_string(head.status) + " " + std::string(head.Header("content-type")) +
           " " + std::to_string(head.length) + "; ";
    if (drop_at_head) call.reset();
  }
  void OnStreamFailure(net::HttpResponse& instead) override {
    log += "failure " + std::to_string(instead.status) + " " + instead.body + "; ";
  }
  void OnBody(std::string_view bytes) override { log += "body " + std::string(bytes) + "; "; }
  void OnDone() override { log += "done; "; }
  void OnFailed(net::CallFailure, const std::string&) override { log += "failed; "; }
};

net::HttpResponse Answer(int status, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

class LocalCallTest : public testing::Test {
 protected:
  LocalCallTest() : shard_(0) { shard_.Start(); }

  // One turn of the loop, with what is done at its end.
  void Turn(const std::function<void()>& task) {
    net::RunOnShard(shard_, task);
    net::RunOnShard(shard_, [] {});
  }
  // What comes in a turn that the shard begins by itself.
  template <typename Condition>
  void WaitUntil(Condition met) {
    const TimePoint end = Clock::now() + std::chrono::seconds(60);
    bool is_met = false;
    while (!is_met && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Turn([&] { is_met = met(); });
    }
    EXPECT_TRUE(is_met);
  }
  void Begin(size_t max_unsent = 1 << 20) {
    LocalCall made = MakeLocalCall(shard_, {}, told_, max_unsent);
    told_.call = std::move(made.call);
    exchange_ = std::move(made.exchange);
    exchange_->set_on_closed([this] {
      told_.log += "left; ";
      exchange_.reset();
    });
  }

  Told told_;
  std::unique_ptr<net::Exchange> exchange_;
  net::Shard shard_;  // ends first
};

TEST_F(LocalCallTest, AWholeAnswerComesAfterTheHandlersTurn) {
  Turn([&] {
    Begin();
    exchange_->Respond(Answer(201, "yes"));
    EXPECT_EQ(told_.log, "");
    exchange_.reset();
  });
  EXPECT_EQ(told_.log, "head 201 application/json 3; body yes; done; ");
}

TEST_F(LocalCallTest, WhatOneTurnWritesComesInOnePiece) {
  Turn([&] {
    Begin();
    net::HttpResponse head;
    head.content_type = "text/event-stream";
    exchange_->StartStream(std::move(head));
    exchange_->Write("a");
    exchange_->Write("b");
  });
  Turn([&] {
    exchange_->Write("c");
    exchange_->End();
  });
  EXPECT_EQ(told_.log, "head 200 text/event-stream -1; body ab; body c; done; ");
  Turn([&] { exchange_.reset(); });
}

TEST_F(LocalCallTest, AFailureOfAStreamIsToldBeforeTheEventsThatSayIt) {
  Turn([&] {
    Begin();
    exchange_->StartStream({});
  });
  Turn([&] {
    exchange_->NoteFailure(Answer(503, "lost"));
    exchange_->Write("error");
    exchange_->End();
    exchange_->NoteFailure(Answer(500, "too late"));
  });
  EXPECT_EQ(told_.log, "head 200 application/json -1; failure 503 lost; body error; done; ");
  Turn([&] { exchange_.reset(); });
}

TEST_F(LocalCallTest, APausedCallIsToldTheRestWhenItGoesOn) {
  Turn([&] {
    Begin();
    exchange_->StartStream({});
    told_.call->Pause();
    exchange_->Write("abc");
    exchange_->End();
    EXPECT_EQ(exchange_->unsent_bytes(), 3U);
  });
  EXPECT_EQ(told_.log, "head 200 application/json -1; ");
  Turn([&] { told_.call->Resume(); });
  EXPECT_EQ(told_.log, "head 200 application/json -1; body abc; done; ");
  Turn([&] { exchange_.reset(); });
}

TEST_F(LocalCallTest, AHandlerThatWaitsForThePausedCallIsCalledOnceWhenItGoesOn) {
  int called = 0;
  Turn([&] {
    Begin();
    exchange_->StartStream({});
    told_.call->Pause();
    exchange_->Write("abc");
    exchange_->CallWhenBelow(1, [&] { ++called; });
  });
  EXPECT_EQ(called, 0);
  Turn([&] { told_.call->Resume(); });
  WaitUntil([&] { return called == 1; });
  Turn([&] {
    exchange_->Write("d");
    exchange_->End();
  });
  EXPECT_EQ(told_.log, "head 200 application/json -1; body abc; body d; done; ");
  EXPECT_EQ(called, 1);
  Turn([&] { exchange_.reset(); });
}

TEST_F(LocalCallTest, AHandlerThatWaitsIsNotCalledAfterItsEndOrThatOfTheCall) {
  int called = 0;
  Turn([&] {
    Begin();
    exchange_->StartStream({});
    exchange_->CallWhenBelow(1, [&] { ++called; });
    exchange_->End();
    exchange_->CallWhenBelow(1, [&] { ++called; });
  });
  Turn([&] { exchange_.reset(); });
  Turn([&] {
    Begin();
    exchange_->StartStream({});
    exchange_->CallWhenBelow(1, [&] { ++called; });
    told_.call.reset();
    exchange_->CallWhenBelow(1, [&] { ++called; });
  });
  Turn([&] { EXPECT_EQ(exchange_, nullptr); });
  int last = 0;
  Turn([&] {
    Begin();
    exchange_->StartStream({});
    exchange_->CallWhenBelow(1, [&] {
      exchange_.reset();
      ++last;
    });
  });
  WaitUntil([&] { return last == 1; });
  EXPECT_EQ(called, 0);
}

TEST_F(LocalCallTest, AHandlerThatGetsTooFarAheadIsCutOff) {
  Turn([&] {
    Begin(/*max_unsent=*/4);
    exchange_->StartStream({});
    told_.call->Pause();
    exchange_->Write("abcde");
  });
  EXPECT_EQ(told_.log, "head 200 application/json -1; failed; left; ");
}

TEST_F(LocalCallTest, AHandlerThatDropsItsExchangeFailsTheCallOrAnswers500) {
  Turn([&] {
    Begin();
    exchange_.reset();
  });
  EXPECT_TRUE(told_.log.starts_with("head 500 application/json")) << told_.log;
  told_.log.clear();
  Turn([&] {
    Begin();
    exchange_->StartStream({});
    exchange_.reset();
  });
  EXPECT_EQ(told_.log, "head 200 application/json -1; failed; ");
}

TEST_F(LocalCallTest, DroppingTheCallIsAClientThatLeaves) {
  Turn([&] {
    Begin();
    exchange_->StartStream({});
  });
  Turn([&] { told_.call.reset(); });
  EXPECT_EQ(told_.log, "head 200 application/json -1; left; ");
  EXPECT_EQ(exchange_, nullptr);
}

TEST_F(LocalCallTest, ACallMayBeDroppedWhenItIsToldTheHead) {
  told_.drop_at_head = true;
  Turn([&] {
    Begin();
    exchange_->Respond(Answer(503, "busy"));
  });
  EXPECT_EQ(told_.log, "head 503 application/json 4; ");
  Turn([&] { exchange_.reset(); });
}

}  // namespace
}  // namespace portico::router
