// Runs of requests in stage processes: placing them, feeding them, and what they answer.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline/config/config_graph.h"
#include "pipeline/process/group_state.h"
#include "pipeline/remote/frame.h"

namespace portico::pipeline {
namespace {

// Room is given for so many parts or bytes at a time: less than a process may have under way.
constexpr int kRoomParts = 64;
constexpr size_t kRoomBytes = ProcessGroup::kEmitBytes / 4;

// Some, and no others.
bool AreIn(const std::vector<std::string>& known, const std::vector<std::string>& names) {
  return !names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return HasName(known, name);
  });
}

Status Unasked() {
  return Error(StatusCode::kInvalidArgument, "it answered for a request that it has not");
}

std::vector<Part> One(Part part) {
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  return parts;
}

StatusOr<std::vector<std::string>> ReadNames(std::string_view text) {
  const auto bad = [] {
    return Error(StatusCode::kInvalidArgument, "it sent what is no list of names");
  };
  auto json = Json::Parse(text);
  if (!json.ok() || !json->is_array()) return bad();
  std::vector<std::string> names;
  for (const Json& name : json->as_array()) {
    if (!name.is_string()) return bad();
    names.push_back(name.as_string());
  }
  return names;
}

// Which stages around its own a run has named: kChoose, kEndStreams or kWaitFor.
Status TakeNames(const Message& message, const StageConfig& stage, StageOutput* output) {
  PORTICO_ASSIGN_OR_RETURN(std::vector<std::string> names, ReadNames(message.text));
  if (message.kind == MessageKind::kChoose) {
    output->Choose(std::move(names));
  } else if (message.kind == MessageKind::kEndStreams) {
    output->EndStreams(std::move(names));
  } else if (AreIn(stage.wait_for, names)) {
    output->WaitFor(std::move(names));
  } else {
    return Error(StatusCode::kInvalidArgument,
                 "it waits for stages that are not in its `wait_for`");
  }
  return OkStatus();
}

}  // namespace

// The coordinator's side of a run.
class ProcessGroup::Run final : public StageRun {
 public:
  Run(ProcessGroup* group, CallPtr call) : group_(*group), call_(std::move(call)) {}
  ~Run() override { Run::Abort(); }

  Status OnPart(Part part, std::string_view source) override {
    PORTICO_ASSIGN_OR_RETURN(Datagram datagram,
                             PartMessage(MessageKind::kPart, call_->id, source, part));
    if (group_.options_.remote && !FitsFrame(datagram)) {
      return Error(StatusCode::kResourceExhausted,
                   fmt::format("a part is too long for stage `{}`", call_->stage->name));
    }
    Give({std::move(datagram), true});
    return OkStatus();
  }
  void OnInputEnd() override { Give({RunMessage(MessageKind::kInputEnd, call_->id), false}); }
  void OnSourceEnd(std::string_view source) override {
    Give({SourceEndMessage(call_->id, source), false});
  }
  void OnGathered() override { Give({RunMessage(MessageKind::kGathered, call_->id), false}); }

  void OnPause() override {
    const MutexLock lock(&group_.mutex_);
    if (call_->at != nullptr) group_.Flush(*call_->at);
  }

  void Abort() override {
    const MutexLock lock(&group_.mutex_);
    group_.AbortLocked(call_);
  }
  bool Accepts() const override {
    const MutexLock lock(&group_.mutex_);
    return call_->ended || call_->aborted || (call_->sent == call_->log.size() && !call_->full());
  }
  bool busy() const override {
    const MutexLock lock(&group_.mutex_);
    return !call_->outstanding.empty() || call_->sent < call_->log.size();
  }
  void OnRoom() override {
    const MutexLock lock(&group_.mutex_);
    group_.GiveRoom(*call_);
  }

 private:
  void Give(Call::Given given) {
    const MutexLock lock(&group_.mutex_);
    if (call_->ended || call_->aborted) return;
    call_->kept_bytes += given.datagram.size();
    call_->log.push_back(std::move(given));
    if (call_->kept_bytes > kMaxKept) group_.Forget(*call_);
    group_.Pump(*call_);
  }

  ProcessGroup& group_;
  const CallPtr call_;
};

