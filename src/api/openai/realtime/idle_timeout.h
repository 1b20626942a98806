// `idle_timeout_ms` of a realtime session: the user says nothing after an answer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "net/loop/shard.h"

namespace portico::api::openai {

// On its shard. The time runs from when the last answer has been played: from its end, and for as long as its
// sound is. It runs once for each answer, and after kMostInARow of them without a word of the user no more: an open
// microphone in an empty room is not talked to for ever.
class IdleTimeout {
 public:
  static constexpr int kMostInARow = 8;

  // `on_idle` gets the position, in ms of the input's sound, where the time began.
  IdleTimeout(net::Shard& shard, std::function<void(int64_t begin_ms)> on_idle)
      : shard_(shard), on_idle_(std::move(on_idle)) {}

  // Zero: never. Where the time runs, it is measured anew, from the same beginning.
  void Configure(Duration timeout) {
    timeout_ = timeout;
    Run();
  }
  // An answer has ended; the input's sound has come to `input_ms`.
  void Answered(Duration sound, int64_t input_ms) {
    const auto sound_ms = std::chrono::duration_cast<std::chrono::milliseconds>(sound).count();
    begin_ = Begin{Clock::now() + sound, input_ms + sound_ms};
    Run();
  }
  // Another answer begins.
  void Stop() {
    begin_.reset();
    timer_.reset();
  }
  // The user speaks, or the client for them.
  void UserSpeaks() {
    in_a_row_ = 0;
    Stop();
  }
  // Something is made that is no part of the conversation: the end of the time waits until Release().
  void Hold() {
    held_ = true;
    timer_.reset();
  }
  void Release() {
    held_ = false;
    Run();
  }
  bool running() const { return timer_ != nullptr; }

 private:
  struct Begin {
    TimePoint time;
    int64_t input_ms = 0;
  };

  void Run() {
    timer_.reset();
    if (!begin_ || held_ || timeout_ <= Duration::zero() || in_a_row_ >= kMostInARow) return;
    const Duration left = begin_->time + timeout_ - Clock::now();
    timer_ = shard_.After(std::max(left, Duration::zero()), [this] {
      const int64_t begin_ms = begin_->input_ms;
      Stop();
      ++in_a_row_;
      on_idle_(begin_ms);
    });
  }

  net::Shard& shard_;
  const std::function<void(int64_t)> on_idle_;
  Duration timeout_ = Duration::zero();
  std::optional<Begin> begin_;
  bool held_ = false;
  int in_a_row_ = 0;  // times that came to their end since the user spoke
  std::unique_ptr<net::Shard::Timer> timer_;
};

}  // namespace portico::api::openai
