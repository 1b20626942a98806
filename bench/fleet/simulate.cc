// A fleet of workers and a gateway, simulated: no sockets and no waiting, so that all policies can be
// compared on the same traffic within seconds. The policies are the gateway's own (src/router/policy).
//
// A worker is what SGLang's scheduler is to a gateway: requests wait for KV cells, prompts are computed in
// chunks beside the tokens of all running sequences, and a cache of prefixes (blocks of 16 tokens, least
// recently used first, leaves first) fills the cells that running requests leave. One step takes
//   8 ms + 0.1 ms a prompt token that was not cached + 0.06 ms a running sequence,
// about an 8B model on one H100-like card. Reports of load come once a second.
//
//   fleet_simulate [--requests N] [--seed S] [--seeds N] [--policy NAME[,NAME…]] [--load X] [--workers N] [--uneven 1]
// prints one row for each policy and traffic: medians over --seeds seeds. --uneven: every other worker takes twice as long for
// a step and has half the KV cells.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "router/index/block_hash.h"
#include "router/index/prefix_index.h"
#include "router/policy/make_policy.h"
#include "traffic.h"

namespace portico::router {
namespace {

constexpr double kStepBase = 0.008;
constexpr double kPrefillToken = 0.0001;
constexpr double kDecodeSequence = 0.00006;
constexpr int64_t kChunk = 2048;
constexpr int64_t kMaxRunning = 256;

// The simulated time; it begins long after workers have become healthy.
double simulated_now = 0;
TimePoint SimulatedClock() {
  return TimePoint(std::chrono::hours(1000)) +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(simulated_now));
}

class SimulatedWorker {
 public:
  // `slowness`: how many times as long as others it takes for a step.
  SimulatedWorker(size_t index, int64_t cells, double slowness)
      : cells_(cells), slowness_(slowness), cache_(size_t{64} << 20) {
    WorkerSpec spec;
    spec.host = fmt::format("worker{}", index);
    spec.url = "grpc://" + spec.host;
    spec.protocol = Protocol::kGrpc;
    worker = std::make_unique<Worker>(spec);
    worker->SetHealth(Health::kHealthy);
    place_ = cache_.AddWorker(cells / kBlockTokens);
    Report();
  }

  void Take(Job* job) { waiting_.push_back(job); }
  bool idle() const { return waiting_.empty() && running_.empty(); }
  // Begins a step; its end.
  double Step(double now) {
    Admit();
    int64_t budget = kChunk;
    int64_t decoding = 0;
    for (Job* job : running_) {
      const auto prompt = static_cast<int64_t>(job->prompt.size());
      if (job->computed < prompt) {
        const int64_t part = std::min(budget, prompt - job->computed);
        job->computed += part;
        budget -= part;
      } else {
        ++decoding;
      }
    }
    return now + slowness_ * (kStepBase + static_cast<double>(kChunk - budget) * kPrefillToken +
                              static_cast<double>(decoding) * kDecodeSequence);
  }
  // The step is over: each sequence whose prompt is whole has another token.
  template <typename First, typename End>
  void Finish(double now, First on_first, End on_end) {
    std::vector<Job*> left;
    for (Job* job : running_) {
      if (job->computed < static_cast<int64_t>(job->prompt.size())) {
        left.push_back(job);
        continue;
      }
      if (job->first < 0) {
        job->first = now;
        cache_.Insert(place_, job->chain);
        on_first(job);
      }
      if (++job->made < job->output) {
        left.push_back(job);
        continue;
      }
      used_ -= Cells(*job);
      cache_.Insert(place_, job->chain);
      on_end(job);
    }
    running_ = std::move(left);
  }
  void Report() {
    ReportedLoad load;
    load.running_requests = static_cast<double>(running_.size());
    load.waiting_requests = static_cast<double>(waiting_.size());
    load.used_tokens = static_cast<double>(used_);
    load.total_tokens = static_cast<double>(cells_);
    load.token_usage = static_cast<double>(used_) / static_cast<double>(cells_);
    load.throughput = 1 / (kPrefillToken * slowness_);
    load.at = SimulatedClock();
    worker->SetReport(load);
  }

  std::unique_ptr<Worker> worker;
  bool stepping = false;
  int64_t served_tokens = 0;

