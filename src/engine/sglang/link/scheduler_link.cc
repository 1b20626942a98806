#include "engine/sglang/link/scheduler_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "base/log.h"
#include "engine/sglang/link/tcp_peers.h"

namespace portico::sglang {
namespace {

// How long the scheduler may take to say that an aborted stream has ended, before its end is told without it.
constexpr std::chrono::seconds kAbortPatience{2};
constexpr std::chrono::milliseconds kRetrySend{5};
// Frames of one turn: then what they gave is delivered.
constexpr int kFramesATurn = 64;

Status Died() {
  return Error(StatusCode::kUnavailable, "the engine failed while the request was running");
}

}  // namespace

StatusOr<std::unique_ptr<SchedulerLink>> SchedulerLink::Start(
    std::shared_ptr<const Codec> codec, const Facts& facts, Listeners listeners,
    int exit_descriptor, LinkCounters* counters, absl::AnyInvocable<void()> on_death,
    absl::AnyInvocable<void(const Stream&)> on_stream_end, LoraCheck check_lora) {
  std::unique_ptr<SchedulerLink> link(new SchedulerLink);
  link->codec_ = std::move(codec);
  std::random_device random;
  link->rid_prefix_ = fmt::format("{:08x}{:08x}", random(), random());
  link->draft_tokens_ = facts.draft_tokens;
  link->counters_ = counters;
  link->on_death_ = std::move(on_death);
  link->on_stream_end_ = std::move(on_stream_end);
  link->check_lora_ = std::move(check_lora);
  link->exit_descriptor_ = exit_descriptor;
  link->wake_descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  link->listeners_ = std::move(listeners);
  PORTICO_RETURN_IF_ERROR(link->BindSockets(facts));
  {
    const MutexLock lock(&link->join_mutex_);
    link->thread_ = std::thread([raw = link.get()] { raw->Run(); });
  }
  return link;
}

Status SchedulerLink::BindSockets(const Facts& facts) {
  const bool guarded = IsTcpAddress(facts.scheduler_input);
  if (guarded) {
    PORTICO_ASSIGN_OR_RETURN(
        auto admits, AdmissionTo({facts.scheduler_input, facts.tokenizer, facts.detokenizer}));
    PORTICO_ASSIGN_OR_RETURN(guard_, net::ZmqGuard::Bind(context_, std::move(admits)));
  }
  const auto binding = [&](size_t index) {
    return net::ZmqBinding{.listener = listeners_.Take(index), .guarded = guarded};
  };
  PORTICO_ASSIGN_OR_RETURN(input_,
                           net::ZmqSocket::BindPush(context_, facts.scheduler_input, binding(0)));
  PORTICO_ASSIGN_OR_RETURN(tokenizer_, LinkInput::Bind(context_, facts.tokenizer, binding(1)));
  PORTICO_ASSIGN_OR_RETURN(detokenizer_, LinkInput::Bind(context_, facts.detokenizer, binding(2)));
  return OkStatus();
}

SchedulerLink::~SchedulerLink() {
  Stop();
  if (wake_descriptor_ >= 0) close(wake_descriptor_);
}

std::string SchedulerLink::RidOf(StreamId stream) const {
  return fmt::format("{}{:016x}", rid_prefix_, stream);
}

void SchedulerLink::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_descriptor_, &one, sizeof(one));
}

bool SchedulerLink::Post(std::vector<Item> items) {
  bool first = false;
  {
    const MutexLock lock(&mutex_);
    if (closed_ || stopping_) return false;
    first = items_.empty();
    for (Item& item : items) items_.push_back(std::move(item));
  }
  if (first) Wake();
  return true;
}

bool SchedulerLink::Submit(std::vector<Stream> streams, std::vector<std::string> frames,
                           std::string prefix, std::shared_ptr<void> held) {
  std::vector<Item> items;
  items.reserve(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    items.emplace_back(Begin{std::move(streams[i]), std::move(frames[i]), std::move(prefix),
                             std::exchange(held, nullptr)});
    prefix.clear();
  }
  const auto count = static_cast<int64_t>(items.size());
  live_.fetch_add(count, std::memory_order_relaxed);
  if (Post(std::move(items))) return true;
  live_.fetch_sub(count, std::memory_order_relaxed);
  return false;
}

void SchedulerLink::Abort(StreamId stream) {
  std::vector<Item> items;
  items.emplace_back(AbortOne{stream});
  Post(std::move(items));
}

void SchedulerLink::AbortAll() {
  std::vector<Item> items;
  items.emplace_back(AbortEvery{});
  Post(std::move(items));
}

