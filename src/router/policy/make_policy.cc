#include "router/policy/make_policy.h"

#include <fmt/format.h>

#include <iterator>

#include "router/policy/bucket.h"
#include "router/policy/cache_aware.h"
#include "router/policy/consistent_hashing.h"
#include "router/policy/cost.h"
#include "router/policy/least_load.h"
#include "router/policy/manual.h"
#include "router/policy/power_of_two.h"
#include "router/policy/prefix_hash.h"
#include "router/policy/random.h"
#include "router/policy/round_robin.h"

namespace portico::router {
namespace {

using Maker = std::unique_ptr<Policy> (*)(const PolicyOptions&);

template <typename Kind>
std::unique_ptr<Policy> Make(const PolicyOptions& options) {
  return std::make_unique<Kind>(options);
}

// Both in the same order.
constexpr std::string_view kNames[] = {
    "cost",       "cache_aware",        "round_robin", "random", "power_of_two",
    "least_load", "consistent_hashing", "prefix_hash", "manual", "bucket"};
constexpr Maker kMakers[] = {
    Make<Cost>,       Make<CacheAware>, Make<RoundRobin>,        Make<RandomPolicy>,
    Make<PowerOfTwo>, Make<LeastLoad>,  Make<ConsistentHashing>, Make<PrefixHash>,
    Make<Manual>,     Make<Bucket>};
static_assert(std::size(kNames) == std::size(kMakers));

}  // namespace

std::span<const std::string_view> PolicyNames() { return kNames; }

StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return kMakers[i](options);
  }
  return Error(StatusCode::kInvalidArgument,
               fmt::format("`{}` is not one of {}", name, fmt::join(kNames, ", ")));
}

}  // namespace portico::router
