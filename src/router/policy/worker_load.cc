#include "router/policy/worker_load.h"

#include <algorithm>

#include "router/index/block_hash.h"

namespace portico::router {

int64_t RequestsOn(const Worker& worker) { return worker.requests(); }

size_t LeastLoaded(std::span<Worker* const> candidates, Dice& dice) {
  size_t best = 0;
  int64_t least = 0;
  size_t ties = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const int64_t load = RequestsOn(*candidates[i]);
    if (i == 0 || load < least) {
      best = i;
      least = load;
      ties = 1;
    } else if (load == least && dice.Below(++ties) == 0) {
      best = i;
    }
  }
  return best;
}

double ExpectedWait(const Worker& worker, const WaitModel& model, bool* known) {
  const ReportedLoad report = worker.report();
  *known = report.at != TimePoint{} && Clock::now() - report.at < kReportAge;
  const auto sent = static_cast<double>(worker.tokens());
  if (!*known) return sent / model.default_throughput;
  const double throughput = report.throughput > 0 ? report.throughput : model.default_throughput;
  const double queued = std::max(0.0, report.waiting_requests) * model.mean_prefill_tokens;
  // What was sent since the report is in `sent`, what is queued is mostly in both.
  const double usage = std::clamp(report.token_usage, 0.0, 0.999);
  return std::max(queued, sent) / throughput + model.kv_pressure_weight * usage / (1 - usage);
}

uint64_t WorkerKey(const Worker& worker) {
  return ChainHash(HashText(worker.url()), static_cast<uint64_t>(worker.spec().dp_rank + 1));
}

uint64_t RendezvousWeight(uint64_t key, uint64_t worker_key) {
  return ChainHash(key, worker_key) * 0x9E3779B97F4A7C15ull;
}

size_t RendezvousChoice(std::span<Worker* const> candidates, uint64_t key) {
  size_t best = 0;
  uint64_t greatest = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const uint64_t weight = RendezvousWeight(key, WorkerKey(*candidates[i]));
    if (i == 0 || weight > greatest) {
      best = i;
      greatest = weight;
    }
  }
  return best;
}

}  // namespace portico::router
