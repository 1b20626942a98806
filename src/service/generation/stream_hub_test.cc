#include "service/generation/stream_hub.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

#include "net/loop/run_on_shard_for_test.h"

namespace portico {
namespace {

class Recorder : public StreamReceiver {
 public:
  void OnTokens(TokenDelta& delta, TimePoint) override {
    for (TokenId id : delta.tokens) tokens.push_back(id);
    finished = finished || delta.finish != FinishReason::kNone;
  }
  std::vector<TokenId> tokens;
  bool finished = false;
};

TokenDelta Delta(StreamId stream, TokenId token, FinishReason finish = FinishReason::kNone) {
  TokenDelta delta;
  delta.stream = stream;
  delta.tokens.push_back(token);
  delta.finish = finish;
  return delta;
}

class StreamHubTest : public testing::Test {
 protected:
  StreamHubTest() : shard_(0), hub_(shard_) { shard_.Start(); }
  ~StreamHubTest() override {
    hub_.Close();
    shard_.Stop();
  }

  void OnShard(const std::function<void()>& task) { net::RunOnShard(shard_, task); }

  net::Shard shard_;
  StreamHub hub_;
};

TEST_F(StreamHubTest, HandsEachStreamItsTokensInOrder) {
  Recorder a, b;
  OnShard([&] {
    hub_.Add(1, &a);
    hub_.Add(2, &b);
  });
  for (TokenId i = 0; i < 100; ++i) {
    std::vector<TokenDelta> batch;
    batch.push_back(Delta(1, i));
    batch.push_back(Delta(2, 1000 + i));
    hub_.Deliver(std::move(batch));
  }
  OnShard([] {});
  OnShard([&] {
    ASSERT_EQ(a.tokens.size(), 100u);
    ASSERT_EQ(b.tokens.size(), 100u);
    for (TokenId i = 0; i < 100; ++i) EXPECT_EQ(a.tokens[i], i);
    EXPECT_EQ(b.tokens.back(), 1099);
  });
}

TEST_F(StreamHubTest, DropsWhatComesForAStreamThatHasLeft) {
  Recorder a;
  OnShard([&] {
    hub_.Add(1, &a);
    hub_.Remove(1);
  });
  std::vector<TokenDelta> batch;
  batch.push_back(Delta(1, 5, FinishReason::kStop));
  hub_.Deliver(std::move(batch));
  OnShard([] {});
  OnShard([&] { EXPECT_TRUE(a.tokens.empty()); });
}

TEST_F(StreamHubTest, AReceiverMayRemoveItselfAndOthersWhileABatchIsHandedOut) {
  Recorder victim;
  class Remover : public Recorder {
   public:
    explicit Remover(StreamHub& hub) : hub_(hub) {}
    void OnTokens(TokenDelta&, TimePoint) override {
      hub_.Remove(1);
      hub_.Remove(2);
    }
    StreamHub& hub_;
  } remover(hub_);
  OnShard([&] {
    hub_.Add(1, &remover);
    hub_.Add(2, &victim);
  });
  std::vector<TokenDelta> batch;
  batch.push_back(Delta(1, 1));
  batch.push_back(Delta(2, 2));
  hub_.Deliver(std::move(batch));
  OnShard([] {});
  OnShard([&] {
    EXPECT_TRUE(victim.tokens.empty());
    EXPECT_EQ(hub_.streams(), 0u);
  });
}

TEST_F(StreamHubTest, DeliveriesFromManyThreadsAllArrive) {
  constexpr int kThreads = 4, kEach = 2000;
  std::map<StreamId, Recorder> recorders;
  OnShard([&] {
    for (StreamId s = 1; s <= kThreads; ++s) hub_.Add(s, &recorders[s]);
  });
  std::vector<std::thread> threads;
  for (StreamId s = 1; s <= kThreads; ++s) {
    threads.emplace_back([this, s] {
      for (TokenId i = 0; i < kEach; ++i) {
        std::vector<TokenDelta> batch;
        batch.push_back(Delta(s, i));
        hub_.Deliver(std::move(batch));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  OnShard([] {});
  OnShard([&] {
    for (auto& [stream, recorder] : recorders) EXPECT_EQ(recorder.tokens.size(), size_t{kEach});
  });
}

TEST_F(StreamHubTest, DeliveringAfterCloseDropsTheBatch) {
  hub_.Close();
  std::vector<TokenDelta> batch;
  batch.push_back(Delta(1, 1));
  hub_.Deliver(std::move(batch));
}

}  // namespace
}  // namespace portico
