// A subscription before a server that leaves batches out, starts anew and breaks off.
#include "engine/grpc/kv_subscription.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "net/grpc/grpc_test_client.h"
#include "net/grpc/grpc_test_server.h"
#include "smg/grpc/common/common.pb.h"

namespace portico {
namespace {

namespace common = ::smg::grpc::common;
using testing::ElementsAre;

constexpr char kMethod[] = "/test.Worker/SubscribeKvEvents";

// What the server does with one call.
struct ScriptedCall {
  std::vector<uint64_t> numbers = {};
  std::optional<Status> end = {};  // none: it goes on without a word
  uint32_t chunks = 0;             // the first so many batches tell the state
};

class ScriptedWorker {
 public:
  explicit ScriptedWorker(std::vector<ScriptedCall> calls)
      : script_(std::move(calls)), server_(Methods()) {}
  ~ScriptedWorker() {
    server_->OnShard([this] { open_.clear(); });
  }

  int port() const { return server_.port(); }
  // The numbers from which on batches were asked for.
  std::vector<uint64_t> asked() {
    const MutexLock lock(&mutex_);
    return asked_;
  }

 private:
  net::GrpcMethods Methods() {
    net::GrpcMethods methods;
    methods.Add(kMethod, [this](std::unique_ptr<net::GrpcCall> call, std::string message) {
      Answer(std::move(call), message);
    });
    return methods;
  }
  void Answer(std::unique_ptr<net::GrpcCall> call, const std::string& message) {
    common::SubscribeKvEventsRequest request;
    EXPECT_TRUE(request.ParseFromString(message));
    ScriptedCall script;
    {
      const MutexLock lock(&mutex_);
      if (asked_.size() < script_.size()) script = script_[asked_.size()];
      asked_.push_back(request.start_sequence_number());
    }
    call->SendInitialMetadata();
    uint32_t at = 0;
    for (const uint64_t number : script.numbers) {
      common::KvEventBatch batch;
      batch.set_sequence_number(number);
      batch.add_events()->mutable_removed()->add_block_hashes(static_cast<int64_t>(number));
      if (at < script.chunks) {
        batch.mutable_snapshot()->set_index(at);
        batch.mutable_snapshot()->set_count(script.chunks);
      }
      ++at;
      call->Write(batch.SerializeAsString());
    }
    if (script.end) return call->Finish(*script.end);
    open_.push_back(std::move(call));
  }

  const std::vector<ScriptedCall> script_;
  Mutex mutex_;
  std::vector<uint64_t> asked_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<net::GrpcCall>> open_;  // on the server's shard
  net::GrpcTestServer server_;
};

// Follows the worker and writes down what it is told: "reset", and the numbers of batches.
class Follower {
 public:
  explicit Follower(ScriptedWorker& worker) : loop_(ToWorker(worker)) {
    loop_.On([this] {
      subscription_ = std::make_unique<KvSubscription>(
          loop_.shard(), loop_.channel(), net::GrpcCallOptions{.path = kMethod},
          [this](const KvEventBatch* batch, bool reset) {
            if (reset) told_.emplace_back("reset");
            if (batch != nullptr && batch->sequence > 0) {
              told_.push_back(std::to_string(batch->sequence));
            }
            return std::exchange(wish_, KvWish::kMore);
          });
    });
  }
  ~Follower() {
    loop_.On([this] { subscription_.reset(); });
  }

  std::vector<std::string> WaitFor(const std::string& last) {
    loop_.WaitFor([&] { return !told_.empty() && told_.back() == last; });
    std::vector<std::string> told;
    loop_.On([&] { told = told_; });
    return told;
  }
  void WishWithNext(KvWish wish) {
    loop_.On([this, wish] { wish_ = wish; });
  }

 private:
  static net::GrpcChannelOptions ToWorker(ScriptedWorker& worker) {
    net::GrpcChannelOptions options = net::ToPort(worker.port());
    options.backoff = net::ShortBackoff();
    return options;
  }

  KvWish wish_ = KvWish::kMore;
  std::vector<std::string> told_;
  net::ClientLoop loop_;
  std::unique_ptr<KvSubscription> subscription_;
};

TEST(KvSubscriptionTest, BatchesThatAreMissingAreAskedForAndNothingIsForgotten) {
  ScriptedWorker worker({{.numbers = {1, 2, 5}}, {.numbers = {3, 4, 5, 6}}});
  Follower follower(worker);
  EXPECT_THAT(follower.WaitFor("6"), ElementsAre("reset", "1", "2", "3", "4", "5", "6"));
  EXPECT_THAT(worker.asked(), ElementsAre(0, 3));
}

TEST(KvSubscriptionTest, WhatIsMissingForGoodBringsTheStateAnew) {
  ScriptedWorker worker({{.numbers = {1, 2, 9}},
                         {.end = Error(StatusCode::kOutOfRange, "3 is gone")},
                         {.numbers = {9, 10}, .chunks = 1}});
  Follower follower(worker);
  EXPECT_THAT(follower.WaitFor("10"), ElementsAre("reset", "1", "2", "reset", "reset", "9", "10"));
  EXPECT_THAT(worker.asked(), ElementsAre(0, 3, 0));
}

TEST(KvSubscriptionTest, AnAnswerThatDoesNotBeginWithWhatIsMissingBringsTheStateAnew) {
  ScriptedWorker worker({{.numbers = {1, 4}}, {.numbers = {3}}, {.numbers = {4, 5}}});
  Follower follower(worker);
  EXPECT_THAT(follower.WaitFor("5"), ElementsAre("reset", "1", "reset", "4", "5"));
  EXPECT_THAT(worker.asked(), ElementsAre(0, 2, 0));
}

TEST(KvSubscriptionTest, AWorkerThatCountsFromTheBeginningHasRestarted) {
  ScriptedWorker worker({{.numbers = {7, 8, 1}}, {.numbers = {1, 2}}});
  Follower follower(worker);
  EXPECT_THAT(follower.WaitFor("2"), ElementsAre("reset", "7", "8", "reset", "1", "2"));
  EXPECT_THAT(worker.asked(), ElementsAre(0, 0));
}

TEST(KvSubscriptionTest, ACallThatEndsIsBegunAgainWithTheState) {
  ScriptedWorker worker({{.numbers = {1, 2}, .end = Error(StatusCode::kUnavailable, "lost")},
                         {.numbers = {1, 2, 3}}});
  Follower follower(worker);
  EXPECT_THAT(follower.WaitFor("3"), ElementsAre("reset", "1", "2", "reset", "1", "2", "3"));
  EXPECT_THAT(worker.asked(), ElementsAre(0, 0));
}

TEST(KvSubscriptionTest, AListenerThatDoesNotUnderstandGetsTheStateAnew) {
  ScriptedWorker worker({{.numbers = {1}}, {.numbers = {1, 2}}});
  Follower follower(worker);
  follower.WaitFor("1");
  follower.WishWithNext(KvWish::kState);
  EXPECT_THAT(follower.WaitFor("2"), ElementsAre("reset", "1", "reset", "1", "2"));
}

}  // namespace
}  // namespace portico
