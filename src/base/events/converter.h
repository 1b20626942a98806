// Makes lines of what runs have recorded, one run after the other. That costs ten times as much as
// to record it and to write it, so it waits until the run has ended; the next one may be running.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "base/events/line_writer.h"
#include "base/events/record_reader.h"
#include "base/events/request_names.h"
#include "base/mutex.h"

namespace portico::events::internal {

// Of one thread, but for what says otherwise. It has a thread of its own, too.
class Converter {
 public:
  Converter();

  // A run that has ended.
  struct Run {
    LineWriter writer;
    RecordsInput records;
    uint64_t dropped = 0;  // events
    uint64_t cut = 0;
  };

  // The writer's run has begun: run_*.json is about it from now on, and no more about a former one.
  void Begin(LineWriter* writer);
  // The records are removed when there is a line of each, or none for the bound; else they stay,
  // and run_*.json does not say that the run has ended.
  void Add(Run run);
  // When there are the lines of all runs that were added; on this thread where they are there.
  void Then(absl::AnyInvocable<void()> done);
  // Runs and calls that wait.
  size_t waiting();
  // Waits for all of them. Nothing comes behind it.
  void Join();

  // Lines, and events that have none; of all runs. Thread safe.
  uint64_t written() const { return written_.load(std::memory_order_relaxed); }
  uint64_t cut() const { return cut_.load(std::memory_order_relaxed); }

 private:
  using Task = absl::AnyInvocable<void()>;

  void Put(Task task);
  // Until the end, or with `once` until there is nothing to do.
  void Work(bool once);
  void MakeLines(Run& run);
  // Says that the run has ended, unless the file is another one's.
  void TellEnd(Run& run, bool whole);

  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> cut_{0};
  RequestNames names_;  // of who works
  std::thread thread_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);  // with the one that is worked on
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex facts_mutex_;
  // Of each run_*.json the records of the run that it is about, until that has its lines.
  std::map<std::string, std::string> facts_ ABSL_GUARDED_BY(facts_mutex_);
};

}  // namespace portico::events::internal
