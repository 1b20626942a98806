#include "pipeline/coordinator/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/processors.h"
#include "message/queue_full.h"
#include "pipeline/config/config_graph.h"
#include "pipeline/coordinator/request_run.h"
#include "pipeline/coordinator/routes.h"
#include "pipeline/process/process_group.h"
#include "pipeline/process/process_stage.h"
#include "pipeline/remote/dial.h"

namespace portico::pipeline {
namespace {

constexpr auto kWatchPeriod = std::chrono::milliseconds(20);

Status BadStage(const PipelineConfig& config, const StageConfig& stage, StatusCode code,
                std::string_view why) {
  return Error(code, fmt::format("{}:{}: stage `{}`: {}{}", config.file, stage.line, stage.name,
                                 why, WithFlags(config, stage.name)));
}

StatusOr<std::unique_ptr<Stage>> MakeNativeStage(const PipelineConfig& config,
                                                 const StageConfig& stage,
                                                 const Pipeline::Kinds& kinds) {
  const auto kind = kinds.find(stage.factory_path);
  if (kind == kinds.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, factory] : kinds) names.push_back(name);
    return BadStage(config, stage, StatusCode::kInvalidArgument,
                    fmt::format("there is no factory_path `{}`; there are {}", stage.factory_path,
                                fmt::join(names, ", ")));
  }
  auto made = kind->second(stage);
  if (!made.ok()) return BadStage(config, stage, made.status().code(), MessageOf(made.status()));
  return made;
}

StatusOr<std::unique_ptr<Stage>> MakeReadyStage(const PipelineConfig& config,
                                                const StageConfig& stage,
                                                const Pipeline::Kinds& kinds) {
  PORTICO_ASSIGN_OR_RETURN(auto made, MakeNativeStage(config, stage, kinds));
  if (Status ready = made->Ready(); !ready.ok()) {
    return BadStage(config, stage, ready.code(), MessageOf(ready));
  }
  return made;
}

}  // namespace

Call::~Call() {
  const MutexLock lock(&mutex_);
  run_->Fail(Error(StatusCode::kCancelled, "the client has left"));
}

Call::Taken Call::Take(size_t max_parts) {
  std::shared_ptr<RequestRun> died;  // goes without the lock
  const MutexLock lock(&mutex_);
  std::optional<Taken> taken = run_->Take(max_parts, /*fresh=*/anew_ != nullptr);
  if (!taken) {
    const Anew anew = std::exchange(anew_, nullptr);
    if (auto run = anew(*run_)) died = std::exchange(run_, std::move(run));
    taken = run_->Take(max_parts, /*fresh=*/false);
  }
  if (!taken->parts.empty()) anew_ = nullptr;
  return *std::move(taken);
}

// The requests that run, for the watcher.
struct Pipeline::Live {
  std::shared_ptr<std::atomic<size_t>> count = std::make_shared<std::atomic<size_t>>(0);
  Mutex mutex;
  std::vector<std::weak_ptr<RequestRun>> runs ABSL_GUARDED_BY(mutex);

  std::vector<std::shared_ptr<RequestRun>> All() {
    const MutexLock lock(&mutex);
    std::vector<std::shared_ptr<RequestRun>> all;
    std::erase_if(runs, [&all](const std::weak_ptr<RequestRun>& weak) {
      auto run = weak.lock();
      if (run == nullptr) return true;
      all.push_back(std::move(run));
      return false;
    });
    return all;
  }
};

Pipeline::Pipeline(PipelineConfig config, Registry* registry)
    : config_(std::move(config)),
      voice_store_(registry),
      speech_audio_(registry, TaskName(Task::kSpeech)),
      chat_audio_(registry, TaskName(Task::kChat)),
      live_(std::make_unique<Live>()),
      requests_(&registry->AddCounter("portico_pipeline_requests_total",
                                      "Requests that the pipeline has taken.")),
      failures_(&registry->AddCounter("portico_pipeline_refused_total",
                                      "Requests that the pipeline has refused.")),
      replays_(&registry->AddCounter(
          "portico_pipeline_replays_total",
          "Requests that began anew as a whole because a stage process ended.")) {
  registry->AddCallbackGauge("portico_pipeline_requests_running", "Requests in the pipeline.",
                             [this] { return static_cast<double>(in_flight()); });
  const size_t threads = static_cast<size_t>(std::max(2, UsableProcessors()));
  // A node has at most two tasks that wait.
  const size_t most = static_cast<size_t>(config_.max_in_flight) * (config_.stages.size() + 1) * 2;
  pool_ = std::make_unique<CpuPool>(threads, most, "pipeline");
}

StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(PipelineConfig config, const Kinds& kinds,
                                                    const std::string& file, Registry* registry,
                                                    const StagePrograms& programs) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(config), registry));
  PORTICO_RETURN_IF_ERROR(pipeline->StartProcesses(programs, file, registry));
  for (const StageConfig& stage : pipeline->config_.stages) {
    std::unique_ptr<Stage> made;
    if (!stage.is_python()) {
      PORTICO_ASSIGN_OR_RETURN(made, MakeReadyStage(pipeline->config_, stage, kinds));
    }
    if (!stage.process.empty()) {
      made = NewProcessStage(stage, std::move(made), pipeline->groups_.at(stage.process).get(),
                             pipeline->config_.ReplicasOf(stage.process));
    }
    if (!stage.fed_by.empty() && !made->sees_ends()) {
      return BadStage(
          pipeline->config_, stage, StatusCode::kInvalidArgument,
          fmt::format("`{}` streams back to it, and its kind would not know when to end",
                      stage.fed_by.front()));
    }
    pipeline->hosts_.push_back(
        std::make_unique<StageHost>(stage, std::move(made), pipeline->pool_.get(), registry));
  }
  for (const auto& target : pipeline->hosts_) {
    const std::string& name = target->config().name;
    if (name == pipeline->config_.entry_stage) target->AddHop(StageHost::kClientName, registry);
    for (const StageConfig& source : pipeline->config_.stages) {
      if (HasName(StagesBehind(source), name)) target->AddHop(source.name, registry);
    }
  }
  pipeline->watcher_ = std::thread([self = pipeline.get()] { self->Watch(); });
  for (const Task task : {Task::kSpeech, Task::kTranscription, Task::kChat}) {
    pipeline->serves_[static_cast<size_t>(task)] = pipeline->FindsAnswer(task);
  }
  const auto& stages = pipeline->config_.stages;
  pipeline->thinks_ = pipeline->Serves(Task::kChat) &&
                      std::none_of(stages.begin(), stages.end(), [](const StageConfig& stage) {
                        return stage.factory_path == "portico.engine";
                      });
  return pipeline;
}

Status Pipeline::CheckFlags(const PipelineConfig& config, const Kinds& kinds) {
  for (const StageConfig& stage : config.stages) {
    if (stage.is_python() || WithFlags(config, stage.name).empty()) continue;
    PORTICO_RETURN_IF_ERROR(MakeNativeStage(config, stage, kinds).status());
  }
  return OkStatus();
}

Status Pipeline::CheckStages(const PipelineConfig& config, const Kinds& kinds) {
  StatusCode code = StatusCode::kOk;
  std::vector<std::string> faults;
  for (const StageConfig& stage : config.stages) {
    if (stage.is_python()) continue;
    const Status ready = MakeReadyStage(config, stage, kinds).status();
    if (ready.ok()) continue;
    if (faults.empty()) code = ready.code();
    faults.emplace_back(MessageOf(ready));
  }
  return faults.empty() ? OkStatus() : Error(code, fmt::format("{}", fmt::join(faults, "\n")));
}

