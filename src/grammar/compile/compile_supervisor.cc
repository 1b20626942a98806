#include "grammar/compile/compile_supervisor.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace portico::grammar {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLongestBackoff{10'000};
constexpr std::chrono::seconds kLongLife{60};

Status Gone() { return Error(StatusCode::kUnavailable, "the grammar compiler is gone"); }

}  // namespace

CompileSupervisor::CompileSupervisor(std::unique_ptr<CompileProcess> first, Launch again,
                                     Counter* restarts)
    : again_(std::move(again)), restarts_(restarts), process_(std::move(first)) {}

std::shared_ptr<CompileProcess> CompileSupervisor::Current() {
  const MutexLock lock(&mutex_);
  return process_;
}

void CompileSupervisor::End() {
  const MutexLock lock(&mutex_);
  ended_ = true;
  process_->End();
  if (starting_ != nullptr) starting_->End();
}

StatusOr<int32_t> CompileSupervisor::AddVocabulary(const Vocabulary& vocabulary) {
  std::string bytes = Serialized(vocabulary);
  if (std::shared_ptr<CompileProcess> process = Current(); !process->alive()) {
    PORTICO_RETURN_IF_ERROR(Restart(process).status());
  }
  const MutexLock lock(&restart_mutex_);
  const auto name = static_cast<int32_t>(vocabularies_.size());
  PORTICO_RETURN_IF_ERROR(Current()->AddVocabulary(name, bytes));
  vocabularies_.push_back(std::move(bytes));
  return name;
}

StatusOr<std::string> CompileSupervisor::Compile(int32_t vocabulary, const GrammarText& text,
                                                 const CompileLimits& limits) {
  std::shared_ptr<CompileProcess> process = Current();
  StatusOr<std::string> compiled = process->Compile(vocabulary, text, limits);
  if (compiled.status().code() != StatusCode::kUnavailable) return compiled;
  PORTICO_ASSIGN_OR_RETURN(process, Restart(process));
  return process->Compile(vocabulary, text, limits);
}

StatusOr<std::shared_ptr<CompileProcess>> CompileSupervisor::Restart(
    const std::shared_ptr<CompileProcess>& dead) {
  const MutexLock starting(&restart_mutex_);
  if (std::shared_ptr<CompileProcess> other = Current(); other != dead) return other;
  const Clock::time_point now = Clock::now();
  if (!again_ || now < not_before_) return Gone();
  {
    const MutexLock lock(&mutex_);
    if (ended_) return Gone();
  }
  backoff_ = now - started_ > kLongLife ? milliseconds(0)
                                        : std::clamp(2 * backoff_, kFirstBackoff, kLongestBackoff);
  not_before_ = now + backoff_;
  started_ = now;
  LogWarning("the grammar compiler exited; restarting it");
  if (restarts_ != nullptr) restarts_->Add();
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<CompileProcess> next, again_());
  {
    const MutexLock lock(&mutex_);
    if (ended_) return Gone();
    starting_ = next;
  }
  Status status;
  for (size_t name = 0; status.ok() && name < vocabularies_.size(); ++name) {
    status = next->AddVocabulary(static_cast<int32_t>(name), vocabularies_[name]);
  }
  const MutexLock lock(&mutex_);
  starting_ = nullptr;
  if (!status.ok()) return status;
  process_ = next;
  return next;
}

}  // namespace portico::grammar
