#include "pipeline/process/worker_outbox.h"

#include <thread>
#include <utility>

#include "pipeline/process/unix_channel.h"

namespace portico::pipeline {

void WorkerOutbox::Send(const Datagram& message) {
  const MutexLock lock(&mutex_);
  if (Add(message)) Flush(Clock::now());
}

void WorkerOutbox::SendSoon(const Datagram& message) {
  const MutexLock lock(&mutex_);
  if (!Add(message)) return;
  const TimePoint now = Clock::now();
  if (now - sent_ >= kGap || packed_.bytes.size() >= kMaxPacked) return Flush(now);
  FlushInTime();
}

void WorkerOutbox::SendWithNext(const Datagram& message) {
  const MutexLock lock(&mutex_);
  if (!Add(message)) return;
  if (packed_.bytes.size() >= kMaxPacked) return Flush(Clock::now());
  FlushInTime();
}

void WorkerOutbox::Keep(const Datagram& message) {
  const MutexLock lock(&mutex_);
  if (Add(message) && packed_.bytes.size() >= kMaxPacked) Flush(Clock::now());
}

void WorkerOutbox::SendNow() {
  const MutexLock lock(&mutex_);
  Flush(Clock::now());
}

bool WorkerOutbox::Add(const Datagram& message) {
  if (Pack(message, &packed_)) return true;
  Flush({});
  SendDatagram(socket_, message, /*wait=*/true);
  sent_ = Clock::now();
  return false;
}

void WorkerOutbox::Flush(TimePoint now) {
  if (packed_.bytes.empty()) return;
  SendDatagram(socket_, packed_, /*wait=*/true);
  packed_.bytes.clear();
  sent_ = now;
}

void WorkerOutbox::FlushInTime() {
  if (!std::exchange(started_, true)) std::thread([this] { Run(); }).detach();
  if (std::exchange(idle_, false)) changed_.NotifyOne();
}

void WorkerOutbox::Run() {
  const MutexLock lock(&mutex_);
  while (true) {
    if (packed_.bytes.empty()) {
      idle_ = true;
      changed_.Wait(&mutex_);
      continue;
    }
    const TimePoint due = sent_ + kGap;
    if (Clock::now() >= due) {
      Flush(Clock::now());
    } else {
      changed_.WaitUntil(&mutex_, due);
    }
  }
}

}  // namespace portico::pipeline
