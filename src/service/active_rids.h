// The rids of requests that run, over all shards and both protocols: two of a name would be one to
// /abort_request and in the answers. Taken once a request; 64 independently locked sets keep shards
// out of each other's way.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"
#include "base/status.h"

namespace portico {

class ActiveRids;

// Holds a rid until it is destroyed or released. Movable; any thread.
class RidLease {
 public:
  RidLease() = default;
  ~RidLease() { Release(); }
  RidLease(RidLease&& other) noexcept;
  RidLease& operator=(RidLease&& other) noexcept;

  // The rid is free again. Twice is once.
  void Release();

 private:
  friend class ActiveRids;
  RidLease(ActiveRids* rids, std::string rid) : rids_(rids), rid_(std::move(rid)) {}

  ActiveRids* rids_ = nullptr;
  std::string rid_;
};

// Thread safe; outlives its leases.
class ActiveRids {
 public:
  // ALREADY_EXISTS (field "rid") while another request has it. An empty rid is nobody's: its lease
  // holds nothing.
  StatusOr<RidLease> Take(std::string_view rid);

 private:
  friend class RidLease;
  struct alignas(64) Stripe {
    Mutex mutex;
    absl::flat_hash_set<std::string> rids ABSL_GUARDED_BY(mutex);
  };

  Stripe& StripeOf(std::string_view rid);

  std::array<Stripe, 64> stripes_;
};

}  // namespace portico
