#include "pipeline/process/stage_worker.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/log.h"
#include "base/mutex.h"
#include "pipeline/process/process_group.h"
#include "pipeline/process/stage_events.h"
#include "pipeline/process/unix_channel.h"
#include "pipeline/process/worker_outbox.h"
#include "pipeline/stage_faults.h"

namespace portico::pipeline {
namespace {

constexpr size_t kMaxUnacked = 256;  // parts
// How long a thread waits for another run before it ends.
constexpr std::chrono::seconds kThreadPatience{10};

class Worker;

// A run and its output, on a thread of its own.
class WorkerRun final : public StageOutput,
                        public StageFaults,
                        public std::enable_shared_from_this<WorkerRun> {
 public:
  WorkerRun(Worker* worker, uint64_t id, Stage* stage, std::shared_ptr<const Request> request,
            const StageLabels* labels)
      : worker_(*worker),
        id_(id),
        stage_(*stage),
        request_(std::move(request)),
        events_(labels, *request_) {}

  // From the reader.
  void Give(std::string source, Part part) {
    const MutexLock lock(&mutex_);
    input_.emplace_back(std::move(source), std::move(part));
    changed_.NotifyAll();
  }
  void EndInput() {
    const MutexLock lock(&mutex_);
    input_ended_ = true;
    changed_.NotifyAll();
  }
  void Abort() {
    const MutexLock lock(&mutex_);
    aborted_ = true;
    if (run_ != nullptr) run_->Abort();
    changed_.NotifyAll();
  }
  void GiveRoom(int64_t parts) {
    const MutexLock lock(&mutex_);
    for (; parts > 0 && !unacked_.empty(); --parts) {
      unacked_bytes_ -= unacked_.front();
      unacked_.pop_front();
    }
    changed_.NotifyAll();
  }

  void Work();

  bool Emit(Part part) override;
  void End(Status status) override;
  bool aborted() const override {
    const MutexLock lock(&mutex_);
    return aborted_;
  }
  bool HasRoom() const override {
    const MutexLock lock(&mutex_);
    return TakesMore();
  }

  void SendGarbage() override;
  void SendEnd() override;
  void AnswerStranger() override;

 private:
  struct Input {
    std::string source;
    std::optional<Part> part;  // nothing: no more come
  };

  // Waits for what the run is given next. Nothing: the run is over.
  std::optional<Input> NextInput();
  // NextInput() would not wait.
  bool HasInput() const {
    const MutexLock lock(&mutex_);
    return !input_.empty() || (input_ended_ && !told_end_);
  }
  // NextInput() would tell that no more come.
  bool IsAtEnd() const {
    const MutexLock lock(&mutex_);
    return input_.empty() && input_ended_ && !told_end_;
  }
  bool TakesMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return unacked_.size() < kMaxUnacked && unacked_bytes_ < ProcessGroup::kEmitBytes;
  }

  Worker& worker_;
  const uint64_t id_;
  Stage& stage_;
  const std::shared_ptr<const Request> request_;

  StageEvents events_;  // Work() counts what it takes; sent parts are counted under mutex_

  mutable Mutex mutex_;
  CondVar changed_;
  StageRun* run_ ABSL_GUARDED_BY(mutex_) = nullptr;  // while Work() has one
  std::deque<std::pair<std::string, Part>> input_ ABSL_GUARDED_BY(mutex_);
  std::deque<size_t> unacked_ ABSL_GUARDED_BY(mutex_);
  size_t unacked_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_end_ ABSL_GUARDED_BY(mutex_) = false;  // the run knows that no input comes
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

const JsonArray& ListOrNone(const Json* value) {
  static const JsonArray none;
  return value != nullptr && value->is_array() ? value->as_array() : none;
}

class Worker {
 public:
  Worker(int socket, const Pipeline::Kinds& kinds)
      : socket_(socket), outbox_(socket), kinds_(kinds) {}

  int Serve() {
    while (true) {
      auto received = ReceiveDatagram(socket_, /*wait=*/true);
      if (!received.ok() || received->ended) return received.ok() ? 0 : 1;
      auto messages = ReadMessages(received->message);
      if (!messages.ok()) {
        LogError("stage process: {}", MessageOf(messages.status()));
        return 1;
      }
      for (Message& message : *messages) Handle(std::move(message));
    }
  }

  WorkerOutbox& outbox() { return outbox_; }
  void Drop(uint64_t id) {
    const MutexLock lock(&mutex_);
    runs_.erase(id);
  }

