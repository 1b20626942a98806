// The client of a pipeline, in tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/pipeline.h"

namespace portico::pipeline {

// Waits for what a call brings.
class Listener {
 public:
  std::function<void()> Wake() {
    return [this] {
      std::lock_guard lock(mutex_);
      ++wakes_;
      changed_.notify_all();
    };
  }
  // Everything to the end; false after a minute.
  bool Collect(Call& call) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      Call::Taken taken = call.Take();
      for (Part& part : taken.parts) parts.push_back(std::move(part));
      if (taken.ended) {
        status = taken.status;
        return true;
      }
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(20), [this] { return wakes_ > 0; });
      wakes_ = 0;
    }
    return false;
  }
  std::string Text() const {
    std::string text;
    for (const Part& part : parts) {
      if (const auto* piece = std::get_if<TextPart>(&part)) text += piece->text;
    }
    return text;
  }

  std::vector<Part> parts;
  Status status;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int wakes_ = 0;
};

}  // namespace portico::pipeline