std::unique_ptr<StageRun> ProcessGroup::NewRun(const StageConfig& stage,
                                               const std::shared_ptr<const Request>& request,
                                               std::shared_ptr<StageOutput> output) {
  const std::vector<std::string> taken =
      request->references.empty() && request->speech_fields.is_null()
          ? std::vector<std::string>()
          : Facts(stage.name).speech_fields;
  const std::string json = RequestJson(*request, taken);
  auto call = std::make_shared<Call>();
  call->stage = &stage;
  call->parts = dynamic_cast<PartsInProcess*>(output.get());
  call->output = std::move(output);
  call->replays = call->output->anew() ? 1 : 0;
  call->replayable = stage.replay && call->replays == 0;
  {
    const MutexLock lock(&mutex_);
    call->id = ++last_run_;
  }
  Status begun = AddStart(*call, *request, json, taken);
  {
    // At once: of a process that dies in between, a call that waits then would not be told.
    const MutexLock lock(&mutex_);
    if (begun.ok()) begun = AvailableLocked(stage.name);
    call->ended = !begun.ok();
    if (begun.ok()) {
      waiting_.push_back(call);
      PlaceWaiting();
    }
  }
  if (!begun.ok()) call->output->End(std::move(begun));
  return std::make_unique<Run>(this, std::move(call));
}

Status ProcessGroup::AddStart(Call& call, const Request& request, std::string_view json,
                              std::span<const std::string> taken) {
  const auto add = [&call](StatusOr<Datagram> datagram) {
    if (!datagram.ok()) return datagram.status();
    call.kept_bytes += datagram->size();
    call.log.push_back({*std::move(datagram), false});
    return OkStatus();
  };
  PORTICO_RETURN_IF_ERROR(add(StartMessage(call.id, call.stage->name, json)));
  size_t index = 0;
  for (const VoiceReference& reference : request.references) {
    if (!GetsReference(reference, taken)) continue;
    PORTICO_RETURN_IF_ERROR(add(ReferenceMessage(call.id, index++, *reference.sound)));
  }
  return OkStatus();
}

ProcessGroup::Process* ProcessGroup::FindPlace(const Call& call) {
  const auto facts = facts_.find(call.stage->name);
  const int most = facts == facts_.end() ? 0 : facts->second.max_running;
  Process* best = nullptr;
  for (const auto& process : processes_) {
    if (process->state != State::kUp) continue;
    if (most > 0) {
      const auto running =
          std::count_if(process->calls.begin(), process->calls.end(),
                        [&call](const auto& other) { return other.second->stage == call.stage; });
      if (running >= most) continue;
    }
    if (best == nullptr || process->calls.size() < best->calls.size()) best = process.get();
  }
  return best;
}

void ProcessGroup::Put(Process& process, const CallPtr& call) {
  call->at = &process;
  process.calls.emplace(call->id, call);
  Pump(*call);
}

void ProcessGroup::PlaceWaiting() {
  std::deque<CallPtr> still;
  for (CallPtr& call : waiting_) {
    if (Process* process = FindPlace(*call)) {
      Put(*process, call);
    } else {
      still.push_back(std::move(call));
    }
  }
  waiting_ = std::move(still);
}

void ProcessGroup::Pump(Call& call) {
  if (call.at == nullptr || call.at->state != State::kUp) return;
  while (call.sent < call.log.size()) {
    const Call::Given& next = call.log[call.sent];
    if (next.is_part && call.full()) break;
    if (next.is_part) {
      call.outstanding.push_back(next.datagram.size());
      call.outstanding_bytes += next.datagram.size();
    }
    SendLater(*call.at, next.datagram);
    ++call.sent;
  }
  if (!call.replayable) Forget(call);
}

void ProcessGroup::Forget(Call& call) {
  call.replayable = false;
  call.log.erase(call.log.begin(), call.log.begin() + static_cast<ptrdiff_t>(call.sent));
  call.sent = 0;
}

void ProcessGroup::GiveRoom(Call& call) {
  if (call.unacked < kRoomParts && call.unacked_bytes < kRoomBytes) return;
  if (call.at == nullptr || call.ended || call.aborted) return;
  Send(*call.at, NumberMessage(MessageKind::kRoom, call.id, call.unacked));
  call.unacked = 0;
  call.unacked_bytes = 0;
}

void ProcessGroup::AbortLocked(const CallPtr& call) {
  if (call->ended || call->aborted) return;
  call->aborted = true;
  call->aborted_at = Clock::now();
  call->log.clear();
  call->sent = 0;
  if (call->at != nullptr) return Send(*call->at, RunMessage(MessageKind::kAbort, call->id));
  call->ended = true;
  std::erase(waiting_, call);
}