 private:
  void Handle(Message message) {
    if (message.kind == MessageKind::kInit) return Init(message.text);
    if (message.kind == MessageKind::kStart) return Start(message);
    if (message.kind == MessageKind::kProfile) return Profile(message.text);
    if (message.kind == MessageKind::kPing) {
      return outbox_.Send(NumberMessage(MessageKind::kPong, 0, message.number));
    }
    std::shared_ptr<WorkerRun> run;
    {
      const MutexLock lock(&mutex_);
      const auto at = runs_.find(message.run);
      if (at == runs_.end()) return;  // it has ended meanwhile
      run = at->second;
    }
    if (message.kind == MessageKind::kPart) {
      run->Give(std::move(message.name), std::move(message.part));
    } else if (message.kind == MessageKind::kInputEnd) {
      run->EndInput();
    } else if (message.kind == MessageKind::kAbort) {
      run->Abort();
    } else if (message.kind == MessageKind::kRoom) {
      run->GiveRoom(message.number);
    }
  }

  void Init(const std::string& text) {
    auto json = Json::Parse(text);
    const Json* list = json.ok() ? json->Find("stages") : nullptr;
    Json facts(JsonObject{});
    for (const Json& one : ListOrNone(list)) {
      StageConfig config;
      config.name = one.GetString("name");
      config.factory_path = one.GetString("factory_path");
      config.process = config.name;  // it has one: this
      const Json* factory = one.Find("factory");
      config.factory = factory != nullptr && factory->is_object() ? *factory : Json(JsonObject{});
      for (const Json& target : ListOrNone(one.Find("next"))) {
        if (target.is_string()) config.next.push_back(target.as_string());
      }
      if (Status made = Make(config, &facts); !made.ok()) {
        return SendText(MessageKind::kFailed, MessageOf(made));
      }
    }
    Json ready(JsonObject{});
    ready.Set("stages", std::move(facts));
    SendText(MessageKind::kReady, ready.Dump());
  }

  void SendText(MessageKind kind, std::string_view text) {
    const auto datagram = TextMessage(kind, text);
    if (datagram.ok()) outbox_.Send(*datagram);
  }

  Status Make(const StageConfig& config, Json* facts) {
    const auto kind = kinds_.find(config.factory_path);
    if (kind == kinds_.end()) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("`{}` cannot run in a process of its own", config.factory_path));
    }
    PORTICO_ASSIGN_OR_RETURN(std::unique_ptr<Stage> stage, kind->second(config));
    PORTICO_RETURN_IF_ERROR(stage->Ready());
    Json one(JsonObject{});
    one.Set("max_running", static_cast<int64_t>(stage->max_running()));
    Json voices(JsonArray{});
    for (std::string& voice : stage->Voices()) voices.as_array().emplace_back(std::move(voice));
    one.Set("voices", std::move(voices));
    facts->Set(config.name, std::move(one));
    stages_[config.name] = std::move(stage);
    labels_.emplace(config.name, StageLabels(config.name, config.next));
    if (first_stage_.empty()) first_stage_ = config.name;
    return OkStatus();
  }

  void Start(const Message& message) {
    const auto stage = stages_.find(message.name);
    auto request = ReadRequest(message.text);
    Status status = request.ok() ? OkStatus() : request.status();
    if (stage == stages_.end()) status = Error(StatusCode::kInternal, "there is no such stage");
    // A voice is loaded by this, too.
    if (status.ok()) status = stage->second->Check(*request);
    if (!status.ok()) return outbox_.Send(EndMessage(message.run, status));
    auto run = std::make_shared<WorkerRun>(this, message.run, stage->second.get(),
                                           std::make_shared<const Request>(*std::move(request)),
                                           &labels_.at(message.name));
    {
      const MutexLock lock(&mutex_);
      runs_[message.run] = run;
    }
    {
      const MutexLock lock(&mutex_);
      if (idle_threads_ > waiting_.size()) {
        waiting_.push_back(std::move(run));
        return changed_.NotifyOne();
      }
    }
    std::thread([this, first = std::move(run)]() mutable { WorkOn(std::move(first)); }).detach();
  }

  // Of a thread: this run and then others that come soon.
  void WorkOn(std::shared_ptr<WorkerRun> run) {
    while (run != nullptr) {
      run->Work();
      run.reset();
      const auto deadline = std::chrono::steady_clock::now() + kThreadPatience;
      const MutexLock lock(&mutex_);
      ++idle_threads_;
      while (waiting_.empty() && changed_.WaitUntil(&mutex_, deadline)) {
      }
      --idle_threads_;
      if (waiting_.empty()) continue;
      run = std::move(waiting_.front());
      waiting_.pop_front();
    }
  }

