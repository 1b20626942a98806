// The door to grammars: a cache by bytes, one compilation for equal requests, a bounded queue, and threads that wait for the
// compiling processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "grammar/compile/compile_process.h"
#include "grammar/compile/compile_supervisor.h"
#include "grammar/compile/grammar_text.h"
#include "grammar/mask/compiled_grammar.h"

namespace portico::grammar {

struct GrammarCompilerOptions {
  int32_t threads = 1;  // grammars that are compiled at once
  size_t max_queued = 64;
  // A grammar that has waited so long is refused.
  std::chrono::milliseconds max_wait{3000};
  size_t cache_bytes = size_t{512} << 20;
  CompileLimits limits;
  // Makes another compiling process when one has died, on any thread; empty: there is none.
  CompileSupervisor::Launch restart;
};

// A vocabulary that grammars can be compiled for.
struct GrammarModel {
  int32_t vocabulary = 0;
  std::shared_ptr<const TokenTable> tokens;
};

// Thread safe.
class GrammarCompiler {
 public:
  using Compiled = StatusOr<std::shared_ptr<const CompiledGrammar>>;
  using Done = absl::AnyInvocable<void(const Compiled&)>;
  // Whoever asked is gone once this has expired; without one it is wanted to the end.
  using Wanted = std::optional<std::weak_ptr<const void>>;

  // `metrics` may be null; it outlives the compiler.
  GrammarCompiler(std::unique_ptr<CompileProcess> process, const GrammarCompilerOptions& options,
                  Registry* metrics);
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // Takes as long as it takes to send the vocabulary to another process and sort it there and here.
  StatusOr<std::shared_ptr<const GrammarModel>> AddModel(const Vocabulary& vocabulary);

  // Calls `done` once, here if the answer is known already, else on a thread of the compiler's, which it must not hold up.
  // INVALID_ARGUMENT: the text is refused; RESOURCE_EXHAUSTED: the queue is full, or the wait was too long; CANCELLED: all who
  // asked for it were gone before its turn.
  void Compile(const GrammarModel& model, GrammarText text, Done done,
               Wanted wanted = std::nullopt);

  // Joins the threads; those that wait get UNAVAILABLE, and so does everybody from now on. Idempotent, from one thread.
  void Stop();

  struct Load {
    size_t queued = 0;
    size_t cached_bytes = 0;
  };
  Load load() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Waiter {
    Done done;
    Wanted wanted;
  };

  // One text for one model, from the first request for it until the cache drops it.
  struct Entry {
    std::string key;
    GrammarText text;
    int32_t vocabulary = 0;
    std::shared_ptr<const TokenTable> tokens;
    Clock::time_point since;
    std::vector<Waiter> waiting;
    bool done = false;
    Compiled result = Error(StatusCode::kInternal, "not compiled");
    size_t bytes = 0;
  };
  using Entries = std::list<std::shared_ptr<Entry>>;

  void Run();
  Compiled CompileNow(const Entry& entry);
  void Finish(const std::shared_ptr<Entry>& entry, Compiled result);
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool IsUnwanted(const Entry& entry);
  // Takes what nobody wants any more from the queue: those who asked are still to be told.
  std::vector<Waiter> DropUnwanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CompileSupervisor process_;
  const GrammarCompilerOptions options_;
  Counter* hits_ = nullptr;
  Counter* compiled_ = nullptr;
  Counter* refused_ = nullptr;
  Counter* overloaded_ = nullptr;
  Counter* unwanted_ = nullptr;
  Histogram* seconds_ = nullptr;

  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<std::shared_ptr<Entry>> queue_ ABSL_GUARDED_BY(mutex_);
  Entries used_ ABSL_GUARDED_BY(mutex_);  // finished, the latest used first
  // Those that wait or run have no place in `used_`.
  struct Place {
    std::shared_ptr<Entry> entry;
    Entries::iterator at;
  };
  absl::flat_hash_map<std::string, Place> known_ ABSL_GUARDED_BY(mutex_);
  size_t cached_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace portico::grammar