 private:
  static int64_t Cells(const Job& job) {
    return static_cast<int64_t>(job.prompt.size()) - job.cached + job.output;
  }
  void Admit() {
    while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < kMaxRunning) {
      Job* job = waiting_.front();
      cache_.Match(job->chain, &depths_);
      // The last token is always computed.
      job->cached = std::min<int64_t>(int64_t{depths_[place_]} * kBlockTokens,
                                      static_cast<int64_t>(job->prompt.size()) - 1);
      if (used_ + Cells(*job) > cells_ && !running_.empty()) return;
      used_ += Cells(*job);
      // What running requests hold is no cache's.
      cache_.SetCapacity(place_, std::max<int64_t>(1, (cells_ - used_ / 2) / kBlockTokens));
      cache_.Insert(place_,
                    std::span(job->chain).first(static_cast<size_t>(job->cached / kBlockTokens)));
      job->computed = job->cached;
      served_tokens += static_cast<int64_t>(job->prompt.size()) - job->cached;
      running_.push_back(job);
      waiting_.pop_front();
    }
  }

  const int64_t cells_;
  const double slowness_;
  int64_t used_ = 0;
  PrefixIndex cache_;
  PrefixIndex::Place place_ = 0;
  std::vector<int32_t> depths_;
  std::deque<Job*> waiting_;
  std::vector<Job*> running_;
};

struct Options {
  int requests = 8000;
  uint64_t seed = 1;
  uint64_t seeds = 1;
  double load = 1;
  size_t workers = 8;
  bool uneven = false;
  std::string policies;  // a comma list; empty: all
};

struct Result {
  double hit_rate = 0, p50 = 0, p99 = 0, imbalance = 0, mean = 0;
};

Result Simulate(Traffic& traffic, Policy& policy, const Options& options) {
  const size_t workers = options.workers;
  const int requests = options.requests;
  std::vector<std::unique_ptr<SimulatedWorker>> fleet;
  std::vector<Worker*> candidates;
  for (size_t i = 0; i < workers; ++i) {
    const int parts = options.uneven && i % 2 == 1 ? 2 : 1;
    fleet.push_back(std::make_unique<SimulatedWorker>(i, traffic.kv_cells / parts, parts));
    candidates.push_back(fleet.back()->worker.get());
    policy.OnWorkerAdded(*candidates.back());
  }
  struct Event {
    double at;
    int kind;  // 0: a job arrives, 1: a step ends, 2: reports
    size_t which;
    bool operator<(const Event& other) const { return at > other.at; }
  };
  std::priority_queue<Event> events;
  std::vector<std::unique_ptr<Job>> jobs;
  auto add = [&](std::unique_ptr<Job> job) {
    if (job == nullptr || static_cast<int>(jobs.size()) >= requests) return;
    HashTokenBlocks(job->prompt, 1, &job->chain);
    events.push({job->arrival, 0, jobs.size()});
    jobs.push_back(std::move(job));
  };
  auto key_of = [](const Job& job) {
    RoutingKey key;
    key.tokens = job.prompt;
    key.prompt_tokens = static_cast<int64_t>(job.prompt.size());
    return key;
  };
  add(traffic.Next(0));
  events.push({1.0, 2, 0});
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  std::vector<double> waits;
  const size_t warm_up = static_cast<size_t>(requests) / 5;
  size_t ended = 0;
  while (!events.empty()) {
    const Event event = events.top();
    events.pop();
    simulated_now = event.at;
    if (event.kind == 2) {
      for (auto& worker : fleet) worker->Report();
      policy.OnTick(SimulatedClock());
      if (ended < jobs.size()) events.push({event.at + 1, 2, 0});
      continue;
    }
    size_t at = event.which;
    if (event.kind == 0) {
      Job& job = *jobs[event.which];
      const RoutingKey key = key_of(job);
      at = job.worker = policy.Choose(candidates, key).index;
      job.prefill = policy.OnStart(*candidates[at], key);
      candidates[at]->Start(job.prefill);
      fleet[at]->Take(&job);
      if (!job.follows) add(traffic.Next(event.at));
    } else {
      fleet[at]->stepping = false;
      fleet[at]->Finish(
          event.at,
          [&](Job* job) {
            candidates[at]->FinishPrefill(job->prefill);
            if (static_cast<size_t>(ended) >= warm_up) waits.push_back(job->first - job->arrival);
          },
          [&](Job* job) {
            candidates[at]->Finish();
            Outcome outcome;
            outcome.cached_tokens = job->cached;
            policy.OnFinish(*candidates[at], outcome);
            if (ended++ >= warm_up) {
              prompt_tokens += static_cast<int64_t>(job->prompt.size());
              cached_tokens += job->cached;
            }
            add(traffic.Follow(*job, event.at));
            job->prompt.clear();
            job->prompt.shrink_to_fit();
          });
    }
    if (!fleet[at]->stepping && !fleet[at]->idle()) {
      fleet[at]->stepping = true;
      events.push({fleet[at]->Step(event.at), 1, at});
    }
  }
  std::sort(waits.begin(), waits.end());
  auto percentile = [&](double p) {
    return waits[std::min(waits.size() - 1,
                          static_cast<size_t>(p * static_cast<double>(waits.size())))];
  };
  int64_t most = 0;
  int64_t all = 0;
  for (auto& worker : fleet) {
    most = std::max(most, worker->served_tokens);
    all += worker->served_tokens;
  }
  Result result;
  result.hit_rate = static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens);
  result.p50 = percentile(0.5);
  result.p99 = percentile(0.99);
  for (double wait : waits) result.mean += wait / static_cast<double>(waits.size());
  result.imbalance =
      static_cast<double>(most) * static_cast<double>(workers) / static_cast<double>(all);
  return result;
}

