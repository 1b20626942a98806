#include "service/plan/step_gate.h"

#include <gtest/gtest.h>

#include <memory>

namespace portico {
namespace {

TEST(StepGate, AShardDoesSoMuchOfOnePlan) {
  StepGate gate = StepGate::OnShard();
  EXPECT_TRUE(gate.Pass(kShardWork / 2).ok());
  EXPECT_TRUE(gate.Pass(kShardWork / 2).ok());
  EXPECT_TRUE(gate.Pass(0).ok());
  EXPECT_FALSE(gate.too_long());
  EXPECT_EQ(gate.Pass(1).code(), StatusCode::kCancelled);
  EXPECT_TRUE(gate.too_long());
  EXPECT_FALSE(gate.Pass(0).ok());  // it has ended
}

TEST(StepGate, ThePoolDoesAnyWorkUntilTheClientLeaves) {
  auto client = std::make_shared<char>();
  StepGate gate = StepGate::OnPool(client);
  EXPECT_TRUE(gate.Pass(kShardWork * 1000).ok());
  client.reset();
  EXPECT_EQ(gate.Pass(0).code(), StatusCode::kCancelled);
  EXPECT_FALSE(gate.too_long());
}

TEST(StepGate, WithoutAGateEveryStepPasses) { EXPECT_TRUE(PassGate(nullptr, SIZE_MAX).ok()); }

}  // namespace
}  // namespace portico
