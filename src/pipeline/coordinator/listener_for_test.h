// The client of a pipeline, in tests.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "pipeline/coordinator/pipeline.h"

namespace portico::pipeline {

// Waits for what a call brings.
class Listener {
 public:
  std::function<void()> Wake() {
    return [this] {
      const MutexLock lock(&mutex_);
      ++wakes_;
      changed_.NotifyAll();
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
      const MutexLock lock(&mutex_);
      const auto look = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while (wakes_ == 0 && changed_.WaitUntil(&mutex_, look)) {
      }
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
  Mutex mutex_;
  CondVar changed_;
  int wakes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace portico::pipeline
