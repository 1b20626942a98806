#include "engine/llama/pooling/thread_choice.h"

#include <gtest/gtest.h>

namespace portico::llama {
namespace {

// Batches with this machine: how many of them were computed by one thread.
int ByOne(ThreadChoice* choice, int batches, double one, double together) {
  int count = 0;
  for (int i = 0; i < batches; ++i) {
    count += choice->threads() == 1 ? 1 : 0;
    choice->Took(choice->threads() == 1 ? one : together);
  }
  return count;
}

TEST(ThreadChoice, AnIdleMachineUsesAllThreads) {
  ThreadChoice choice(4);
  EXPECT_EQ(choice.threads(), 4);
  EXPECT_LT(ByOne(&choice, 1000, 8, 3), 20);
}

TEST(ThreadChoice, TriesOneThreadEverMoreSeldomOnAnIdleMachine) {
  ThreadChoice choice(4);
  ByOne(&choice, 1000, 8, 3);
  EXPECT_LE(ByOne(&choice, 10'000, 8, 3), 5);
}

TEST(ThreadChoice, ABusyMachineUsesOne) {
  ThreadChoice choice(2);
  EXPECT_GT(ByOne(&choice, 1000, 20, 100), 980);
}

TEST(ThreadChoice, FollowsAMachineThatBecomesBusyAndIdle) {
  ThreadChoice choice(2);
  ByOne(&choice, 1000, 8, 4.5);
  EXPECT_GT(ByOne(&choice, 100, 17, 100), 90);
  ByOne(&choice, 2000, 17, 100);
  EXPECT_LT(ByOne(&choice, 5000, 8, 4.5), 2000);
  EXPECT_GT(ByOne(&choice, 100, 17, 60), 90);
}

TEST(ThreadChoice, OneLuckyBatchDecidesNothing) {
  ThreadChoice choice(2);
  ByOne(&choice, 1000, 20, 100);
  while (choice.threads() == 1) choice.Took(20);
  choice.Took(5);
  EXPECT_EQ(choice.threads(), 1);
}

}  // namespace
}  // namespace portico::llama