ProcessGroup::CallPtr ProcessGroup::Heard(Process& process, uint64_t run) {
  const MutexLock lock(&mutex_);
  process.heard = Clock::now();
  const auto at = process.calls.find(run);
  return at == process.calls.end() ? nullptr : at->second;
}

// Parts of one run that follow each other go on together.
Status ProcessGroup::HandleAll(Process& process, std::vector<Message> messages) {
  for (size_t i = 0; i < messages.size();) {
    if (messages[i].kind != MessageKind::kEmit) {
      PORTICO_RETURN_IF_ERROR(Handle(process, std::move(messages[i++])));
      continue;
    }
    const uint64_t run = messages[i].run;
    std::vector<Part> parts;
    for (; i < messages.size() && messages[i].kind == MessageKind::kEmit && messages[i].run == run;
         ++i) {
      parts.push_back(std::move(messages[i].part));
    }
    const CallPtr call = Heard(process, run);
    if (call == nullptr) return Unasked();
    OnEmit(call, std::move(parts), {});
  }
  return OkStatus();
}

Status ProcessGroup::Handle(Process& process, Message message) {
  const auto bad = [](std::string_view why) {
    return Error(StatusCode::kInvalidArgument, std::string(why));
  };
  const CallPtr call = Heard(process, message.run);
  switch (message.kind) {
    case MessageKind::kReady:
      return OnReady(process, message);
    case MessageKind::kFailed:
      return Error(StatusCode::kUnavailable, message.text);
    case MessageKind::kPong:
      return OkStatus();
    case MessageKind::kTook: {
      if (call == nullptr) return Unasked();
      bool again = false;
      {
        const MutexLock lock(&mutex_);
        if (call->outstanding.empty()) return bad("it took a part twice");
        again = ++call->worked <= call->most_worked;
        if (!again) call->most_worked = call->worked;
        call->outstanding_bytes -= call->outstanding.front();
        call->outstanding.pop_front();
        Pump(*call);
        Flush(process);
        if (call->aborted) return OkStatus();
      }
      if (call->parts == nullptr) {
        call->output->Wake();
      } else {
        call->parts->Worked(again);
      }
      return OkStatus();
    }
    case MessageKind::kEmitTo:
      if (call == nullptr) return Unasked();
      if (!HasName(StagesBehind(*call->stage), message.name)) {
        return bad("it sent a part to a stage that is not behind it");
      }
      OnEmit(call, One(std::move(message.part)), message.name);
      return OkStatus();
    case MessageKind::kChoose:
    case MessageKind::kEndStreams:
    case MessageKind::kWaitFor:
      if (call == nullptr) return Unasked();
      return TakeNames(message, *call->stage, call->output.get());
    case MessageKind::kEnd: {
      if (call == nullptr) return bad("it ended a request twice");
      bool aborted = false;
      {
        const MutexLock lock(&mutex_);
        process.calls.erase(call->id);
        call->ended = true;
        call->log.clear();
        call->sent = 0;
        aborted = call->aborted;
        PlaceWaiting();
        FlushAll();
      }
      if (!aborted) call->output->End(std::move(message.status));
      return OkStatus();
    }
    default:
      return bad("it sent a message that is not for this end");
  }
}

void ProcessGroup::OnEmit(const CallPtr& call, std::vector<Part> parts, std::string_view target) {
  const auto count = static_cast<int>(parts.size());
  size_t bytes = 0;
  for (const Part& part : parts) {
    bytes += PartBytes(part);
    const auto* file =
        std::get_if<FilePart>(&part);  // not the request's own: the process counts it
    if (file != nullptr && file->bytes != nullptr) bytes += file->bytes->size();
  }
  {
    const MutexLock lock(&mutex_);
    if (call->aborted) return;
    Forget(*call);
    // Before they go on: who takes them may ask for room at once.
    call->unacked += count;
    call->unacked_bytes += bytes;
  }
  const bool wanted = target.empty() ? call->output->EmitAll(std::move(parts))
                                     : call->output->EmitTo(std::move(parts.front()), target);
  const bool room = wanted && call->output->HasRoom();
  const MutexLock lock(&mutex_);
  if (!wanted) return AbortLocked(call);
  if (room) GiveRoom(*call);
}

}  // namespace portico::pipeline
