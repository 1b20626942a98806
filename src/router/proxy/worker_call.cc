#include "router/proxy/worker_call.h"

#include <simdjson.h>

#include <utility>

#include "router/proxy/forward_head.h"
#include "router/proxy/usage_tail.h"

namespace portico::router {
namespace {

constexpr int kMaxStale = 3;
constexpr Duration kPatience = std::chrono::seconds(5);

}  // namespace

WorkerCall::WorkerCall(GatewayShard& shard, WorkerSetPtr set, const Pick& pick,
                       const RoutingKey& key, ProxyEvents profile, Events& events)
    : shard_(shard),
      set_(std::move(set)),
      worker_(*pick.worker),
      group_(*pick.group),
      reason_(pick.reason),
      key_(key),
      prefill_(group_.policy->OnStart(worker_, key)),
      profile_(std::move(profile)),
      events_(&events),
      reads_usage_(!key_.text.empty() && key_.tokens.empty() && group_.policy->wants_usage()) {
  worker_.Start(prefill_);
}

WorkerCall::~WorkerCall() { End(Verdict::kNothing); }

Status WorkerCall::Send(const net::HttpRequest& request, std::shared_ptr<const std::string> body,
                        BodyRest rest, std::string request_id) {
  request_ = &request;
  body_ = std::move(body);
  rest_ = rest;
  request_id_ = std::move(request_id);
  if (worker_.protocol() == Protocol::kGrpc) {
    if (rest_.open) return Error(StatusCode::kUnavailable, "the worker takes whole bodies only");
    return SendToTokens();
  }
  SendHttp(false);
  return OkStatus();
}

Status WorkerCall::SendToTokens() {
  profile_.Sent(worker_.id());
  net::HttpRequest request;
  request.method = request_->method;
  request.path = request_->path;
  request.query = request_->query;
  request.headers = request_->headers;
  request.peer = request_->peer;
  request.client = request_->client;
  if (body_ != nullptr) {
    request.body.reserve(body_->size() + simdjson::SIMDJSON_PADDING);
    request.body = *body_;
  }
  sent_at_ = Clock::now();
  const events::Scope scope(profile_.current());
  PORTICO_ASSIGN_OR_RETURN(
      call_, shard_.gateway().tokens()->Start(worker_, shard_.shard(), std::move(request), *this));
  return OkStatus();
}

void WorkerCall::SendHttp(bool fresh) {
  profile_.Sent(worker_.id());
  NoteWaits(false, paused_);
  net::HttpCallRequest request;
  request.head = MakeRequestHead({.request = *request_,
                                  .worker = worker_,
                                  .key = shard_.gateway().options().api_key,
                                  .kept_keys = shard_.gateway().options().kept_keys,
                                  .request_id = request_id_,
                                  .has_body = body_ != nullptr,
                                  .body_bytes = BodyBytes()});
  request.body = body_;
  request.body_open = rest_.open;
  request.chunked = rest_.bytes < 0;
  request.head_request = request_->method == "HEAD";
  sent_at_ = Clock::now();
  // One that is not whole could not be sent again if a connection that was idle is closed.
  call_ = shard_.clients().Of(worker_).StartCall(std::move(request), *this, fresh || rest_.open);
}

int64_t WorkerCall::BodyBytes() const {
  if (rest_.bytes < 0) return -1;
  return (body_ == nullptr ? 0 : static_cast<int64_t>(body_->size())) + rest_.bytes;
}

void WorkerCall::NoteWaits(bool body, bool reading) {
  const bool waited = awaits_client();
  awaits_body_ = body;
  paused_ = reading;
  if (awaits_client() == waited) return;
  waited ? worker_.EndClientWait() : worker_.BeginClientWait();
}

void WorkerCall::WriteBody(std::string_view bytes) {
  request_ = nullptr;
  body_.reset();
  if (call_ == nullptr) return;
  NoteWaits(false, paused_);
  call_->WriteBody(bytes);
}

void WorkerCall::EndBody() {
  request_ = nullptr;
  body_.reset();
  if (call_ == nullptr) return;
  NoteWaits(false, paused_);
  call_->EndBody();
}

void WorkerCall::Pause() {
  if (call_ == nullptr) return;
  NoteWaits(awaits_body_, true);
  call_->Pause();
}

void WorkerCall::Resume() {
  if (call_ == nullptr) return;
  NoteWaits(awaits_body_, false);
  call_->Resume();
}

void WorkerCall::NoteFirst() {
  if (std::exchange(prefill_open_, false)) worker_.FinishPrefill(prefill_);
}

void WorkerCall::End(Verdict verdict) {
  call_.reset();
  patience_.reset();
  NoteWaits(false, false);
  if (!std::exchange(open_, false)) return;
  const TimePoint now = Clock::now();
  NoteFirst();
  worker_.Finish();
  shard_.gateway().places().NoteFree(worker_);
  switch (verdict) {
    case Verdict::kGood:
      worker_.breaker().OnSuccess();
      break;
    case Verdict::kBad:
      worker_.breaker().OnFailure(now);
      break;
    case Verdict::kNothing:
      worker_.breaker().OnNothing();
      break;
  }
  group_.policy->OnFinish(
      worker_, {.ok = verdict != Verdict::kBad,
                .to_first = first_at_ == TimePoint() ? Duration::zero() : first_at_ - sent_at_,
                .took = sent_at_ == TimePoint() ? Duration::zero() : now - sent_at_});
}

void WorkerCall::LetFinish(std::unique_ptr<WorkerCall> call) {
  WorkerCall& kept = *call;
  kept.events_ = nullptr;
  kept.profile_ = {};  // the request ends before its events would
  kept.request_ = nullptr;
  kept.shard_.AdoptRest(std::move(call));
  kept.patience_ = kept.shard_.shard().After(kPatience, [&kept] { kept.shard_.RetireRest(&kept); });
}

void WorkerCall::OnHead(net::ResponseHead& head) {
  first_at_ = Clock::now();
  profile_.FirstByte();
  worker_.NoteLife(first_at_);
  if (events_ != nullptr) events_->OnHead(*this, head);
}

void WorkerCall::OnPrompt(std::span<const int32_t> tokens) {
  if (events_ != nullptr) group_.policy->OnPrompt(key_, tokens);
}

void WorkerCall::OnStreamFailure(net::HttpResponse& instead) {
  if (events_ != nullptr) events_->OnStreamFailure(*this, instead);
}

void WorkerCall::OnBody(std::string_view bytes) {
  worker_.NoteLife(Clock::now());
  // Not with the head: SGLang and vLLM send that of a stream before they compute the prompt.
  NoteFirst();
  if (events_ == nullptr) return;
  if (reads_usage_) {
    if (const auto tokens = FindPromptTokens(bytes)) {
      reads_usage_ = false;
      group_.policy->OnUsage(key_, *tokens);
    }
  }
  events_->OnBody(*this, bytes);
}

void WorkerCall::OnBodyWanted() {
  NoteWaits(true, paused_);
  if (events_ != nullptr) events_->OnBodyWanted(*this);
}

void WorkerCall::OnDone() {
  if (events_ != nullptr) return events_->OnDone(*this);
  End(Verdict::kGood);
  shard_.RetireRest(this);
}

void WorkerCall::OnFailed(net::CallFailure failure, const std::string& why) {
  NoteFailed();
  if (failure == net::CallFailure::kStale && request_ != nullptr && ++stale_ <= kMaxStale) {
    // The worker has closed a connection that was idle; it has not seen the request.
    call_.reset();
    return SendHttp(true);
  }
  if (events_ != nullptr) return events_->OnFailed(*this, failure, why);
  End(Verdict::kNothing);
  shard_.RetireRest(this);
}

}  // namespace portico::router
