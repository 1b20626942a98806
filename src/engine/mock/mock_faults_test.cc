#include "engine/mock/mock_faults.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

TEST(MockFaults, ReadsEveryRateInAnyOrder) {
  const auto rates = ParseMockFaults("error:0.05,die:0.01,stall:1e-2");
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_DOUBLE_EQ(rates->die, 0.01);
  EXPECT_DOUBLE_EQ(rates->stall, 0.01);
  EXPECT_DOUBLE_EQ(rates->error, 0.05);
}

TEST(MockFaults, TakesEmptyTextAsNoFaults) {
  const auto rates = ParseMockFaults("");
  ASSERT_TRUE(rates.ok());
  EXPECT_EQ(rates->die + rates->stall + rates->error, 0);
}

TEST(MockFaults, RefusesWhatIsNotAListOfRates) {
  for (const char* text :
       {"die", "die:", "die:x", "die:-1", "die:2", "die:nan", "burn:0.1", ",", "die:0.1,",
        "die:0.1,die:0.2", "die:0,die:0", "die:0.1:0.2", "die:0.6,stall:0.6"}) {
    EXPECT_EQ(ParseMockFaults(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(MockFaults, PlansTheSameFaultForTheSameSeed) {
  const MockFaultRates rates{0.1, 0.2, 0.3};
  int faults = 0;
  for (uint64_t request = 0; request < 1000; ++request) {
    const MockFaultPlan plan = PlanMockFault(rates, 7, request, 10);
    const MockFaultPlan again = PlanMockFault(rates, 7, request, 10);
    EXPECT_EQ(plan.fault, again.fault);
    EXPECT_EQ(plan.after_tokens, again.after_tokens);
    EXPECT_GE(plan.after_tokens, 0);
    EXPECT_LT(plan.after_tokens, 10);
    faults += plan.fault != MockFault::kNone;
  }
  EXPECT_GT(faults, 500);
  EXPECT_LT(faults, 700);
}

}  // namespace
}  // namespace portico
