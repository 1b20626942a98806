#include "base/events/converter.h"

#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/log.h"

namespace portico::events::internal {

Converter::Converter() : names_(getpid()) {}

void Converter::Begin(LineWriter* writer) {
  const MutexLock lock(&facts_mutex_);
  facts_[writer->FactsPath()] = writer->RecordsPath();
  writer->Begin();
}

void Converter::Add(Run run) {
  Put([this, run = std::move(run)]() mutable { MakeLines(run); });
}

void Converter::Then(absl::AnyInvocable<void()> done) {
  if (waiting() == 0) return done();
  Put(std::move(done));
}

size_t Converter::waiting() {
  const MutexLock lock(&mutex_);
  return tasks_.size();
}

void Converter::Put(Task task) {
  {
    const MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    changed_.NotifyOne();
  }
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { Work(/*once=*/false); });
  } catch (const std::system_error&) {
    Work(/*once=*/true);
  }
}

void Converter::Work(bool once) {
  while (true) {
    {
      Task task;
      {
        const MutexLock lock(&mutex_);
        while (tasks_.empty()) {
          if (once || ended_) return;
          changed_.Wait(&mutex_);
        }
        task = std::move(tasks_.front());
      }
      task();
    }
    const MutexLock lock(&mutex_);
    tasks_.pop_front();
  }
}

void Converter::Join() {
  {
    const MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Converter::MakeLines(Run& run) {
  const std::string& path = run.records.path();
  const Status read = run.records.Read(
      &names_,
      [&run](const Line& line, std::string_view request_id) { run.writer.Add(line, request_id); });
  run.writer.Close(run.cut);
  const bool whole = read.ok() && !run.writer.failed();
  if (whole) {
    unlink(path.c_str());
  } else {
    LogWarning(
        "a profile lacks lines{}{}; its events are kept in {}, which `portico profile` reads",
        read.ok() ? "" : ": ", MessageOf(read), path);
  }
  TellEnd(run, whole);
  written_.fetch_add(run.writer.written(), std::memory_order_relaxed);
  cut_.fetch_add(run.writer.cut(), std::memory_order_relaxed);
}

void Converter::TellEnd(Run& run, bool whole) {
  const MutexLock lock(&facts_mutex_);
  const auto about = facts_.find(run.writer.FactsPath());
  if (about == facts_.end() || about->second != run.records.path()) return;
  facts_.erase(about);
  if (whole) run.writer.WriteEnd(run.dropped);
}

}  // namespace portico::events::internal
