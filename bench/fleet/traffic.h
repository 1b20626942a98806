// What the simulated fleet (simulate.cc) is asked for: jobs that arrive in simulated time, drawn from a seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "router/index/block_hash.h"

namespace portico::router {

struct Job {
  std::vector<TokenId> prompt;
  int64_t output = 100;
  int session = -1;      // multi-turn: who goes on afterwards
  bool follows = false;  // comes of Follow(), so it brings no Next()
  double arrival = 0;

  size_t worker = 0;
  int64_t prefill = 0;  // as its policy has estimated it
  std::vector<uint64_t> chain;
  int64_t cached = 0;
  int64_t computed = 0;  // of the prompt, cached included
  int64_t made = 0;
  double first = -1;
};

struct Traffic {
  std::string name;
  int64_t kv_cells = 0;  // of each worker
  // The next job after `now`, or null if none begins by itself.
  virtual std::unique_ptr<Job> Next(double now) = 0;
  // What follows a job that has ended, or null.
  virtual std::unique_ptr<Job> Follow(const Job&, double) { return nullptr; }
  virtual ~Traffic() = default;
};

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}
  double Exponential(double mean) {
    return std::exponential_distribution<double>(1 / mean)(random_);
  }
  int64_t Between(int64_t a, int64_t b) {
    return std::uniform_int_distribution<int64_t>(a, b)(random_);
  }
  double Unit() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double Normal() { return std::normal_distribution<double>(0, 1)(random_); }
  void Append(int64_t count, std::vector<TokenId>* to) {
    for (int64_t i = 0; i < count; ++i) to->push_back(static_cast<TokenId>(random_() % 150000));
  }
  size_t Zipf(const std::vector<double>& cumulative) {
    const double at = Unit() * cumulative.back();
    return static_cast<size_t>(std::lower_bound(cumulative.begin(), cumulative.end(), at) -
                               cumulative.begin());
  }

 private:
  std::mt19937_64 random_;
};

// Prompts that begin with one of several long texts; `skew` 0: all alike popular.
class Prefixes : public Traffic {
 public:
  Prefixes(std::string called, int count, double skew, double rate, uint64_t seed)
      : draws_(seed), rate_(rate) {
    name = std::move(called);
    kv_cells = 60000;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      draws_.Append(draws_.Between(1500, 3500), &prefixes_.emplace_back());
      cumulative_.push_back(sum += 1 / std::pow(i + 1, skew));
    }
  }
  std::unique_ptr<Job> Next(double now) override {
    auto job = std::make_unique<Job>();
    job->arrival = now + draws_.Exponential(1 / rate_);
    job->prompt = prefixes_[draws_.Zipf(cumulative_)];
    draws_.Append(draws_.Between(100, 500), &job->prompt);
    job->output = draws_.Between(60, 240);
    return job;
  }

 private:
  Draws draws_;
  const double rate_;
  std::vector<std::vector<TokenId>> prefixes_;
  std::vector<double> cumulative_;
};

// Conversations of six turns; each turn says again all that was said before, and all begin with the same `system` tokens. The
// workers' cells hold half of what the open conversations have at their ends.
class Turns : public Traffic {
 public:
  Turns(std::string called, int system, double rate, double open, size_t workers, uint64_t seed)
      : draws_(seed), rate_(rate) {
    name = std::move(called);
    draws_.Append(system, &system_);
    const double at_end = system + 6 * (450 + 150);
    kv_cells = static_cast<int64_t>(open * at_end / 2 / static_cast<double>(workers));
    // A conversation stays open for six pauses, so that `open` of them are.
    pause_ = open / rate_ * 6 / 6;
  }
  std::unique_ptr<Job> Next(double now) override {
    auto job = std::make_unique<Job>();
    job->arrival = now + draws_.Exponential(6 / rate_);
    job->session = static_cast<int>(turns_.size());
    turns_.push_back(1);
    job->prompt = system_;
    Say(*job);
    return job;
  }
  std::unique_ptr<Job> Follow(const Job& before, double now) override {
    if (turns_[static_cast<size_t>(before.session)]++ == 6) return nullptr;
    auto job = std::make_unique<Job>();
    job->session = before.session;
    job->follows = true;
    job->arrival = now + draws_.Exponential(pause_);
    job->prompt = before.prompt;
    draws_.Append(before.output, &job->prompt);
    Say(*job);
    return job;
  }

 private:
  void Say(Job& job) {
    draws_.Append(draws_.Between(200, 700), &job.prompt);
    job.output = draws_.Between(80, 220);
  }
  Draws draws_;
  const double rate_;
  double pause_ = 0;
  std::vector<TokenId> system_;
  std::vector<int> turns_;
};

// Nothing is shared; lengths are log-normal.
class Alone : public Traffic {
 public:
  Alone(double rate, uint64_t seed) : draws_(seed), rate_(rate) {
    name = "random";
    kv_cells = 60000;
  }
  std::unique_ptr<Job> Next(double now) override {
    auto job = std::make_unique<Job>();
    job->arrival = now + draws_.Exponential(1 / rate_);
    const double length = std::exp(std::log(600.0) + 0.9 * draws_.Normal());
    draws_.Append(std::clamp<int64_t>(static_cast<int64_t>(length), 20, 12000), &job->prompt);
    job->output = draws_.Between(60, 240);
    return job;
  }

 private:
  Draws draws_;
  const double rate_;
};

}  // namespace portico::router
