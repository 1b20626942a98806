#include "pipeline/process/process_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "pipeline/process/group_state.h"
#include "pipeline/process/spawn.h"

namespace portico::pipeline {
namespace {

constexpr int kMaxReplays = 1;
constexpr int kBatch = 64;  // datagrams read before the others are looked at

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

// For the process to end by itself.
void AwaitExit(const Fd& exit, Duration patience) {
  const TimePoint until = Clock::now() + patience;
  pollfd ended{exit.get(), POLLIN, 0};
  while (poll(&ended, 1, std::max(Milliseconds(until - Clock::now()), 0)) < 0 && errno == EINTR) {
  }
}

}  // namespace

ProcessGroup::ProcessGroup(ProcessGroupOptions options, Registry* registry)
    : options_(std::move(options)),
      silence_(options_.stall_s > 0 ? std::chrono::duration_cast<Duration>(
                                          std::chrono::duration<double>(options_.stall_s / 2))
                                    : kQuiet),
      period_(std::clamp<Duration>(silence_ / 8, std::chrono::milliseconds(10),
                                   std::chrono::milliseconds(500))),
      restarts_(registry->AddCounter("portico_stage_process_restarts_total",
                                     "Stage processes that ended and were started again.",
                                     {{"process", options_.name}})),
      replays_(registry->AddCounter("portico_stage_replays_total",
                                    "Requests that began anew because a stage process ended.",
                                    {{"process", options_.name}})),
      garbage_(registry->AddCounter("portico_stage_garbage_total",
                                    "Stage processes that were ended for what they sent.",
                                    {{"process", options_.name}})),
      up_(registry->AddGauge("portico_stage_processes", "Stage processes that are ready.",
                             {{"process", options_.name}})) {}

StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Start(ProcessGroupOptions options,
                                                            Registry* registry) {
  std::unique_ptr<ProcessGroup> group(new ProcessGroup(std::move(options), registry));
  PORTICO_ASSIGN_OR_RETURN(group->init_, TextMessage(MessageKind::kInit, group->options_.init));
  for (int i = 0; i < group->options_.replicas; ++i) {
    auto process = std::make_unique<Process>();
    process->index = i;
    process->wake = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!process->wake.valid()) return Error(StatusCode::kUnavailable, "no eventfd");
    group->processes_.push_back(std::move(process));
  }
  for (const auto& process : group->processes_) {
    process->thread =
        std::thread([self = group.get(), it = process.get()] { self->Supervise(*it); });
  }
  if (!group->options_.remote) {
    group->listener_ = events::AddListener(
        [self = group.get()](const events::RunOptions* runs) { self->OnProfile(runs); });
  }
  PORTICO_RETURN_IF_ERROR(group->WaitForStart());  // the others end with the group
  return group;
}

Status ProcessGroup::WaitForStart() {
  const auto settled = [](const auto& process) {
    return process->state == State::kUp || process->deaths > 0;
  };
  const MutexLock lock(&mutex_);
  while (!std::all_of(processes_.begin(), processes_.end(), settled)) changed_.Wait(&mutex_);
  for (const auto& process : processes_) {
    if (process->state != State::kUp) return Error(StatusCode::kUnavailable, process->why);
  }
  return OkStatus();
}

ProcessGroup::~ProcessGroup() { Stop(); }

void ProcessGroup::OnProfile(const events::RunOptions* runs) {
  Json json(JsonObject{});
  if (runs != nullptr) {
    json.Set("run_id", runs->run_id);
    json.Set("event_dir", runs->directory);
    json.Set("trace_path_template", runs->trace_path_template);
    json.Set("max_bytes", runs->max_bytes);
  }
  auto message = TextMessage(MessageKind::kProfile, json.Dump());
  if (!message.ok()) return;
  const MutexLock lock(&mutex_);
  for (const auto& process : processes_) {
    if (process->state == State::kUp) Send(*process, *message);
  }
  profiled_ = Clock::now();
  profile_.reset();
  if (runs != nullptr) profile_ = *std::move(message);
}

Duration ProcessGroup::EndPatience() const {
  constexpr Duration kUsual = std::chrono::milliseconds(500);
  constexpr Duration kWithProfile = std::chrono::seconds(10);
  constexpr Duration kLately = std::chrono::seconds(60);
  const bool lately = profiled_ && Clock::now() - *profiled_ < kLately;
  return profile_ || lately ? kWithProfile : kUsual;
}

void ProcessGroup::BeginStop() {
  if (listener_ != 0) events::RemoveListener(std::exchange(listener_, 0));
  const MutexLock lock(&mutex_);
  stopping_ = true;
  changed_.NotifyAll();
  for (const auto& process : processes_) Wake(*process);
}

