// How loaded a worker is, as several policies measure it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "router/policy/dice.h"
#include "router/worker.h"

namespace portico::router {

// A report older than this says nothing of now.
inline constexpr Duration kReportAge = std::chrono::seconds(30);

// Our own requests in flight. Where the worker has reported more than that, others use it too.
int64_t RequestsOn(const Worker& worker);

// The least by RequestsOn(), one of several at random.
size_t LeastLoaded(std::span<Worker* const> candidates, Dice& dice);

// The queue's seconds: tokens waiting for prefill over the throughput, and KV pressure.
struct WaitModel {
  double kv_pressure_weight = 0.15;  // seconds
  double default_throughput = 2000;  // tokens a second
  double mean_prefill_tokens = 1024;
};
// `known`: a report is there; without one it is what this gateway has sent alone.
double ExpectedWait(const Worker& worker, const WaitModel& model, bool* known);

// Stable over restarts and the same on every gateway: of the worker's URL and DP rank.
uint64_t WorkerKey(const Worker& worker);
// A worker's weight for a key (rendezvous hashing): the greatest wins, so that a worker that comes
// or goes moves no keys but its own.
uint64_t RendezvousWeight(uint64_t key, uint64_t worker_key);
// The winner.
size_t RendezvousChoice(std::span<Worker* const> candidates, uint64_t key);

}  // namespace portico::router
