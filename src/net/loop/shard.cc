#include "net/loop/shard.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/events/recorder.h"
#include "base/mutex.h"
#include "net/loop/timer_queue.h"
#include "net/loop/turn_times.h"

namespace portico::net {
namespace {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;
using LoopTimer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

thread_local const Shard* current_shard = nullptr;

}  // namespace

struct Shard::Impl {
  explicit Impl(Shard* owner) : shard(owner), work(io.get_executor()), alarm(io) {}

  void TakePosted() {
    {
      const MutexLock lock(&mutex);
      running.swap(posted);
      woken = false;
    }
    Turn turn(*shard);
    for (Task& task : running) task();
    running.clear();
  }

  void SetAlarm() {
    if (timers.empty()) return;
    TimePoint due = timers.earliest();
    if (alarm_set && alarm_due <= due) return;
    alarm_set = true;
    alarm_due = due;
    alarm.expires_at(due);  // cancels the wait for a later time
    alarm.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      alarm_set = false;
      {
        Turn turn(*shard);
        timers.RunDue(Clock::now());
      }
      SetAlarm();
    });
  }

  void EndTurn() {
    // Tasks may add tasks; the vector may move under us.
    for (size_t i = 0; i < at_end.size(); ++i) {
      Task task = std::move(at_end[i]);
      task();
    }
    at_end.clear();
  }

  Shard* shard;
  asio::io_context io{1};
  asio::executor_work_guard<Executor> work;
  std::thread thread;

  Mutex mutex;
  std::vector<Task> posted ABSL_GUARDED_BY(mutex);
  bool woken ABSL_GUARDED_BY(mutex) = false;  // TakePosted is on its way
  std::vector<Task> running;

  TimerQueue timers;
  LoopTimer alarm;
  bool alarm_set = false;
  TimePoint alarm_due;

  int depth = 0;  // of nested turns
  TurnTimes times;
  std::vector<Task> at_end;
};

Shard::Turn::Turn(Shard& shard) : shard_(shard) {
  if (++shard_.impl_->depth == 1) shard_.impl_->times.Begin();
}

Shard::Turn::~Turn() {
  Impl& impl = *shard_.impl_;
  if (impl.depth == 1) {
    impl.EndTurn();
    impl.times.End();
  }
  --impl.depth;
}

Shard::Shard(int index) : index_(index), impl_(std::make_unique<Impl>(this)) {}

Shard::~Shard() { Stop(); }

void Shard::CountTurns(Registry& registry) { impl_->times.CountIn(registry, index_); }

void Shard::Start() {
  impl_->thread = std::thread([this] {
    current_shard = this;
    impl_->io.run();
    current_shard = nullptr;
  });
}

void Shard::Stop() {
  impl_->io.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void Shard::Post(Task task) {
  task = events::Carrying(std::move(task));
  {
    const MutexLock lock(&impl_->mutex);
    impl_->posted.push_back(std::move(task));
    if (std::exchange(impl_->woken, true)) return;
  }
  asio::post(impl_->io, [impl = impl_.get()] { impl->TakePosted(); });
}

std::unique_ptr<Shard::Timer> Shard::After(Duration delay, Task task) {
  auto timer = impl_->timers.Add(Clock::now() + delay, std::move(task));
  impl_->SetAlarm();
  return timer;
}

void Shard::AtEndOfTurn(Task task) {
  impl_->at_end.push_back(std::move(task));
  if (impl_->depth == 0 && impl_->at_end.size() == 1) {
    asio::post(impl_->io, [this] { Turn turn(*this); });
  }
}

bool Shard::OnShard() const { return current_shard == this; }

asio::io_context& Shard::io() { return impl_->io; }

}  // namespace portico::net
