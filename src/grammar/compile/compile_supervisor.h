// The compiling process over its deaths: one that was killed is replaced by a new one, which learns the vocabularies again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "grammar/compile/compile_process.h"

namespace portico::grammar {

// Thread safe.
class CompileSupervisor {
 public:
  using Launch = std::function<StatusOr<std::unique_ptr<CompileProcess>>()>;

  // `again` makes the next process, on any thread; empty: there is none. `restarts` may be null.
  CompileSupervisor(std::unique_ptr<CompileProcess> first, Launch again, Counter* restarts);

  // Ends what compiles; from now on everything fails.
  void End();

  // Makes the vocabulary known; the result names it in Compile().
  StatusOr<int32_t> AddVocabulary(const Vocabulary& vocabulary);

  // As CompileProcess::Compile(). Who finds the process dead starts the next one and tries once more. After a process that did
  // not live long everybody gets UNAVAILABLE for 100 ms, and for twice as long after each further one, up to 10 s.
  StatusOr<std::string> Compile(int32_t vocabulary, const GrammarText& text,
                                const CompileLimits& limits);

 private:
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<CompileProcess> Current();
  // The process that comes after `dead`.
  StatusOr<std::shared_ptr<CompileProcess>> Restart(const std::shared_ptr<CompileProcess>& dead);

  const Launch again_;
  Counter* const restarts_;

  Mutex restart_mutex_;  // held while a process starts; taken before mutex_
  Clock::time_point started_ ABSL_GUARDED_BY(restart_mutex_) = Clock::now();
  Clock::time_point not_before_ ABSL_GUARDED_BY(restart_mutex_);
  std::chrono::milliseconds backoff_ ABSL_GUARDED_BY(restart_mutex_){0};
  std::vector<std::string> vocabularies_ ABSL_GUARDED_BY(restart_mutex_);  // serialized, by name

  Mutex mutex_;
  // The latest that was ready, dead or not.
  std::shared_ptr<CompileProcess> process_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<CompileProcess> starting_ ABSL_GUARDED_BY(mutex_);  // the next one, or null
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace portico::grammar