void SchedulerLink::RecheckLora(std::string lora) {
  std::vector<Item> items;
  items.emplace_back(Recheck{std::move(lora)});
  Post(std::move(items));
}

void SchedulerLink::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  const MutexLock lock(&join_mutex_);
  if (thread_.joinable()) thread_.join();
}

int SchedulerLink::PollTimeout() const {
  if (!unsent_.empty()) return static_cast<int>(kRetrySend.count());
  return calls_.empty() && aborted_.empty() && held_.empty() ? -1 : 100;
}

// Not zmq_poll(): it asks each socket several times a turn, with a system call each.
void SchedulerLink::Run() {
  LinkInput* const inputs[] = {&detokenizer_, &tokenizer_};
  std::vector<pollfd> waits;
  bool dead = false;
  guard_.Answer();
  while (!dead) {
    waits.assign({{wake_descriptor_, POLLIN, 0},
                  {exit_descriptor_, POLLIN, 0},  // a negative one is ignored
                  {guard_.descriptor(), POLLIN, 0}});
    bool unread = false;
    for (LinkInput* input : inputs) {
      input->AddWaits(&waits);
      unread |= input->IsReady();
    }
    // What it finds is void where it is interrupted.
    if (poll(waits.data(), waits.size(), unread ? 0 : PollTimeout()) < 0) {
      for (pollfd& wait : waits) wait.revents = 0;
    }
    for (LinkInput* input : inputs) input->SetReady(waits);
    if (waits[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t woken = read(wake_descriptor_, &count, sizeof(count));
    }
    {
      const MutexLock lock(&mutex_);
      if (stopping_) break;
    }
    if (waits[2].revents != 0) guard_.Answer();
    TakeItems();
    for (LinkInput* input : inputs) ReceiveAll(input);
    const TimePoint now = Clock::now();
    ExpireAborts(now);
    ExpireCalls(now);
    TakeHeld();
    DeliverAll();
    dead = waits[1].revents != 0;
  }
  {
    const MutexLock lock(&mutex_);
    closed_ = true;
  }
  TakeItems();
  if (dead) {
    EndAll(FinishReason::kError, Died());
    on_death_();
  } else {
    EndAll(FinishReason::kAbort, Error(StatusCode::kUnavailable, "the engine has stopped"));
  }
}

void SchedulerLink::TakeItems() {
  taken_.clear();
  {
    const MutexLock lock(&mutex_);
    taken_.swap(items_);
  }
  for (Item& item : taken_) TakeOrHold(item);
  taken_.clear();  // callbacks in it may hold on to what owns this link
  FlushUnsent();
}

void SchedulerLink::Take(Begin& item) {
  places_.erase(item.stream.id);
  if (!usable_.load(std::memory_order_relaxed) && !paused_) {
    return EndUnsent(std::move(item.stream), FinishReason::kError,
                     Error(StatusCode::kUnavailable,
                           "the engine has released its memory; /resume_memory_occupation gives it "
                           "back"));
  }
  if (item.stream.awaits_lora && ParkUntilLora(item)) return;
  if (item.stream.prefix != 0 && ParkBehindPrefix(item)) return;
  Send(std::move(item.frame), std::move(item.held));
  const StreamId id = item.stream.id;
  streams_.emplace(id, std::move(item.stream));
}

void SchedulerLink::Take(AbortOne& item) {
  const auto it = streams_.find(item.stream);
  if (it == streams_.end()) return AbortUnsent(item.stream);
  if (it->second.aborted) return;
  SendAbort(item.stream);
  it->second.aborted = true;
  it->second.aborted_at = Clock::now();
  aborted_.push_back(item.stream);
}

void SchedulerLink::AbortUnsent(StreamId id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  const auto place = found->second;
  const auto* held = std::get_if<Held::iterator>(&place);
  if (held == nullptr) return AbortParked(std::get<Parked::iterator>(place));
  Stream stream = std::move(std::get<Begin>(**held).stream);
  held_.erase(*held);
  EndUnsent(std::move(stream), FinishReason::kAbort, OkStatus());
}

void SchedulerLink::EndUnsent(Stream stream, FinishReason reason, Status error) {
  const StreamId id = stream.id;
  places_.erase(id);
  End(&streams_.emplace(id, std::move(stream)).first->second, reason, std::move(error));
}

void SchedulerLink::Take(AbortEvery&) {
  for (auto& [id, stream] : streams_) {
    if (stream.aborted) continue;
    SendAbort(id);
    stream.aborted = true;
    stream.aborted_at = Clock::now();
    aborted_.push_back(id);
  }
  AbortAllParked();
  Held held;
  held.swap(held_);
  for (Item& item : held) {
    if (auto* begin = std::get_if<Begin>(&item)) {
      EndUnsent(std::move(begin->stream), FinishReason::kAbort, OkStatus());
    } else {
      held_.push_back(std::move(item));
    }
  }
}

void SchedulerLink::SendAbort(StreamId stream) {
  auto frame = EncodeMessage(*codec_->schema, "AbortReq", Map{{"rid", RidOf(stream)}});
  if (frame.ok()) Send(*std::move(frame));
}

void SchedulerLink::Send(std::string frame, std::shared_ptr<void> held) {
  FlushUnsent();
  Unsent unsent{std::move(frame), std::move(held)};
  if (!unsent_.empty() || !TrySend(unsent)) unsent_.push_back(std::move(unsent));
}

bool SchedulerLink::TrySend(Unsent& unsent) {
  if (unsent.held == nullptr) return input_.Send(unsent.frame);
  return input_.SendOwned(&unsent.frame, &unsent.held);
}

void SchedulerLink::FlushUnsent() {
  while (!unsent_.empty() && TrySend(unsent_.front())) unsent_.pop_front();
}

void SchedulerLink::ReceiveAll(LinkInput* input) {
  std::string_view frame;
  for (int i = 0; i < kFramesATurn && input->Receive(&frame); ++i) OnFrame(frame);
  if (const uint64_t refused = input->TakeRefused(); refused > 0) {
    counters_->bad_frames.fetch_add(refused, std::memory_order_relaxed);
  }
}

void SchedulerLink::BadFrame(std::string_view frame, std::string_view why) {
  counters_->bad_frames.fetch_add(1, std::memory_order_relaxed);
  if (std::exchange(said_bad_frame_, true)) return;
  LogWarning(
      "SGLang sent a frame of {} bytes (`{:.60}`) that cannot be read: {}. Further ones are only "
      "counted.",
      frame.size(), PeekTag(frame), why);
}

SchedulerLink::Stream* SchedulerLink::FindStream(std::string_view rid) {
  if (rid.size() != kRidBytes || !rid.starts_with(rid_prefix_)) return nullptr;
  StreamId id = 0;
  for (const char c : rid.substr(rid_prefix_.size())) {
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return nullptr;
    id = id << 4 | static_cast<StreamId>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  const auto it = streams_.find(id);
  return it == streams_.end() ? nullptr : &it->second;
}

void SchedulerLink::End(Stream* stream, TokenDelta delta) {
  if (on_stream_end_) on_stream_end_(*stream);
  live_.fetch_sub(1, std::memory_order_relaxed);
  if ((stream->id & kPrefixBit) != 0) {
    const StreamId id = stream->id;
    streams_.erase(id);
    return EndPrefix(id, delta.finish, delta.error);
  }
  if (stream->tokens != nullptr) {
    token_box_.Add(stream->tokens, std::move(delta));
  } else {
    PoolingOutput output;
    output.stream = stream->id;
    output.finish = delta.finish;
    output.error = std::move(delta.error);
    pooling_box_.Add(stream->pooling, std::move(output));
  }
  streams_.erase(StreamId(stream->id));
}

void SchedulerLink::EndAll(FinishReason reason, const Status& error) {
  EndAllParked(reason, error);
  while (!streams_.empty()) End(&streams_.begin()->second, reason, error);
  Held held;
  held.swap(held_);
  for (Item& item : held) {
    if (auto* begin = std::get_if<Begin>(&item)) {
      EndUnsent(std::move(begin->stream), reason, error);
    } else if (auto* call = std::get_if<Control>(&item)) {
      call->done(error);
    }
  }
  auto calls = std::move(calls_);
  calls_.clear();
  for (auto& [token, call] : calls) call.done(error);
  unsent_.clear();
  aborted_.clear();
  DeliverAll();
}

void SchedulerLink::ExpireAborts(TimePoint now) {
  std::erase_if(aborted_, [&](StreamId id) {
    const auto it = streams_.find(id);
    if (it == streams_.end()) return true;
    if (!paused_ && now - it->second.aborted_at < kAbortPatience) return false;
    End(&it->second, FinishReason::kAbort, OkStatus());
    return true;
  });
}

void SchedulerLink::DeliverAll() {
  token_box_.Deliver();
  pooling_box_.Deliver();
}

}  // namespace portico::sglang
