#include "engine/mock/mock_faults.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace portico {
namespace {

Status BadSpec(const std::string& why) {
  return InvalidArgument("mock-fault",
                         why + " (expected for example die:0.01,stall:0.01,error:0.05)");
}

// The member of `rates` called `name`, or null.
double* RateNamed(const std::string& name, MockFaultRates* rates) {
  if (name == "die") return &rates->die;
  if (name == "stall") return &rates->stall;
  if (name == "error") return &rates->error;
  return nullptr;
}

}  // namespace

StatusOr<MockFaultRates> ParseMockFaults(std::string_view text) {
  MockFaultRates rates;
  if (text.empty()) return rates;
  MockFaultRates seen;
  const std::string copy(text);
  const std::vector<std::string> items = absl::StrSplit(copy, ',');
  for (const std::string& item : items) {
    const std::vector<std::string> parts = absl::StrSplit(item, ':');
    if (parts.size() != 2) return BadSpec("`" + item + "` is not NAME:RATE");
    double* rate = RateNamed(parts[0], &rates);
    if (rate == nullptr) return BadSpec("no fault is called `" + parts[0] + "`");
    double* mark = RateNamed(parts[0], &seen);
    if (*mark != 0) return BadSpec("`" + parts[0] + "` is named twice");
    *mark = 1;
    if (!absl::SimpleAtod(parts[1], rate) || !(*rate >= 0 && *rate <= 1)) {
      return BadSpec("`" + parts[1] + "` is not a rate in 0..1");
    }
  }
  if (rates.die + rates.stall + rates.error > 1) return BadSpec("the rates add up to more than 1");
  return rates;
}

uint64_t MockHash(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

MockFaultPlan PlanMockFault(const MockFaultRates& rates, uint64_t seed, uint64_t request,
                            int32_t max_tokens) {
  const uint64_t hash = MockHash(MockHash(seed) ^ request);
  const double draw = std::ldexp(static_cast<double>(hash >> 11), -53);  // uniform in [0, 1)
  MockFaultPlan plan;
  if (draw < rates.die) {
    plan.fault = MockFault::kDie;
  } else if (draw < rates.die + rates.stall) {
    plan.fault = MockFault::kStall;
  } else if (draw < rates.die + rates.stall + rates.error) {
    plan.fault = MockFault::kError;
  }
  if (plan.fault != MockFault::kNone && max_tokens > 0) {
    plan.after_tokens = static_cast<int32_t>(MockHash(hash) % static_cast<uint64_t>(max_tokens));
  }
  return plan;
}

}  // namespace portico