void ProcessGroup::Stop() {
  BeginStop();
  for (const auto& process : processes_) {
    if (process->thread.joinable()) process->thread.join();
  }
}

StageFacts ProcessGroup::Facts(std::string_view stage) const {
  const MutexLock lock(&mutex_);
  const auto facts = facts_.find(stage);
  return facts == facts_.end() ? StageFacts{} : facts->second;
}

void ProcessGroup::Supervise(Process& process) {
  while (true) {
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && changed_.WaitUntil(&mutex_, process.due)) {
      }
      if (stopping_) return;
      if (process.deaths > 0) restarts_.Add();
      process.state = State::kOpening;
      process.started = process.heard = process.pinged = Clock::now();
    }
    const std::string why = Serve(process);
    bool stopping = false;
    pid_t pid = -1;
    Duration patience{};
    {
      const MutexLock lock(&mutex_);
      if (process.state == State::kUp) up_.Add(-1);
      process.state = State::kDown;
      stopping = stopping_;
      pid = process.pid;
      if (stopping) process.channel.reset();
      patience = EndPatience();
    }
    // It ends by itself when its socket does.
    if (stopping && process.exit.valid()) AwaitExit(process.exit, patience);
    std::string how = options_.remote ? "no connection" : "it did not start";
    if (pid > 0) how = EndProcess(pid);
    if (!stopping) {
      LogWarning("stage process `{}` {} has ended ({}){}{}", options_.name, process.index, how,
                 why.empty() ? "" : ": ", why);
    }
    Bury(process, why.empty() ? "the stage's process has ended: " + how : why);
    if (stopping || !options_.restart) return;
  }
}

std::string ProcessGroup::Serve(Process& process) {
  auto link = options_.open(process.index, [this] {
    const MutexLock lock(&mutex_);
    return stopping_;
  });
  if (!link.ok()) return std::string(MessageOf(link.status()));
  {
    const MutexLock lock(&mutex_);
    process.state = State::kStarting;
    process.progress = 0;
    process.pid = link->pid;
    process.channel = std::move(link->channel);
    process.exit = std::move(link->exit);
    Send(process, init_);
  }
  while (true) {
    pollfd waits[3] = {{process.channel->fd(), POLLIN, 0},
                       {process.wake.get(), POLLIN, 0},
                       {process.exit.get(), POLLIN, 0}};
    {
      const MutexLock lock(&mutex_);
      if (stopping_) return "the server is shutting down";
      if (process.channel->keeps()) waits[0].events |= POLLOUT;
    }
    if (poll(waits, 3, Milliseconds(period_)) < 0 && errno != EINTR) return "poll failed";
    if (waits[1].revents != 0) {
      uint64_t count = 0;
      const ssize_t ignored = read(process.wake.get(), &count, sizeof count);
      static_cast<void>(ignored);
    }
    const Status read = ReadAll(process);
    if (!read.ok()) {
      if (read.code() == StatusCode::kInvalidArgument) garbage_.Add();
      return std::string(MessageOf(read));
    }
    std::string late;
    {
      const MutexLock lock(&mutex_);
      process.channel->Flush();
      late = Tick(process, Clock::now());
    }
    if (!late.empty()) return late;
    if (waits[2].revents != 0) return "";
  }
}

// CANCELLED without words: the other end is closed.
Status ProcessGroup::ReadAll(Process& process) {
  for (int i = 0; i < kBatch; ++i) {
    PORTICO_ASSIGN_OR_RETURN(const Received received, process.channel->Receive());
    if (received.empty) return OkStatus();
    if (received.ended) return Error(StatusCode::kCancelled, "");
    PORTICO_ASSIGN_OR_RETURN(auto messages, ReadMessages(received.message));
    PORTICO_RETURN_IF_ERROR(HandleAll(process, std::move(messages)));
  }
  const MutexLock lock(&mutex_);
  Wake(process);  // there may be more
  return OkStatus();
}