Status Pipeline::StartProcesses(const StagePrograms& programs, const std::string& file,
                                Registry* registry) {
  for (const ProcessPlan& plan : PlanProcesses(config_)) {
    const StageConfig& first = *plan.stages.front();
    if (programs.program.empty()) {
      return Error(StatusCode::kUnimplemented, "this program has no stages in other processes");
    }
    ProcessGroupOptions options;
    options.name = plan.name;
    options.stages = plan.stages;
    options.replicas = config_.ReplicasOf(plan.name);
    const ProcessConfig* said = config_.FindProcess(plan.name);
    options.remote = said != nullptr && !said->hosts.empty();
    if (options.remote) {
      PORTICO_ASSIGN_OR_RETURN(options.open, OpenByDialing(*said, programs.token));
    } else {
      options.open = OpenBySpawning(SpawnOptionsOf(plan, programs));
    }
    options.init = InitText(plan, config_, file);
    options.stall_s = plan.stall_s;
    options.restart = plan.restart;
    auto group = ProcessGroup::Start(std::move(options), registry);
    if (!group.ok()) {
      return Error(group.status().code(),
                   fmt::format("{}:{}: stage `{}`: {}{}", file, first.line, first.name,
                               MessageOf(group.status()), WithFlags(config_, first.name)));
    }
    groups_[plan.name] = *std::move(group);
  }
  return OkStatus();
}

std::vector<std::string> Pipeline::Problems() const {
  std::vector<std::string> problems;
  for (const auto& [name, group] : groups_) {
    for (std::string& problem : group->Problems()) problems.push_back(std::move(problem));
  }
  return problems;
}

Pipeline::~Pipeline() {
  stopping_ = true;
  if (watcher_.joinable()) watcher_.join();
  for (const auto& run : live_->All()) {
    run->Fail(Error(StatusCode::kUnavailable, "the server is shutting down"));
  }
  for (const auto& [name, group] : groups_) group->BeginStop();
  for (const auto& [name, group] : groups_) group->Stop();
  for (const auto& host : hosts_) host->StopThreads();
  pool_.reset();
}

void Pipeline::Watch() {
  while (!stopping_) {
    std::this_thread::sleep_for(kWatchPeriod);
    const TimePoint now = Clock::now();
    for (const auto& run : live_->All()) run->CheckTime(now);
  }
}

StatusOr<std::unique_ptr<Call>> Pipeline::Submit(Request request, std::function<void()> on_ready) {
  if (in_flight() >= static_cast<size_t>(config_.max_in_flight)) {
    failures_->Add();
    return Error(
        StatusCode::kResourceExhausted,
        fmt::format("the pipeline is full: {} requests are running", config_.max_in_flight), {},
        kQueueFull);
  }
  if (Status status = CheckStageFields(request); !status.ok()) {
    failures_->Add();
    return status;
  }
  AudioMetrics* audio = request.task == Task::kChat ? &chat_audio_ : &speech_audio_;
  auto run = std::make_shared<RequestRun>(std::make_shared<const Request>(std::move(request)),
                                          Clock::now(), config_.timeout_s, std::move(on_ready),
                                          live_->count, audio);
  if (Status status = Launch(run, /*before=*/nullptr); !status.ok()) {
    failures_->Add();
    return status;
  }
  requests_->Add();
  return std::make_unique<Call>(std::move(run),
                                [this](RequestRun& died) { return BeginAnew(died); });
}

Status Pipeline::Launch(const std::shared_ptr<RequestRun>& run, RequestRun* before) {
  PORTICO_RETURN_IF_ERROR(run->Build(config_, hosts_, before));
  {
    const MutexLock lock(&live_->mutex);
    live_->runs.push_back(run);
  }
  run->Start();
  return OkStatus();
}

std::shared_ptr<RequestRun> Pipeline::BeginAnew(RequestRun& died) {
  if (stopping_) return nullptr;
  std::shared_ptr<RequestRun> run = died.Anew();
  if (!Launch(run, &died).ok()) return nullptr;
  replays_->Add();
  return run;
}

Status Pipeline::Check(const Request& request) const {
  PORTICO_RETURN_IF_ERROR(CheckStageFields(request));
  for (const std::string& name : StagesOf(request)) {
    PORTICO_RETURN_IF_ERROR(FindStage(name)->Check(request));
  }
  return OkStatus();
}

const Stage* Pipeline::FindStage(std::string_view name) const {
  for (const auto& host : hosts_) {
    if (host->config().name == name) return &host->stage();
  }
  return nullptr;
}

