// The way back: what a worker answers, and what becomes of its failures.
#include <fmt/format.h>

#include <utility>

#include "absl/strings/match.h"
#include "base/log.h"
#include "message/request_media.h"
#include "router/proxy/error_body.h"
#include "router/proxy/forward_head.h"
#include "router/proxy/hide_addresses.h"
#include "router/proxy/proxy_call.h"

namespace portico::router {
namespace {

constexpr std::string_view kKeepAliveComment = ": keep-alive\n\n";
constexpr Duration kLongestWait = std::chrono::seconds(5);  // for a worker that names a time

// Types are compared without regard to case (RFC 9110, 8.3.1).
bool IsMediaType(std::string_view content_type, absl::string_view lower) {
  if (!absl::StartsWithIgnoreCase({content_type.data(), content_type.size()}, lower)) return false;
  content_type.remove_prefix(lower.size());
  return content_type.empty() || content_type.front() == ';' || content_type.front() == ' ';
}

bool IsEventStream(std::string_view content_type) {
  return IsMediaType(content_type, "text/event-stream");
}

// What says no length is made while it is sent: sound, lines of JSON. One JSON value is of no use in
// parts. In an answer to HEAD no length is made up.
bool ComesInParts(const net::ResponseHead& head, bool asks_head) {
  return head.length < 0 && head.status != 204 && head.status != 304 &&
         (asks_head || !IsMediaType(head.Header("content-type"), "application/json"));
}

bool IsBusy(int status) { return status == 429 || status == 503; }

bool IsServerError(int status) { return status == 500 || status == 502 || status == 504; }

// A Portico server says that it could not read the request's media: it takes all else as before.
bool IsOfMedia(const net::ResponseHead& head) {
  return head.status >= 500 && head.Header(kFailureHeader) == kMediaFailed;
}

// Answers after which another worker may do better (sglang-router's list). Media that one cannot read are no better elsewhere;
// that what reads them is away (503) is.
bool IsRetryable(const net::ResponseHead& head) {
  if (IsServerError(head.status)) return !IsOfMedia(head);
  return IsBusy(head.status) || head.status == 408;
}

}  // namespace

void ProxyCall::OnHead(WorkerCall& call, net::ResponseHead& head) {
  if (&call == prefill_.get() && !OnPrefillStatus(head.status)) return;
  hedge_timer_.reset();
  if (hedge_ != nullptr) {
    if (IsRetryable(head)) {
      NoteFailure(call.worker(), AttemptFailure::kStatus);
      tried_.push_back(call.worker().number());
      call.End(IsBusy(head.status) ? Verdict::kNothing : Verdict::kBad);
      LeaveToOther(call);
      return;
    }
    if (&call == hedge_.get()) std::swap(call_, hedge_);
    LeaveToOther(*hedge_);
  }
  events_ = call.profile();
  reason_ = call.reason();
  worker_id_ = call.worker().id();
  status_ = head.status;
  of_media_ = IsOfMedia(head);
  if (IsRetryable(head) && RetryStatus(call, head)) return;
  if (status_ >= 400) prefill_.reset();  // the decode worker has refused
  if (status_ < 400 && !facts_.opened.empty()) {
    gateway_.sessions().Bind(facts_.opened, call.worker().url());
  }
  gateway_.metrics().first_seconds.Observe(Seconds(call.first_at() - started_));
  encoded_ = !head.Header("content-encoding").empty();
  const int64_t length = head.length;
  const bool asks_head = exchange_->request.method == "HEAD";
  const bool in_parts = ComesInParts(head, asks_head);
  may_be_cut_ = head.to_end;
  hides_ = HidesAddresses(status_);
  TakeHead(call.worker(), head);
  if (asks_head) {
    mode_ = in_parts ? Mode::kBytes : Mode::kWhole;
    response_.head_length = length;
  } else if (hides_) {
    mode_ = Mode::kWhole;
  } else if (IsEventStream(response_.content_type)) {
    mode_ = encoded_ ? Mode::kBytes : Mode::kEvents;
    written_at_ = call.first_at();
    if (mode_ == Mode::kEvents) KeepAlive();
  } else {
    const bool passes = in_parts || length > static_cast<int64_t>(kMaxKept);
    mode_ = passes ? Mode::kBytes : Mode::kWhole;
    if (mode_ == Mode::kWhole && length > 0) response_.body.reserve(static_cast<size_t>(length));
  }
}

void ProxyCall::TakeHead(const Worker& worker, net::ResponseHead& head) {
  response_ = MakeResponseHead(head, worker);
  if (HidesAddresses(head.status)) {
    for (auto& [name, value] : response_.headers) value = HideAddresses(std::move(value), *set_);
  }
  response_.headers.emplace_back("x-request-id", request_id_);
  if (!gateway_.options().show_workers) return;
  response_.headers.emplace_back("x-portico-worker", worker.id());
  if (!prefill_id_.empty()) {
    response_.headers.emplace_back("x-portico-prefill-worker", prefill_id_);
  }
}

bool ProxyCall::OnPrefillStatus(int status) {
  // An answer that the decode worker gives has the prefill behind it.
  if (status < 400 || answer_bytes_ > 0 || mode_ == Mode::kWhole) return false;
  if (streaming_) {  // of comments
    CutStream("the prefill worker has failed the request", "worker_failed");
    return false;
  }
  call_ = std::move(prefill_);
  mode_ = Mode::kNone;
  response_ = {};
  frames_ = {};
  return true;
}

void ProxyCall::NoteFailure(Worker& worker, AttemptFailure kind) {
  gateway_.metrics().failures(kind).Add();
  worker.NoteFailure(kind);
}

bool ProxyCall::RetryStatus(WorkerCall& call, const net::ResponseHead& head) {
  Worker& worker = call.worker();
  // A worker that takes tokens says by a status that it was lost.
  const bool lost = worker.protocol() == Protocol::kGrpc && status_ == 503 &&
                    worker.health() == Health::kUnhealthy;
  const bool unreached = lost && worker.last_cut() < call.sent_at();
  NoteFailure(worker, unreached ? AttemptFailure::kConnect
                      : lost    ? AttemptFailure::kLost
                                : AttemptFailure::kStatus);
  if (!HasAttempts(unreached)) return false;
  const bool busy = (IsBusy(status_) && !lost) || status_ == 408;
  const Verdict verdict = busy ? Verdict::kNothing : Verdict::kBad;
  const bool others = OthersAvailable(worker);
  // If all have been asked, one that names a short time is waited for.
  const Duration wait = busy ? RetryAfter(head.Header("retry-after")) : Duration::zero();
  if (!others && (wait == Duration::zero() || wait > kLongestWait)) return false;
  // Not before: a failure after which nothing is tried costs other requests no retry.
  if (!lost && !gateway_.budget().Take()) return false;
  if (others) {
    tried_.push_back(worker.number());
    call.End(verdict);
    return Recover(worker, unreached);
  }
  call.End(verdict);
  ForgetAnswer();
  tried_.clear();
  gateway_.metrics().retries.Add();
  worker.NoteRetry();
  pause_ = shard_.shard().After(wait, [this] { Attempt(); });
  return true;
}

void ProxyCall::OnStreamFailure(WorkerCall& call, net::HttpResponse& instead) {
  net::ResponseHead head;
  head.status = instead.status;
  head.headers = std::move(instead.headers);
  const bool prefill = &call == prefill_.get();
  if (prefill) {
    if (!OnPrefillStatus(head.status)) return;
    worker_id_ = call.worker().id();
    reason_ = call.reason();
    events_ = call.profile();
  } else {
    failed_status_ = head.status;
    of_media_ = IsOfMedia(head);
    if (streaming_ || answer_bytes_ > 0) {
      prefill_.reset();
      return;  // the client is told by the stream's own events
    }
  }
  const int begun = std::exchange(status_, head.status);
  of_media_ = IsOfMedia(head);
  if (IsRetryable(head) && RetryStatus(call, head)) return;
  if (!prefill) {
    prefill_.reset();
    status_ = begun;
    return;
  }
  TakeHead(call.worker(), head);
  response_.content_type = std::move(instead.content_type);
  response_.body = HidesAddresses(status_) ? HideAddresses(std::move(instead.body), *set_)
                                           : std::move(instead.body);
  call.End(IsFault(status_) ? Verdict::kBad : Verdict::kNothing);
  exchange_->Respond(std::move(response_));
  Finish(status_);
}

void ProxyCall::OnBody(WorkerCall& call, std::string_view bytes) {
  if (&call == prefill_.get()) return;
  answer_bytes_ += bytes.size();
  switch (mode_) {
    case Mode::kWhole:
      response_.body.append(bytes);
      if (hides_ && response_.body.size() > kMaxFailure) {
        call.End(IsFault(status_) ? Verdict::kBad : Verdict::kNothing);
        return Refuse(status_,
                      "the worker has failed; what it says of it is too long to be passed on",
                      "worker_failed", false);
      }
      if (response_.body.size() > kMaxKept) {
        const std::string kept = std::exchange(response_.body, {});
        mode_ = Mode::kBytes;
        Relay(kept);
      }
      return;
    case Mode::kEvents:
      return Relay(frames_.Take(bytes));
    case Mode::kBytes:
      return Relay(bytes);
    case Mode::kNone:
      return;
  }
}

bool ProxyCall::IsFault(int status) const { return IsServerError(status) && !of_media_; }

bool ProxyCall::HidesAddresses(int status) const {
  return status >= 500 && !gateway_.options().show_workers;
}

void ProxyCall::HideFailure() {
  if (!encoded_) {
    response_.body = HideAddresses(std::move(response_.body), *set_);
    return;
  }
  std::erase_if(response_.headers,
                [](const auto& header) { return header.first == "content-encoding"; });
  response_.content_type = "application/json";
  response_.body = GatewayErrorBody(
      status_, "the worker has failed; what it says of it is encoded and is not passed on",
      "worker_failed");
}

void ProxyCall::BeginStream() {
  streaming_ = true;
  net::HttpResponse head = std::move(response_);
  head.body.clear();
  exchange_->StartStream(std::move(head));
}

void ProxyCall::Relay(std::string_view bytes) {
  if (bytes.empty()) return;
  if (!streaming_) BeginStream();
  exchange_->Write(bytes);
  written_at_ = call_ == nullptr ? Clock::now() : call_->last_at();
  CheckBacklog();
}

void ProxyCall::CheckBacklog() {
  // Without a call: it has ended, and this was the rest of what came.
  if (paused_ || call_ == nullptr || exchange_->unsent_bytes() <= kHighWater) return;
  paused_ = true;
  call_->Pause();
  exchange_->CallWhenBelow(kLowWater, [this] {
    paused_ = false;
    if (call_ != nullptr) call_->Resume();
  });
}

void ProxyCall::KeepAlive() {
  const Duration every = gateway_.options().sse_keep_alive;
  if (every == Duration::zero()) return;
  keep_alive_ = shard_.shard().After(every, [this, every] {
    if (over_ || mode_ != Mode::kEvents) return;
    const TimePoint now = Clock::now();
    if (!paused_ && now - written_at_ >= every) {
      // A worker that has begun an answer and computes its first token keeps its client waiting.
      if (!streaming_) BeginStream();
      exchange_->Write(kKeepAliveComment);
      written_at_ = now;
    }
    KeepAlive();
  });
}

void ProxyCall::OnDone(WorkerCall& call) {
  if (&call == prefill_.get()) {
    call.End(Verdict::kGood);
    prefill_.reset();
    return;
  }
  if (mode_ == Mode::kEvents && may_be_cut_ && !frames_.done() && frames_.half()) {
    call.NoteFailed();
    return OnFailed(call, net::CallFailure::kLost, "its connection ended within an event");
  }
  const int status = failed_status_ != 0 ? failed_status_ : status_;
  call.End(IsFault(status)               ? Verdict::kBad
           : of_media_ || IsBusy(status) ? Verdict::kNothing
                                         : Verdict::kGood);
  call_.reset();
  if (prefill_ != nullptr) WorkerCall::LetFinish(std::move(prefill_));
  if (mode_ == Mode::kEvents) Relay(frames_.rest());
  if (mode_ == Mode::kWhole) {
    if (hides_) HideFailure();
    exchange_->Respond(std::move(response_));
  } else {
    if (!streaming_) BeginStream();
    exchange_->End();
  }
  Finish(status_);
}

void ProxyCall::OnFailed(WorkerCall& call, net::CallFailure failure, const std::string& why) {
  const bool malformed = failure == net::CallFailure::kMalformed;
  Worker& worker = call.worker();
  NoteFailure(worker, malformed                               ? AttemptFailure::kMalformed
                      : failure == net::CallFailure::kConnect ? AttemptFailure::kConnect
                                                              : AttemptFailure::kLost);
  const bool unreached = failure == net::CallFailure::kConnect;
  LogDebug("worker {}: {}", worker.url(), why);
  malformed ? gateway_.NoteMalformed(worker, why) : gateway_.NoteLost(worker, !unreached, why);
  tried_.push_back(worker.number());
  call.End(Verdict::kBad);
  if (&call == prefill_.get() && (answer_bytes_ > 0 || mode_ == Mode::kWhole)) {
    prefill_.reset();  // the decode worker has got what it needs
    return;
  }
  if (LeaveToOther(call)) return;
  if (streaming_) {
    return CutStream("the worker was lost in the middle of the answer", "worker_lost");
  }
  if (Recover(worker, unreached)) return;
  if (malformed) {
    return Refuse(502, "the worker's answer breaks the protocol", "bad_gateway", false);
  }
  Refuse(503, "the connection to the worker was lost", "worker_lost", true);
}

void ProxyCall::OnWorkerStalled(uint64_t number) {
  if (over_) return;
  for (const CallPtr* held : {&prefill_, &call_, &hedge_}) {
    if (*held == nullptr || (*held)->worker().number() != number) continue;
    Worker& worker = (*held)->worker();
    NoteFailure(worker, AttemptFailure::kStalled);
    tried_.push_back(number);
    (*held)->NoteFailed();
    (*held)->End(Verdict::kBad);
    if (held == &prefill_ && (answer_bytes_ > 0 || mode_ == Mode::kWhole)) {
      prefill_.reset();  // the decode worker has got what it needs
      continue;
    }
    if (LeaveToOther(**held)) return;
    if (streaming_) {
      return CutStream("the worker has stalled in the middle of the answer", "worker_stalled");
    }
    if (Recover(worker)) return;
    return Refuse(504, "the worker does not answer", "worker_stalled", true);
  }
}

void ProxyCall::CutStream(std::string_view message, std::string_view code) {
  gateway_.metrics().cut_streams.Add();
  error_ = code;
  if (mode_ == Mode::kEvents) {
    if (frames_.within_event()) exchange_->Write("\n\n");
    if (!frames_.done()) exchange_->Write(CutEvents(exchange_->request.path, message, code));
    exchange_->End();
  } else {
    exchange_->Cut();  // the client must not take half a body for a whole one
  }
  Finish(status_);
}

}  // namespace portico::router
