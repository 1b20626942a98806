// What other threads ask of a mock engine's thread, until it takes it. Not thread safe: the engine
// guards it. Used by mock_*engine*.cc only.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace portico {

template <typename Submitted>
class MockInbox {
 public:
  void Submit(Submitted submitted) { submits_.push_back(std::move(submitted)); }
  void Abort(StreamId stream) { aborts_.push_back(stream); }
  // Without a mode: continue.
  void Pause(std::optional<PauseMode> mode) { pauses_.push_back({mode, submits_.size()}); }

  bool empty() const { return submits_.empty() && aborts_.empty() && pauses_.empty(); }
  size_t submits() const { return submits_.size(); }

  // Empties it into `submit` and `pause`, in the order in which they were asked for: a pause does
  // nothing to what has come after it. Then come the aborts, which `abort` gets all at once.
  template <typename OnSubmit, typename OnPause, typename OnAborts>
  void Take(OnSubmit submit, OnPause pause, OnAborts abort) {
    size_t next = 0;
    for (const PauseAsked& asked : pauses_) {
      for (; next < asked.submits_before; ++next) submit(std::move(submits_[next]));
      pause(asked.mode);
    }
    for (; next < submits_.size(); ++next) submit(std::move(submits_[next]));
    if (!aborts_.empty()) abort(std::as_const(aborts_));
    submits_.clear();
    pauses_.clear();
    aborts_.clear();
  }

 private:
  struct PauseAsked {
    std::optional<PauseMode> mode;
    size_t submits_before;
  };

  std::vector<Submitted> submits_;
  std::vector<StreamId> aborts_;
  std::vector<PauseAsked> pauses_;
};

}  // namespace portico
