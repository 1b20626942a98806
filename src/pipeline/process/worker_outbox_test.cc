#include "pipeline/process/worker_outbox.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include "pipeline/process/unix_channel.h"

namespace portico::pipeline {
namespace {

class WorkerOutboxTest : public ::testing::Test {
 protected:
  WorkerOutboxTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    near_ = Fd(ends[0]);
    far_ = Fd(ends[1]);
    // Its thread uses it until the process ends.
    static std::vector<WorkerOutbox*> kept;
    kept.push_back(outbox_ = new WorkerOutbox(near_.get()));
  }

  // The runs of the next so many messages; fewer where the other end is closed or sends what is none.
  std::vector<uint64_t> Receive(size_t count) {
    std::vector<uint64_t> runs;
    while (runs.size() < count) {
      auto received = ReceiveDatagram(far_.get(), /*wait=*/true);
      if (!received.ok() || received->ended) return runs;
      auto messages = ReadMessages(received->message);
      if (!messages.ok()) return runs;
      for (const Message& message : *messages) runs.push_back(message.run);
    }
    return runs;
  }

  static Datagram Numbered(uint64_t run) { return RunMessage(MessageKind::kTook, run); }

  Fd near_;
  Fd far_;
  WorkerOutbox* outbox_ = nullptr;
};

TEST_F(WorkerOutboxTest, EveryMessageArrivesOnceAndInOrder) {
  constexpr uint64_t kCount = 20'000;
  std::thread sender([this] {
    for (uint64_t i = 0; i < kCount; ++i) {
      if (i % 7 == 0) {
        outbox_->Send(Numbered(i));
      } else if (i % 3 == 0) {
        outbox_->SendWithNext(Numbered(i));
      } else {
        outbox_->SendSoon(Numbered(i));
      }
    }
  });
  const std::vector<uint64_t> runs = Receive(kCount);
  sender.join();
  ASSERT_EQ(runs.size(), kCount);
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(runs[i], i);
}

// Else a stage that makes one more part and then thinks would keep it back.
TEST_F(WorkerOutboxTest, WhatWaitsForMoreGoesWithoutIt) {
  outbox_->Send(Numbered(1));
  outbox_->SendSoon(Numbered(2));
  EXPECT_EQ(Receive(2), (std::vector<uint64_t>{1, 2}));
  outbox_->SendWithNext(Numbered(3));
  EXPECT_EQ(Receive(1), (std::vector<uint64_t>{3}));
}

TEST_F(WorkerOutboxTest, WhatIsKeptGoesWithTheNextMessageOrAtLast) {
  outbox_->Keep(Numbered(1));
  outbox_->Send(Numbered(2));
  const auto received = ReceiveDatagram(far_.get(), /*wait=*/true);
  ASSERT_TRUE(received.ok());
  const auto messages = ReadMessages(received->message);
  ASSERT_TRUE(messages.ok());
  EXPECT_EQ(messages->size(), 2U);
  outbox_->Keep(Numbered(3));
  outbox_->SendNow();
  outbox_->SendNow();
  EXPECT_EQ(Receive(1), (std::vector<uint64_t>{3}));
}

TEST_F(WorkerOutboxTest, WhatLiesInMemoryGoesBehindWhatWaits) {
  const auto large = PartMessage(MessageKind::kEmit, 2, {},
                                 Part(AudioPart{0, 16000, media::Samples(1 << 20), false}));
  ASSERT_TRUE(large.ok());
  outbox_->SendWithNext(Numbered(1));
  outbox_->SendSoon(*large);
  outbox_->SendSoon(Numbered(3));
  EXPECT_EQ(Receive(3), (std::vector<uint64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace portico::pipeline