constexpr int kTraffics = 5;

std::unique_ptr<Traffic> MakeTraffic(int kind, const Options& options, uint64_t seed) {
  const auto workers = static_cast<double>(options.workers);
  const double rate = options.load * workers;
  switch (kind) {
    case 0:
      return std::make_unique<Prefixes>("shared-prefix", 64, 0, rate * 4.5, seed);
    case 1:
      return std::make_unique<Turns>("multi-turn", 400, rate * 4.5, 40 * workers, options.workers,
                                     seed);
    case 2:
      return std::make_unique<Turns>("no system", 0, rate * 4.5, 40 * workers, options.workers,
                                     seed);
    case 3:
      return std::make_unique<Prefixes>("skewed", 64, 1.4, rate * 4.5, seed);
    default:
      return std::make_unique<Alone>(rate * 6, seed);
  }
}

bool IsWanted(const Options& options, std::string_view policy) {
  return options.policies.empty() ||
         ("," + options.policies + ",").find(fmt::format(",{},", policy)) != std::string::npos;
}

void Print(int kind, std::string_view name, const Options& options) {
  std::string traffic_name;
  std::vector<Result> results;
  for (uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
    PolicyOptions of_policy;
    of_policy.seed = seed;
    of_policy.now = &SimulatedClock;
    simulated_now = 0;
    const auto policy = MakePolicy(name, of_policy);
    const auto traffic = MakeTraffic(kind, options, seed);
    results.push_back(Simulate(*traffic, **policy, options));
    traffic_name = traffic->name;
  }
  const auto median = [&](double Result::* figure) {
    std::vector<double> all;
    for (const Result& result : results) all.push_back(result.*figure);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  };
  fmt::print("{:<14} {:<20} {:>8.3f} {:>10.0f} {:>10.0f} {:>10.0f} {:>9.2f}\n", traffic_name, name,
             median(&Result::hit_rate), median(&Result::mean) * 1e3, median(&Result::p50) * 1e3,
             median(&Result::p99) * 1e3, median(&Result::imbalance));
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const char* value = argv[i + 1];
    if (flag == "--requests") options.requests = std::atoi(value);
    if (flag == "--seed") options.seed = static_cast<uint64_t>(std::atoll(value));
    if (flag == "--seeds") options.seeds = static_cast<uint64_t>(std::atoll(value));
    if (flag == "--load") options.load = std::atof(value);
    if (flag == "--workers") options.workers = static_cast<size_t>(std::atoi(value));
    if (flag == "--uneven") options.uneven = std::atoi(value) != 0;
    if (flag == "--policy") options.policies = value;
  }
  fmt::print("{:<14} {:<20} {:>8} {:>10} {:>10} {:>10} {:>9}\n", "traffic", "policy", "hit rate",
             "TTFT mean", "p50 ms", "p99 ms", "imbalance");
  for (int kind = 0; kind < kTraffics; ++kind) {
    for (const std::string_view name : PolicyNames()) {
      if (IsWanted(options, name)) Print(kind, name, options);
    }
  }
  return 0;
}

}  // namespace
}  // namespace portico::router

int main(int argc, char** argv) { return portico::router::Main(argc, argv); }
