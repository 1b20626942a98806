// The SGLang engine. Used by sglang_engine.cc and its neighbours only.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/kv_events.h"
#include "engine/sglang/adapters.h"
#include "engine/sglang/released_memory.h"
#include "engine/sglang/sessions.h"
#include "engine/sglang/sglang_engine.h"

namespace portico::sglang {

class SglangEngine final : public Engine, public KvEventSource {
 public:
  explicit SglangEngine(SglangOptions options) : options_(std::move(options)) {}
  ~SglangEngine() override { Stop(); }

  // Once, before anything else.
  Status Start(const Launcher::Progress& progress);

  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override;
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override;
  void Abort(StreamId stream, ShardIndex shard) override;
  EngineLoad load() const override;
  std::vector<EngineLoad> rank_loads() const override;
  uint64_t life() const override { return lives_.load(std::memory_order_relaxed); }
  std::vector<LoraAdapter> adapters() const override { return adapters_.List(); }
  void Control(EngineControl control, TimePoint deadline, ControlDone done) override;
  void Stop() override;
  KvEventHub* kv_events() override { return publishes_kv_events_ ? &kv_events_ : nullptr; }

 private:
  using LifePtr = std::shared_ptr<Incarnation>;

  LinkOwner Owner();
  // The running SGLang; UNAVAILABLE while there is none.
  StatusOr<LifePtr> Life() const;
  Status CheckRoom(const Incarnation& life, size_t requests) const;
  void OnStreamEnd(const SchedulerLink::Stream& stream);
  // Waits for the end of the SGLang that runs, and starts it again where that is wanted.
  void Supervise();
  // Waits for a death. Gives what has died, null where it was never there; nothing once the engine stops.
  std::optional<LifePtr> WaitForDeath();
  // Sleeps until Stop(), or so long. Whether the engine stops.
  bool StopsWithin(Duration time);
  // Drops a dead one; blocks until its processes have ended.
  void Bury(LifePtr life);
  Status StartAgain();
  // What only a running scheduler tells.
  Status AskForLimits(Incarnation& life);
  void MakeInfo(const Facts& facts);
  // What the client names, as the scheduler calls it.
  struct Extras {
    Adapters::Use lora;       // empty: none
    std::string session_rid;  // empty: none
  };
  StatusOr<Extras> ResolveExtras(const LifePtr& life, const RequestExtras& extras);
  // Begins a use, and loads the adapter again where it had been evicted.
  StatusOr<Adapters::Use> TakeAdapter(const LifePtr& life, std::string_view name,
                                      std::string_view id);
  void AddAdapters(const Facts& facts);
  // Sends the load that has begun; `fields` are what the message has beside the adapter's own.
  void SendLoad(const LifePtr& life, std::string_view message, const Adapters::Adapter& adapter,
                Map fields, TimePoint deadline, ControlDone done);
  void SendUnload(const LifePtr& life, const std::string& name, const std::string& id,
                  TimePoint deadline, ControlDone done);
  // Unloads what --max-loaded-loras has no room for.
  void TrimAdapters(const LifePtr& life);
  // Of a request with media, which waits for them.
  Status SubmitMedia(const LifePtr& life, GenerateRequest request, SchedulerLink::Stream stream,
                     Extras extras);

  // Sends a call to every rank and ends `done` with the first that failed.
  void Ask(std::string_view message, Value fields, TimePoint deadline, StatusCode failure,
           ControlDone done);
  void Do(const FlushCacheControl& control, TimePoint deadline, ControlDone done);
  void Do(const PauseControl& control, TimePoint deadline, ControlDone done);
  void Do(const ContinueControl& control, TimePoint deadline, ControlDone done);
  void Do(const UpdateWeightsControl& control, TimePoint deadline, ControlDone done);
  void Do(const StartProfileControl& control, TimePoint deadline, ControlDone done);
  void Do(const StopProfileControl& control, TimePoint deadline, ControlDone done);
  void Do(const OpenSessionControl& control, TimePoint deadline, ControlDone done);
  void Do(const CloseSessionControl& control, TimePoint deadline, ControlDone done);
  void Do(const LoadLoraControl& control, TimePoint deadline, ControlDone done);
  void Do(const UnloadLoraControl& control, TimePoint deadline, ControlDone done);
  void Do(const NativeCall& call, TimePoint deadline, ControlDone done);
  // The calls that release the schedulers' memory and give it back.
  void MoveMemory(const LifePtr& life, const StructLayout& layout, Value fields, TimePoint deadline,
                  SchedulerLink::ControlAnswer done);

  const SglangOptions options_;
  EngineInfo info_;
  int64_t room_ = 0;  // requests at once, running and waiting
  LinkCounters counters_;
  KvEventHub kv_events_;
  bool publishes_kv_events_ = false;
  std::atomic<bool> paused_{false};
  std::atomic<uint64_t> lives_{0};

  mutable Mutex mutex_;
  CondVar wake_;
  LifePtr life_ ABSL_GUARDED_BY(mutex_);       // null: dead
  bool died_ ABSL_GUARDED_BY(mutex_) = false;  // life_ has died and waits for Bury()
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Adapters adapters_;
  // Loads and unloads are sent in the order in which they begin: an evicted adapter may come back at once.
  Mutex adapter_order_;
  Sessions sessions_;
  ReleasedMemory released_;

  Mutex join_mutex_;
  std::thread supervisor_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace portico::sglang