std::vector<std::string> Pipeline::StagesOf(const Request& request) const {
  std::vector<std::string> names{config_.entry_stage};
  for (size_t i = 0; i < names.size(); ++i) {
    for (std::string& next : RoutesOf(*config_.Find(names[i]), request)) {
      if (std::find(names.begin(), names.end(), next) == names.end()) {
        names.push_back(std::move(next));
      }
    }
  }
  return names;
}

std::vector<std::string> Pipeline::StagesOf(Task task) const {
  Request request;
  request.task = task;
  request.wants_text = request.wants_audio = true;
  std::vector<std::string> names{config_.entry_stage};
  for (const bool has_file : {false, true}) {
    if (has_file) request.inputs.emplace_back(FilePart{});
    for (size_t i = 0; i < names.size(); ++i) {
      for (std::string& next : RoutesOf(*config_.Find(names[i]), request)) {
        if (std::find(names.begin(), names.end(), next) == names.end()) {
          names.push_back(std::move(next));
        }
      }
    }
  }
  return names;
}

bool Pipeline::AnyTakes(const std::vector<std::string>& stages,
                        std::string_view speech_field) const {
  return std::any_of(stages.begin(), stages.end(), [&](const std::string& name) {
    return FindStage(name)->TakesSpeechField(speech_field);
  });
}

bool Pipeline::TakesSpeechField(Task task, std::string_view field) const {
  return AnyTakes(StagesOf(task), field);
}

bool Pipeline::translates() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host->stage().translates(); });
}

bool Pipeline::calls_tools() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host->stage().calls_tools(); });
}

bool Pipeline::samples() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host->stage().samples(); });
}

bool Pipeline::samples(std::string_view stage) const {
  const Stage* found = FindStage(stage);
  return found != nullptr && found->samples();
}

std::vector<std::string> Pipeline::Voices() const {
  std::vector<std::string> voices;
  for (const auto& host : hosts_) {
    for (std::string& voice : host->stage().Voices()) voices.push_back(std::move(voice));
  }
  for (const auto& [alias, voice] : config_.voices) voices.push_back(alias);
  for (const auto& voice : voice_store_.All()) voices.push_back(voice->name);
  return voices;
}

StatusOr<std::string> Pipeline::ResolveVoice(std::string_view name) const {
  if (name.empty() || name == "default") return std::string();
  for (const auto& [alias, voice] : config_.voices) {
    if (alias == name) return voice;
  }
  const std::vector<std::string> voices = Voices();
  if (std::find(voices.begin(), voices.end(), name) != voices.end()) return std::string(name);
  return InvalidArgument("voice", fmt::format("there is no voice `{}`; there are {}",
                                              name.substr(0, 64), fmt::join(voices, ", ")));
}

Status Pipeline::SetVoice(std::string_view name, Request* request) const {
  const auto uploaded = voice_store_.Find(name);
  if (uploaded == nullptr) {
    PORTICO_ASSIGN_OR_RETURN(request->speech.voice, ResolveVoice(name));
    return OkStatus();
  }
  request->speech.voice = uploaded->name;
  request->references.push_back({"voice", uploaded->ref_text, uploaded->sound});
  if (TakesSpeechField(request->task, "task_type")) {
    request->speech_fields = Json(JsonObject{{"task_type", Json("Base")}});
  }
  return OkStatus();
}

bool Pipeline::FindsAnswer(Task task) const {
  const std::vector<std::string> reached = StagesOf(task);
  const bool ends = std::any_of(reached.begin(), reached.end(), [this](const std::string& name) {
    return config_.Find(name)->terminal;
  });
  return ends && std::any_of(reached.begin(), reached.end(), [&](const std::string& name) {
           return FindStage(name)->Answers(task);
         });
}

Status Pipeline::CheckServes(Task task) const {
  if (Serves(task)) return OkStatus();
  switch (task) {
    case Task::kSpeech:
      return InvalidArgument("input", "input: no stage of this pipeline speaks");
    case Task::kTranscription:
      return InvalidArgument("file", "file: no stage of this pipeline recognizes speech");
    default:
      return InvalidArgument("messages", "messages: no stage of this pipeline answers chats");
  }
}

size_t Pipeline::in_flight() const { return live_->count->load(); }

}  // namespace portico::pipeline