  // Waits until the recorder runs, so that the profile has the parts behind this message, but not long for a slow disk.
  // A folder that cannot be written is reported in the log.
  void Profile(const std::string& text) {
    auto json = Json::Parse(text);
    if (!json.ok() || json->Find("run_id") == nullptr) {
      return events::Stop("", [](const StatusOr<std::string>&) {});
    }
    events::RunOptions options;
    options.run_id = json->GetString("run_id");
    options.directory = json->GetString("event_dir");
    options.stage = first_stage_;
    options.max_bytes = json->GetInt("max_bytes", options.max_bytes);
    auto started = std::make_shared<std::promise<void>>();
    std::future<void> waits = started->get_future();
    events::Start(std::move(options), [started](const Status& status) {
      if (!status.ok()) LogWarning("no profile of this stage: {}", MessageOf(status));
      started->set_value();
    });
    waits.wait_for(std::chrono::seconds(1));
  }

  const int socket_;
  WorkerOutbox outbox_;
  const Pipeline::Kinds& kinds_;
  std::string first_stage_;
  std::map<std::string, StageLabels, std::less<>> labels_;
  std::map<std::string, std::unique_ptr<Stage>, std::less<>> stages_;
  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<WorkerRun>> runs_ ABSL_GUARDED_BY(mutex_);
  CondVar changed_;
  std::deque<std::shared_ptr<WorkerRun>> waiting_ ABSL_GUARDED_BY(mutex_);  // for an idle thread
  size_t idle_threads_ ABSL_GUARDED_BY(mutex_) = 0;
};

std::optional<WorkerRun::Input> WorkerRun::NextInput() {
  const MutexLock lock(&mutex_);
  while (!aborted_ && !ended_ && input_.empty() && (!input_ended_ || told_end_)) {
    changed_.Wait(&mutex_);
  }
  if (aborted_ || ended_) return std::nullopt;
  if (input_.empty()) {
    told_end_ = true;
    return Input{};
  }
  Input next{std::move(input_.front().first), std::move(input_.front().second)};
  input_.pop_front();
  return next;
}

void WorkerRun::Work() {
  std::unique_ptr<StageRun> run = stage_.Start(request_, shared_from_this());
  {
    const MutexLock lock(&mutex_);
    run_ = run.get();
  }
  while (std::optional<Input> next = NextInput()) {
    if (!next->part) {
      run->OnInputEnd();
      worker_.outbox().SendNow();
      continue;
    }
    events_.Took(next->source, *next->part);
    const TimePoint began = Clock::now();
    Status status = run->OnPart(*std::move(next->part), next->source);
    const Datagram took = RunMessage(MessageKind::kTook, id_);
    if (!HasInput()) {
      worker_.outbox().Send(took);
    } else if (IsAtEnd() && Clock::now() - began < WorkerOutbox::kGap) {
      // The end of the run mostly follows. That it may take long is no matter: no other part waits for this one, and the time until
      // now is too short to be missed as progress.
      worker_.outbox().Keep(took);
    } else {
      worker_.outbox().SendWithNext(took);
    }
    if (!status.ok()) End(std::move(status));
  }
  {
    const MutexLock lock(&mutex_);
    run_ = nullptr;
  }
  run.reset();
  End(Error(StatusCode::kCancelled, "aborted"));
  worker_.Drop(id_);
}

bool WorkerRun::Emit(Part part) {
  auto datagram = PartMessage(MessageKind::kEmit, id_, {}, part);
  const MutexLock lock(&mutex_);
  while (!aborted_ && !ended_ && !TakesMore()) changed_.Wait(&mutex_);
  if (aborted_ || ended_) return false;
  const size_t bytes = PartBytes(part);
  unacked_.push_back(bytes);
  unacked_bytes_ += bytes;
  events_.Sent(part);
  // With the lock: nothing may come behind the end.
  if (datagram.ok()) worker_.outbox().SendSoon(*datagram);
  return datagram.ok();
}

void WorkerRun::End(Status status) {
  const MutexLock lock(&mutex_);
  if (std::exchange(ended_, true)) return;
  if (status.ok()) events_.Completed();
  worker_.outbox().Send(EndMessage(id_, status));
  changed_.NotifyAll();
}

void WorkerRun::SendGarbage() {
  worker_.outbox().Send({std::string("\0\xc1\xc1\xc1", 4), nullptr});
}

void WorkerRun::SendEnd() { worker_.outbox().Send(EndMessage(id_, OkStatus())); }

void WorkerRun::AnswerStranger() {
  constexpr uint64_t kNobody = uint64_t{1} << 62;
  const auto datagram = PartMessage(MessageKind::kEmit, kNobody, {}, TextPart{"hello"});
  if (datagram.ok()) worker_.outbox().Send(*datagram);
}

}  // namespace

int RunStageWorker(int socket, const Pipeline::Kinds& kinds) {
  // Never destroyed: detached threads use it until the process ends.
  auto* worker = new Worker(socket, kinds);
  const int status = worker->Serve();
  events::Shutdown();
  return status;
}

}  // namespace portico::pipeline
