// Faults that the mock engine commits on purpose, at given rates, so that the layers above can be
// tested.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace portico {

enum class MockFault {
  kNone,
  kDie,    // the whole engine dies: every stream ends with UNAVAILABLE, Submit is refused
  kStall,  // the stream gets no further token until it is aborted
  kError,  // the stream ends with INTERNAL
};

// Share of the requests that meet each fault; each in [0, 1], together at most 1.
struct MockFaultRates {
  double die = 0;
  double stall = 0;
  double error = 0;
};

// Reads "die:0.01,stall:0.01,error:0.05". Empty text: no faults. Unknown names, doubled names and
// rates out of range are INVALID_ARGUMENT.
StatusOr<MockFaultRates> ParseMockFaults(std::string_view text);

// What happens to one request: the fault, and after how many tokens.
struct MockFaultPlan {
  MockFault fault = MockFault::kNone;
  int32_t after_tokens = 0;
};

// The plan of request number `request`; depends on (rates, seed, request, max_tokens) only.
// after_tokens is below `max_tokens`, or 0.
MockFaultPlan PlanMockFault(const MockFaultRates& rates, uint64_t seed, uint64_t request,
                            int32_t max_tokens);

// A well-mixed 64-bit hash (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
// 2014).
uint64_t MockHash(uint64_t value);

}  // namespace portico
