// What policies are told. Names and defaults are the flags' of sglang-router 0.3.2, then smg's.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace portico::router {

struct PolicyOptions {
  // cache_aware
  double cache_threshold = 0.3;
  int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
  Duration eviction_interval = std::chrono::seconds(60);
  int64_t max_tree_size = 67108864;             // characters of a tree
  std::string cache_aware_miss = "least-load";  // least-load, smallest-tree

  // cost
  int64_t index_bytes = int64_t{256} << 20;  // of the prefix index
  Duration slow_start = std::chrono::seconds(10);

  // manual
  Duration max_idle = std::chrono::seconds(14400);
  std::string assignment_mode = "random";  // random, min_load, min_group

  // bucket
  Duration bucket_adjust_interval = std::chrono::seconds(5);

  // prefix_hash
  int64_t prefix_token_count = 256;  // tokens; without them four times as many characters
  double prefix_hash_load_factor = 1.25;
  int64_t prefix_hash_balance_abs_threshold = 10;

  // least_load
  double least_load_kv_pressure_weight = 0.15;    // seconds
  double least_load_default_throughput = 2000.0;  // tokens a second
  int64_t least_load_mean_prefill_tokens = 1024;
  int64_t least_load_max_waiting_requests = 0;  // 0: off

  // power_of_two
  std::string power_of_two_load_metric = "requests";  // requests, expected_wait

  uint64_t seed = 0;                 // of random choices; 0: a random one
  TimePoint (*now)() = &Clock::now;  // simulations have a time of their own

  bool operator==(const PolicyOptions&) const = default;
};

}  // namespace portico::router
