#include "engine/sglang/scheduler_link.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/log.h"

namespace portico::sglang {
namespace {

// How long the scheduler may take to say that an aborted stream has ended, before its end is told without it.
constexpr std::chrono::seconds kAbortPatience{2};
constexpr std::chrono::milliseconds kRetrySend{5};
// Frames of one turn: then what they gave is delivered.
constexpr int kFramesATurn = 64;

Status Died() {
  return Error(StatusCode::kUnavailable, "the engine has died; its requests are lost");
}
Status Stopped() { return Error(StatusCode::kUnavailable, "the engine has stopped"); }

}  // namespace

StatusOr<std::unique_ptr<SchedulerLink>> SchedulerLink::Start(
    std::shared_ptr<const Codec> codec, const Facts& facts, int exit_descriptor,
    LinkCounters* counters, absl::AnyInvocable<void()> on_death,
    absl::AnyInvocable<void(const Stream&)> on_stream_end) {
  std::unique_ptr<SchedulerLink> link(new SchedulerLink);
  link->codec_ = std::move(codec);
  std::random_device random;
  link->rid_prefix_ = fmt::format("{:08x}{:08x}", random(), random());
  link->draft_tokens_ = facts.draft_tokens;
  link->counters_ = counters;
  link->on_death_ = std::move(on_death);
  link->on_stream_end_ = std::move(on_stream_end);
  link->exit_descriptor_ = exit_descriptor;
  link->wake_descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  PORTICO_ASSIGN_OR_RETURN(link->input_,
                           net::ZmqSocket::BindPush(link->context_, facts.scheduler_input));
  PORTICO_ASSIGN_OR_RETURN(link->tokenizer_,
                           net::ZmqSocket::BindPull(link->context_, facts.tokenizer));
  PORTICO_ASSIGN_OR_RETURN(link->detokenizer_,
                           net::ZmqSocket::BindPull(link->context_, facts.detokenizer));
  {
    const MutexLock lock(&link->join_mutex_);
    link->thread_ = std::thread([raw = link.get()] { raw->Run(); });
  }
  return link;
}

SchedulerLink::~SchedulerLink() {
  Stop();
  if (wake_descriptor_ >= 0) close(wake_descriptor_);
}

std::string SchedulerLink::RidOf(StreamId stream) const {
  return fmt::format("{}{:016x}", rid_prefix_, stream);
}

TimePoint SchedulerLink::last_sign_of_life() const {
  return TimePoint(Duration(last_sign_.load(std::memory_order_relaxed)));
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

bool SchedulerLink::Submit(std::vector<Stream> streams, std::vector<std::string> frames) {
  std::vector<Item> items;
  items.reserve(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    items.emplace_back(Begin{std::move(streams[i]), std::move(frames[i])});
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

void SchedulerLink::Call(std::string_view message, Value fields, size_t replies, TimePoint deadline,
                         ControlAnswer done) {
  Control call;
  call.replies = replies;
  call.deadline = deadline;
  PostCall(message, std::move(fields), std::move(call), std::move(done));
}

void SchedulerLink::CallAfterAborts(std::string_view message, Value fields, size_t replies,
                                    TimePoint deadline, ControlAnswer done) {
  Control call;
  call.replies = replies;
  call.after_aborts = true;
  call.deadline = deadline;
  PostCall(message, std::move(fields), std::move(call), std::move(done));
}

void SchedulerLink::PostCall(std::string_view message, Value fields, Control call,
                             ControlAnswer done) {
  call.token = fmt::format("portico:{}", next_token_.fetch_add(1, std::memory_order_relaxed));
  Map with_token = std::move(std::get<Map>(fields.of));
  with_token.emplace_back("http_worker_ipc", call.token);
  auto frame = EncodeMessage(*codec_->schema, message, std::move(with_token));
  if (!frame.ok()) return done(frame.status());
  call.frame = *std::move(frame);
  // Shared, so that a refusal can still be told.
  auto shared = std::make_shared<ControlAnswer>(std::move(done));
  call.done = [shared](StatusOr<Replies> answer) { (*shared)(std::move(answer)); };
  std::vector<Item> items;
  items.emplace_back(std::move(call));
  if (!Post(std::move(items))) (*shared)(Stopped());
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
  return calls_.empty() && aborted_.empty() ? -1 : 100;
}

void SchedulerLink::Run() {
  bool dead = false;
  while (true) {
    zmq_pollitem_t waits[] = {{nullptr, wake_descriptor_, ZMQ_POLLIN, 0},
                              {tokenizer_.get(), 0, ZMQ_POLLIN, 0},
                              {detokenizer_.get(), 0, ZMQ_POLLIN, 0},
                              {nullptr, exit_descriptor_, ZMQ_POLLIN, 0}};
    zmq_poll(waits, exit_descriptor_ >= 0 ? 4 : 3, PollTimeout());
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t woken = read(wake_descriptor_, &count, sizeof(count));
    {
      const MutexLock lock(&mutex_);
      if (stopping_) break;
    }
    TakeItems();
    ReceiveAll(&detokenizer_);
    ReceiveAll(&tokenizer_);
    Expire(Clock::now());
    DeliverAll();
    if (exit_descriptor_ >= 0 && waits[3].revents != 0) {
      dead = true;
      break;
    }
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
    EndAll(FinishReason::kAbort, Stopped());
  }
}

void SchedulerLink::TakeItems() {
  taken_.clear();
  {
    const MutexLock lock(&mutex_);
    taken_.swap(items_);
  }
  for (Item& item : taken_) {
    const auto* call = std::get_if<Control>(&item);
    const bool waits = call != nullptr && call->after_aborts && !aborted_.empty();
    const bool is_abort =
        std::holds_alternative<AbortOne>(item) || std::holds_alternative<AbortEvery>(item);
    if (waits || (!held_.empty() && !is_abort)) {
      held_.push_back(std::move(item));
    } else {
      std::visit([this](auto& one) { Take(one); }, item);
    }
  }
  taken_.clear();  // callbacks in it may hold on to what owns this link
  FlushUnsent();
}

void SchedulerLink::TakeHeld() {
  bool first = true;
  while (!held_.empty()) {
    const auto* call = std::get_if<Control>(&held_.front());
    if (call != nullptr && call->after_aborts && !first && !aborted_.empty()) return;
    first = false;
    Item item = std::move(held_.front());
    held_.pop_front();
    std::visit([this](auto& one) { Take(one); }, item);
  }
}

void SchedulerLink::Take(Begin& item) {
  Send(std::move(item.frame));
  const StreamId id = item.stream.id;
  streams_.emplace(id, std::move(item.stream));
}

void SchedulerLink::Take(AbortOne& item) {
  const auto it = streams_.find(item.stream);
  if (it == streams_.end()) return AbortHeld(item.stream);
  if (it->second.aborted) return;
  SendAbort(item.stream);
  it->second.aborted = true;
  it->second.aborted_at = Clock::now();
  aborted_.push_back(item.stream);
}

// It has not been sent yet.
void SchedulerLink::AbortHeld(StreamId id) {
  for (auto it = held_.begin(); it != held_.end(); ++it) {
    auto* begin = std::get_if<Begin>(&*it);
    if (begin == nullptr || begin->stream.id != id) continue;
    Stream stream = std::move(begin->stream);
    held_.erase(it);
    Stream* added = &streams_.emplace(id, std::move(stream)).first->second;
    return End(added, FinishReason::kAbort, OkStatus());
  }
}

void SchedulerLink::Take(AbortEvery&) {
  for (auto& [id, stream] : streams_) {
    if (stream.aborted) continue;
    SendAbort(id);
    stream.aborted = true;
    stream.aborted_at = Clock::now();
    aborted_.push_back(id);
  }
}

void SchedulerLink::Take(Control& item) {
  Send(std::move(item.frame));
  if (item.replies == 0) return item.done(Replies{});
  std::string token = item.token;
  calls_.emplace(std::move(token), std::move(item));
}

void SchedulerLink::SendAbort(StreamId stream) {
  auto frame = EncodeMessage(*codec_->schema, "AbortReq", Map{{"rid", RidOf(stream)}});
  if (frame.ok()) Send(*std::move(frame));
}

void SchedulerLink::Send(std::string frame) {
  FlushUnsent();
  if (!unsent_.empty() || !input_.Send(frame)) unsent_.push_back(std::move(frame));
}

void SchedulerLink::FlushUnsent() {
  while (!unsent_.empty() && input_.Send(unsent_.front())) unsent_.pop_front();
}

void SchedulerLink::ReceiveAll(net::ZmqSocket* socket) {
  std::string_view frame;
  for (int i = 0; i < kFramesATurn && socket->Receive(&frame); ++i) {
    last_sign_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    OnFrame(frame);
  }
}

void SchedulerLink::OnReply(Message message) {
  const Value* token = message.fields.Find("http_worker_ipc");
  const auto* text = token == nullptr ? nullptr : token->As<std::string>();
  const auto it = text == nullptr ? calls_.end() : calls_.find(*text);
  if (it == calls_.end()) return;  // its caller has given up
  it->second.got.push_back(std::move(message));
  if (it->second.got.size() < it->second.replies) return;
  Control call = std::move(it->second);
  calls_.erase(it);
  call.done(std::move(call.got));
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
  TakeHeld();
  while (!streams_.empty()) End(&streams_.begin()->second, reason, error);
  auto calls = std::move(calls_);
  calls_.clear();
  for (auto& [token, call] : calls) call.done(error);
  unsent_.clear();
  aborted_.clear();
  DeliverAll();
}

void SchedulerLink::Expire(TimePoint now) {
  const bool paused = paused_.load(std::memory_order_relaxed);
  const auto waits = [&](StreamId id) {
    const auto it = streams_.find(id);
    if (it == streams_.end()) return false;
    if (!paused && now - it->second.aborted_at < kAbortPatience) return true;
    End(&it->second, FinishReason::kAbort, OkStatus());
    return false;
  };
  std::erase_if(aborted_, [&](StreamId id) { return !waits(id); });
  if (aborted_.empty()) TakeHeld();
  std::vector<Control> late;
  for (auto it = calls_.begin(); it != calls_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    late.push_back(std::move(it->second));
    calls_.erase(it++);
  }
  for (Control& call : late) {
    call.done(Error(StatusCode::kDeadlineExceeded, "the engine has not answered in time"));
  }
}

void SchedulerLink::DeliverAll() {
  token_box_.Deliver();
  pooling_box_.Deliver();
}

}  // namespace portico::sglang
