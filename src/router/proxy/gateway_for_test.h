// Test helper: a gateway in this process, on one shard, whose workers' answers are the test's.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/metrics.h"
#include "net/loop/run_on_shard_for_test.h"
#include "net/loop/shard.h"
#include "router/fleet/token_workers.h"
#include "router/gateway.h"

namespace portico::router {

// Workers that are only called.
class CalledWorkers : public TokenWorkers {
 public:
  void Probe(const WorkerPtr&, bool, Duration, ProbeDone) override {}
  void AskLoad(const WorkerPtr&, Duration, LoadDone) override {}
  void AskPaused(const WorkerPtr&, Duration, PausedDone) override {}
  void Keep(const WorkerSet&) override {}
};

class GatewayOnShard {
 public:
  explicit GatewayOnShard(GatewayOptions options) {
    auto made = Gateway::Make(std::move(options), registry_);
    EXPECT_TRUE(made.ok()) << made.status();
    gateway_ = *std::move(made);
    on_shard_ = std::make_unique<GatewayShard>(shard_, *gateway_);
    shard_.Start();
  }
  ~GatewayOnShard() {
    Run([this] { on_shard_.reset(); });
    shard_.Stop();
  }
  GatewayOnShard(const GatewayOnShard&) = delete;
  GatewayOnShard& operator=(const GatewayOnShard&) = delete;

  // On the shard, and waits.
  void Run(const std::function<void()>& task) { net::RunOnShard(shard_, task); }
  // Looks from here, after each turn of the shard.
  template <typename Condition>
  void WaitUntil(Condition met) {
    const TimePoint end = Clock::now() + std::chrono::seconds(60);
    while (!met() && Clock::now() < end) Run([] {});
    Run([] {});  // what met it is over
    EXPECT_TRUE(met());
  }
  WorkerPtr Add(const std::string& url) {
    auto spec = ParseWorkerUrl(url);
    EXPECT_TRUE(spec.ok()) << spec.status();
    auto added = gateway_->AddWorker(*std::move(spec));
    EXPECT_TRUE(added.ok()) << added.status();
    return *std::move(added);
  }

  net::Shard& shard() { return shard_; }
  Gateway& gateway() { return *gateway_; }
  GatewayShard& on_shard() { return *on_shard_; }

 private:
  Registry registry_;
  net::Shard shard_{0};
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<GatewayShard> on_shard_;
};

}  // namespace portico::router