Status ProcessGroup::OnReady(Process& process, const Message& message) {
  auto json = Json::Parse(message.text);
  const Json* stages = json.ok() ? json->Find("stages") : nullptr;
  if (stages == nullptr) {
    return Error(StatusCode::kInvalidArgument, "it said that it is ready, and not for what");
  }
  const MutexLock lock(&mutex_);
  if (process.state != State::kStarting) {
    return Error(StatusCode::kInvalidArgument, "it was ready twice");
  }
  for (const StageConfig* stage : options_.stages) {
    StageFacts facts;
    if (const Json* said = stages->Find(stage->name)) {
      facts.max_running =
          static_cast<int>(std::clamp<int64_t>(said->GetInt("max_running", 0), 0, 65536));
      const Json* voices = said->Find("voices");
      for (const Json& voice :
           voices != nullptr && voices->is_array() ? voices->as_array() : JsonArray{}) {
        if (voice.is_string()) facts.voices.push_back(voice.as_string());
      }
      const Json* fields = said->Find("speech_fields");
      for (const Json& field :
           fields != nullptr && fields->is_array() ? fields->as_array() : JsonArray{}) {
        if (field.is_string()) facts.speech_fields.push_back(field.as_string());
      }
    }
    facts_[stage->name] = std::move(facts);
  }
  process.state = State::kUp;
  process.why.clear();
  if (profile_) Send(process, *profile_);
  up_.Add(1);
  PlaceWaiting();
  FlushAll();
  changed_.NotifyAll();
  return OkStatus();
}

void ProcessGroup::SendLater(Process& process, const Datagram& datagram) {
  if (options_.remote || !Pack(datagram, &process.packed)) return Send(process, datagram);
  if (process.packed.bytes.size() >= kMaxPacked) Flush(process);
}

void ProcessGroup::Flush(Process& process) {
  if (process.packed.bytes.empty()) return;
  const Datagram packed = std::exchange(process.packed, {});
  Send(process, packed);
}

void ProcessGroup::FlushAll() {
  for (const auto& process : processes_) Flush(*process);
}

void ProcessGroup::Send(Process& process, const Datagram& datagram) {
  Flush(process);
  if (process.channel == nullptr) return;
  process.channel->Send(datagram);
  if (process.channel->keeps()) Wake(process);
}

void ProcessGroup::Wake(Process& process) {
  const uint64_t one = 1;
  const ssize_t ignored = write(process.wake.get(), &one, sizeof one);
  static_cast<void>(ignored);
}

void ProcessGroup::Bury(Process& process, std::string_view why) {
  constexpr Duration kSteady = std::chrono::seconds(10);
  constexpr Duration kPause = std::chrono::milliseconds(100);
  constexpr Duration kLongest = std::chrono::seconds(10);
  std::vector<CallPtr> failed;
  {
    const MutexLock lock(&mutex_);
    const TimePoint now = Clock::now();
    process.state = State::kDown;
    process.channel.reset();
    process.packed = {};
    process.exit.Close();
    process.pid = -1;
    process.why = why;
    if (now - process.started > kSteady) process.deaths = 0;
    ++process.deaths;
    const int doublings = std::min(process.deaths - 2, 10);
    process.due = now + (process.deaths == 1 ? Duration::zero()
                                             : std::min(kPause * (1 << doublings), kLongest));
    for (auto& [id, call] : std::exchange(process.calls, {})) {
      call->at = nullptr;
      if (call->aborted) {
        call->ended = true;
      } else if (call->replayable && call->replays < kMaxReplays && !stopping_) {
        ++call->replays;
        replays_.Add();
        call->sent = 0;
        call->outstanding.clear();
        call->outstanding_bytes = 0;
        call->worked = 0;
        call->unacked = 0;
        waiting_.push_front(call);
      } else {
        failed.push_back(call);
      }
    }
    PlaceWaiting();
    FlushAll();
    if (!HopeLeft()) {
      for (CallPtr& call : std::exchange(waiting_, {})) failed.push_back(std::move(call));
    }
    for (const CallPtr& call : failed) call->ended = true;
    changed_.NotifyAll();
  }
  for (const CallPtr& call : failed) {
    Status died = Error(
        StatusCode::kUnavailable,
        fmt::format("stage `{}` has ended while it worked on this request", call->stage->name), {},
        "stage_died");
    // What has ended two processes does not get a third.
    if (call->replays == 0) {
      call->output->Died(std::move(died));
    } else {
      call->output->End(std::move(died));
    }
  }
}

bool ProcessGroup::HopeLeft() const {
  constexpr Duration kSoon = std::chrono::seconds(1);
  if (stopping_) return false;
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    // A host that does not answer is waited for as long as one that refuses.
    if (process->state == State::kOpening) return Clock::now() - process->started <= kSoon;
    if (process->state != State::kDown) return true;
    return process->deaths == 0 || (options_.restart && process->due - Clock::now() <= kSoon);
  });
}

Status ProcessGroup::Available(std::string_view stage) const {
  const MutexLock lock(&mutex_);
  return AvailableLocked(stage);
}

Status ProcessGroup::AvailableLocked(std::string_view stage) const {
  if (HopeLeft()) return OkStatus();
  return Error(StatusCode::kUnavailable, fmt::format("stage `{}` is not running", stage), {},
               "stage_died");
}

}  // namespace portico::pipeline
