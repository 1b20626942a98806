// The coordinator: runs requests through a graph of stages in this process.
//
// One request has a run in each stage that it needs, which its routes tell at the start. Parts wait
// in front of a run; it gets the next one when every stage behind it has room, so a client that
// does not read stops, one after the other, the stages of its own request and of no other. Runs of
// a request work beside each other on the pipeline's threads, none on two at once.
//
// Where a stage's process ends and the client has taken nothing, the request begins anew, once: with new
// runs in all stages, so that nothing of the first ones can reach the second ones.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/cpu_pool.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "pipeline/config/config.h"
#include "pipeline/coordinator/audio_times.h"
#include "pipeline/coordinator/outcomes.h"
#include "pipeline/process/process_plan.h"
#include "pipeline/request.h"
#include "pipeline/stage.h"
#include "pipeline/transcripts.h"
#include "pipeline/voice_store.h"

namespace portico::pipeline {

class ProcessGroup;
class RequestRun;
class StageHost;

// The client's end of a request. Destroying it aborts what still runs. Thread safe.
class Call {
 public:
  // The same request from its start, or null: it cannot begin now.
  using Anew = std::function<std::shared_ptr<RequestRun>(RequestRun&)>;

  Call(std::shared_ptr<RequestRun> run, Anew anew) : anew_(std::move(anew)), run_(std::move(run)) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  struct Taken {
    std::vector<Part> parts;
    bool ended = false;  // nothing follows
    Status status;       // with ended: why it failed
  };
  // What has come; makes room for more. At most `max_parts`.
  Taken Take(size_t max_parts = SIZE_MAX);

 private:
  Mutex mutex_;
  // Until the client has taken something, or the request has begun anew: it may do so.
  Anew anew_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RequestRun> run_ ABSL_GUARDED_BY(mutex_);
};

class Pipeline {
 public:
  // The kinds of stages by factory_path.
  using Kinds = std::map<std::string, StageFactory, std::less<>>;

  // UNAVAILABLE names the package that a stage lacks, INVALID_ARGUMENT the line of the file that
  // has an unknown factory_path.
  static StatusOr<std::unique_ptr<Pipeline>> Start(PipelineConfig config, const Kinds& kinds,
                                                   const std::string& file, Registry* registry,
                                                   const StagePrograms& programs = {});
  // What Start() would say of the native stages that the command line changes, whether or not their
  // packages are installed.
  static Status CheckFlags(const PipelineConfig& config, const Kinds& kinds);
  // What Start() would say of the native stages and their packages, before models are loaded for them: a line for each
  // stage that cannot start, with the code of the first.
  static Status CheckStages(const PipelineConfig& config, const Kinds& kinds);
  // Aborts what runs and waits for it.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // `on_ready` is called from any thread, maybe within this call, when there is something to take
  // that was not there before; it must be fast and not call back. RESOURCE_EXHAUSTED: full. Other
  // failures are what a stage says of the request.
  StatusOr<std::unique_ptr<Call>> Submit(Request request, std::function<void()> on_ready);

  // What Submit() would say of the request's fields, whatever its text or sound is.
  Status Check(const Request& request) const;

  const PipelineConfig& config() const { return config_; }
  // Names that requests may give a voice: those of the stages, then the aliases, then uploaded ones.
  std::vector<std::string> Voices() const;
  // The stages' own name of a voice; INVALID_ARGUMENT (field "voice").
  StatusOr<std::string> ResolveVoice(std::string_view name) const;
  // Makes it the request's; an uploaded one is the voice that the request's stages imitate.
  Status SetVoice(std::string_view name, Request* request) const;
  VoiceStore& voice_store() { return voice_store_; }
  // Some stage that such requests reach takes this one of kSpeechFields.
  bool TakesSpeechField(Task task, std::string_view field) const;
  // False where no stage that such requests reach answers them, or none of those is a terminal.
  bool Serves(Task task) const { return serves_[static_cast<size_t>(task)]; }
  // INVALID_ARGUMENT names the field of such requests, where it does not serve them.
  Status CheckServes(Task task) const;
  // Answers chats without a served model: no stage is a portico.engine.
  bool thinks() const { return thinks_; }
  // Some stage makes English of other languages.
  bool translates() const;
  // Some stage calls a chat's tools.
  bool calls_tools() const;
  // Some stage samples; or this one does.
  bool samples() const;
  bool samples(std::string_view stage) const;
  Outcomes& outcomes() { return outcomes_; }
  Transcripts& transcripts() { return transcripts_; }
  const Transcripts& transcripts() const { return transcripts_; }
  size_t in_flight() const;
  // When it was started, in seconds since 1970.
  int64_t created() const { return created_; }
  // What is wrong with its stages now, a line each; empty: nothing.
  std::vector<std::string> Problems() const;

 private:
  Pipeline(PipelineConfig config, Registry* registry);
  Status StartProcesses(const StagePrograms& programs, const std::string& file, Registry* registry);
  const Stage* FindStage(std::string_view name) const;
  // Those that this request reaches, in the order of their first source.
  std::vector<std::string> StagesOf(const Request& request) const;
  // Those that some request of this kind reaches.
  std::vector<std::string> StagesOf(Task task) const;
  bool FindsAnswer(Task task) const;
  bool AnyTakes(const std::vector<std::string>& stages, std::string_view speech_field) const;
  // `stage_params` and `stage_sampling` name stages of such requests that take them, and some stage
  // samples where `sampling` is told.
  Status CheckStageFields(const Request& request) const;
  Status CheckStageParams(const Request& request) const;
  Status CheckSampling(const Request& request) const;
  // Stages that the request reaches take its references and speech_fields.
  Status CheckSpeechFields(const Request& request) const;
  std::shared_ptr<RequestRun> BeginAnew(RequestRun& died);
  // Builds and starts it. `before`: what it takes the place of, or null.
  Status Launch(const std::shared_ptr<RequestRun>& run, RequestRun* before);
  void Watch();

  const PipelineConfig config_;
  const int64_t created_ = UnixSeconds();
  std::array<bool, 3> serves_{};  // by Task
  bool thinks_ = false;
  Outcomes outcomes_;
  Transcripts transcripts_;
  VoiceStore voice_store_;
  AudioMetrics speech_audio_;
  AudioMetrics chat_audio_;
  std::map<std::string, std::unique_ptr<ProcessGroup>, std::less<>> groups_;
  std::vector<std::unique_ptr<StageHost>> hosts_;
  struct Live;
  std::unique_ptr<Live> live_;
  Counter* requests_;
  Counter* failures_;
  Counter* replays_;
  std::unique_ptr<CpuPool> pool_;
  std::atomic<bool> stopping_{false};
  std::thread watcher_;
};

}  // namespace portico::pipeline
