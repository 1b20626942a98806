#include "router/proxy/proxy_call.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "net/loop/out_of_memory.h"
#include "router/proxy/body_fields.h"
#include "router/proxy/error_body.h"
#include "text/json_writer.h"

namespace portico::router {
namespace {

// A worker that lived so recently may be back within the pauses of a retry, and one that is new may
// have been probed by then.
constexpr Duration kRecently = std::chrono::seconds(2);

}  // namespace

void ProxyCall::Start(GatewayShard& shard, std::unique_ptr<net::Exchange> exchange) {
  std::unique_ptr<ProxyCall> owned(new ProxyCall(shard, std::move(exchange)));
  ProxyCall* call = owned.get();
  shard.Adopt(std::move(owned));
  call->InMemory([call] { call->Begin(); });
}

void ProxyCall::InMemory(absl::FunctionRef<void()> work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    net::LogOutOfMemory();
    if (over_) return;
    DropCalls();
    if (streaming_) return CutStream(net::kOutOfMemory, "");
    Refuse(503, net::kOutOfMemory, "", true);
  }
}

ProxyCall::ProxyCall(GatewayShard& shard, std::unique_ptr<net::Exchange> exchange)
    : shard_(shard),
      gateway_(shard.gateway()),
      exchange_(std::move(exchange)),
      started_(Clock::now()),
      set_(shard.set()) {}

ProxyCall::~ProxyCall() { Release(); }

void ProxyCall::Begin() {
  gateway_.metrics().requests.Add();
  gateway_.budget().NoteRequest();
  exchange_->set_on_closed([this] { OnClientGone(); });
  for (const std::string& name : gateway_.options().request_id_headers) {
    request_id_ = std::string(exchange_->request.Header(name));
    if (!request_id_.empty()) break;
  }
  if (request_id_.empty()) request_id_ = shard_.NewRequestId();
  events_.Begin(request_id_);
  deadline_ = shard_.shard().After(gateway_.options().request_timeout, [this] { OnDeadline(); });
  if (ReadFacts()) Enter();
}

void ProxyCall::Enter() {
  const auto result = gateway_.admission().Enter(
      shard_.shard(), PriorityOf(exchange_->request.Header("x-smg-priority")),
      [this] {
        pause_.reset();
        ticket_.reset();
        admitted_ = true;
        // It may have waited for long.
        InMemory([this] {
          if (TakeNewestSet()) Attempt();
        });
      },
      &ticket_);
  switch (result) {
    case AdmissionQueue::Result::kPlace:
      admitted_ = true;
      return Attempt();
    case AdmissionQueue::Result::kWaits:
      pause_ = shard_.shard().After(gateway_.options().queue_timeout, [this] {
        gateway_.metrics().queue_full.Add();
        Refuse(429, "the gateway is at its limit of requests; this one has waited too long",
               "queue_timeout", true);
      });
      return;
    case AdmissionQueue::Result::kFull:
      gateway_.metrics().queue_full.Add();
      return Refuse(429, "the gateway is at its limit of requests and its queue is full",
                    "queue_full", true);
  }
}

bool ProxyCall::TakeNewestSet() {
  const WorkerSetPtr& newest = shard_.set();
  if (newest == set_) return true;
  const GatewayOptions& options = gateway_.options();
  const Reading wanted = ReadingFor(*newest);
  // Of a body that is not whole it was decided for the workers of then that it need not be.
  if (rest_.open || (wanted.model && !read_.model) || (wanted.prompt && !read_.prompt)) {
    std::string& body = exchange_->request.body;
    if (body_ != nullptr) {
      body.reserve(body_->size() + simdjson::SIMDJSON_PADDING);
      body = *body_;
    }
    group_ = prefill_group_ = nullptr;
    set_ = newest;
    return ReadFacts();
  }
  const auto find = [&](Role role) {
    return newest->Find(facts_.model, options.strict_models, role);
  };
  const WorkerGroup* group = find(options.pairs ? Role::kDecode : Role::kRegular);
  const WorkerGroup* prefill = pair_ ? find(Role::kPrefill) : nullptr;
  // Without any there is what was: workers that have been removed are not chosen.
  if (group == nullptr || (pair_ && prefill == nullptr)) return true;
  group_ = group;
  prefill_group_ = prefill;
  set_ = newest;
  return true;
}

ProxyCall::CallPtr ProxyCall::Ask(const Pick& pick) {
  Events& events = *this;
  return std::make_unique<WorkerCall>(shard_, set_, pick, key_, events_, events);
}

void ProxyCall::Attempt() {
  InMemory([this] { AskWorkers(); });
}

void ProxyCall::AskWorkers() {
  if ((attempts_ > 0 || turn_ != 0) && !TakeNewestSet()) return;
  ++attempts_;
  // Both workers of a pair, or none: one alone would wait for the other.
  CallPtr prefill;
  if (pair_) {
    const auto pick = gateway_.Choose(*prefill_group_, key_, tried_);
    if (!pick.ok()) return OnNoWorker(*prefill_group_, pick.status());
    prefill = Ask(*pick);
  }
  if (!PinToSession()) return;
  const auto pick = gateway_.Choose(*group_, key_, tried_, pinned_);
  if (!pick.ok()) return OnNoWorker(*group_, pick.status());
  call_ = Ask(*pick);
  prefill_ = std::move(prefill);
  reason_ = call_->reason();
  worker_id_ = call_->worker().id();
  std::string fields;
  if (prefill_ != nullptr) {
    prefill_id_ = prefill_->worker().id();
    const WorkerSpec& spec = prefill_->worker().spec();
    fields = PairFields(spec, spec.protocol == Protocol::kGrpc ? gateway_.TakeRooms(rooms_)
                                                               : shard_.NewBootstrapRoom());
    if (!Send(*prefill_, fields)) return;
  }
  if (Send(*call_, std::move(fields)) && !pair_) AwaitHedge();
}

bool ProxyCall::Send(WorkerCall& call, std::string fields) {
  Worker& worker = call.worker();
  // A worker that takes tokens is told with them.
  if (json_object_ && worker.protocol() != Protocol::kGrpc) {
    const std::string rank = RankField(worker.spec());
    if (!rank.empty()) fields += (fields.empty() ? "" : ",") + rank;
  }
  auto body =
      fields.empty() ? body_ : std::make_shared<const std::string>(InsertFields(*body_, fields));
  const Status sent = call.Send(exchange_->request, std::move(body), rest_, request_id_);
  events_ = call.profile();
  if (sent.ok()) return true;
  // It has restarted as something else, or is about to go.
  tried_.push_back(worker.number());
  if (!LeaveToOther(call) && !Recover(worker, true)) {
    Refuse(503, MessageOf(sent), "worker_lost", true);
  }
  return false;
}

void ProxyCall::AwaitHedge() {
  const Duration after = gateway_.options().hedge_after;
  // A session's history is on one worker.
  if (after == Duration::zero() || rest_.open || !facts_.opened.empty()) return;
  hedge_timer_ = shard_.shard().After(after, [this] { Hedge(); });
}

void ProxyCall::Hedge() {
  if (call_ == nullptr || call_->first_at() != TimePoint()) return;
  if (!OthersAvailable(call_->worker()) || !gateway_.budget().Take()) return;
  Tried but = tried_;
  but.push_back(call_->worker().number());
  const auto pick = gateway_.Choose(*group_, key_, but);
  if (!pick.ok()) return;
  gateway_.metrics().hedges.Add();
  hedge_ = Ask(*pick);
  Send(*hedge_, {});
}

bool ProxyCall::OthersAvailable(const Worker& but) const {
  if (pinned_ != 0) return false;
  const TimePoint now = Clock::now();
  const auto some = [&](const WorkerGroup& group) {
    return std::any_of(group.workers.begin(), group.workers.end(), [&](Worker* worker) {
      return worker != &but && worker->health() == Health::kHealthy && !worker->draining() &&
             worker->breaker().Allows(now) &&
             std::find(tried_.begin(), tried_.end(), worker->number()) == tried_.end();
    });
  };
  return some(*group_) && (!pair_ || some(*prefill_group_));
}

bool ProxyCall::HasAttempts(bool unreached) const {
  const int most = gateway_.options().retry.max_attempts;
  if (rest_flows_ || most <= 1) return false;
  return unreached || attempts_ - free_attempts_ < most;
}

bool ProxyCall::TryAgain(bool at_once) {
  const RetryOptions& retry = gateway_.options().retry;
  if (!HasAttempts(false)) return false;
  gateway_.metrics().retries.Add();
  if (at_once) {
    // Not from within the call that has failed.
    pause_ = shard_.shard().After(Duration::zero(), [this] { Attempt(); });
    return true;
  }
  tried_.clear();
  pause_ = shard_.shard().After(RetryPause(retry, attempts_ - free_attempts_ + 1, shard_.Random()),
                                [this] { Attempt(); });
  return true;
}

void ProxyCall::OnNoWorker(const WorkerGroup& asked, const Status& why) {
  if (why.code() == StatusCode::kResourceExhausted) return AwaitPlace(asked);
  const TimePoint now = Clock::now();
  const auto hope = [&](const WorkerGroup* group) {
    return group != nullptr &&
           std::any_of(group->workers.begin(), group->workers.end(), [&](const Worker* worker) {
             const TimePoint seen = std::max(worker->last_life(), worker->added());
             return !worker->draining() && now - seen < kRecently;
           });
  };
  if ((hope(group_) || hope(prefill_group_)) && TryAgain(false)) return;
  gateway_.metrics().no_worker.Add();
  std::string said(MessageOf(why));
  if (gateway_.options().pairs) {
    const Role role = &asked == prefill_group_ ? Role::kPrefill : Role::kDecode;
    said = fmt::format("{}: {}", RoleName(role), said);
  }
  Refuse(503, said, "no_available_workers", true);
}

void ProxyCall::AwaitPlace(const WorkerGroup& group) {
  --attempts_;  // nobody has been asked
  const TimePoint now = Clock::now();
  if (turn_ == 0) place_by_ = now + gateway_.options().queue_timeout;
  place_ = gateway_.places().Wait(
      shard_.shard(), PriorityOf(exchange_->request.Header("x-smg-priority")), set_, group, &turn_,
      [this] {
        pause_.reset();
        place_.reset();
        Attempt();
      },
      pinned_);
  if (place_ == nullptr) {
    gateway_.metrics().queue_full.Add();
    return Refuse(429, "all workers are at their limits of requests and the queue is full",
                  "queue_full", true);
  }
  pause_ = shard_.shard().After(std::max(place_by_ - now, Duration::zero()), [this] {
    gateway_.metrics().queue_full.Add();
    Refuse(429, "all workers are at their limits of requests; this one has waited too long",
           "queue_timeout", true);
  });
}

void ProxyCall::DropCalls() {
  hedge_timer_.reset();
  prefill_.reset();
  hedge_.reset();
  call_.reset();
}

void ProxyCall::ForgetAnswer() {
  DropCalls();
  keep_alive_.reset();
  mode_ = Mode::kNone;
  response_ = {};
  frames_ = {};
  failed_status_ = 0;
  of_media_ = false;
  answer_bytes_ = 0;
}

bool ProxyCall::Recover(Worker& failed, bool unreached) {
  ForgetAnswer();
  const bool others = OthersAvailable(failed);
  // It is out by now, so that this cannot go on for longer than there are others.
  if (unreached && others && HasAttempts(true)) ++free_attempts_;
  if (!TryAgain(others)) return false;
  failed.NoteRetry();
  return true;
}

bool ProxyCall::LeaveToOther(const WorkerCall& call) {
  if (hedge_ == nullptr) return false;
  if (&call == call_.get()) {
    call_ = std::move(hedge_);
    reason_ = call_->reason();
    worker_id_ = call_->worker().id();
  }
  events_ = call_->profile();
  hedge_.reset();
  return true;
}

bool ProxyCall::IsOn(uint64_t worker) const {
  const auto on = [worker](const CallPtr& call) {
    return call != nullptr && call->worker().number() == worker;
  };
  return on(call_) || on(hedge_) || on(prefill_);
}

void ProxyCall::Refuse(int status, std::string_view message, std::string_view code,
                       bool retry_after, std::string_view field) {
  error_ = code;
  net::HttpResponse response;
  response.status = status;
  if (retry_after) response.headers.emplace_back("retry-after", "1");
  response.headers.emplace_back("x-request-id", request_id_);
  response.body = GatewayErrorBody(status, message, code, field);
  answer_bytes_ = response.body.size();
  exchange_->Respond(std::move(response));
  Finish(status);
}

void ProxyCall::OnClientGone() {
  gateway_.metrics().client_gone.Add();
  Finish(499);
}

void ProxyCall::OnDeadline() {
  // A body that is still on its way is its client's to answer for, unless the worker does not take it, and so is an
  // answer that the client does not read.
  if (call_ != nullptr) call_->End(call_->awaits_client() ? Verdict::kNothing : Verdict::kBad);
  DropCalls();
  if (streaming_) return CutStream("the request has taken too long", "timeout");
  Refuse(504, "the request has taken too long", "timeout", false);
}

void ProxyCall::Release() {
  DropCalls();
  deadline_.reset();
  pause_.reset();
  keep_alive_.reset();
  if (ticket_ != nullptr && !gateway_.admission().GiveUp(ticket_)) admitted_ = true;
  ticket_.reset();
  if (place_ != nullptr) gateway_.places().GiveUp(std::exchange(place_, nullptr));
  if (std::exchange(admitted_, false)) gateway_.admission().Leave();
}

void ProxyCall::Finish(int status) {
  if (std::exchange(over_, true)) return;
  Release();
  events_.Ended(status);
  gateway_.metrics().ended(status).Add();
  gateway_.metrics().seconds.Observe(Seconds(Clock::now() - started_));
  if (gateway_.options().access_log) Log(status);
  shard_.Retire(this);
}

void ProxyCall::Log(int status) const {
  std::string line;
  JsonWriter writer(&line);
  const net::HttpRequest& request = exchange_->request;
  writer.BeginObject().Key("client").String(request.peer);
  writer.Key("method").String(request.method).Key("path").String(request.path);
  writer.Key("status").Int(status).Key("bytes").Int(static_cast<int64_t>(answer_bytes_));
  writer.Key("ms").Double(std::round(Seconds(Clock::now() - started_) * 1e6) / 1e3);
  writer.Key("request_id").String(request_id_).Key("worker").String(worker_id_);
  // A role without workers has no policy.
  const bool chosen = group_ != nullptr && group_->policy != nullptr;
  writer.Key("policy").String(chosen ? group_->policy->name() : "");
  writer.Key("reason").String(reason_).Key("attempts").Int(attempts_);
  if (!error_.empty()) writer.Key("error").String(error_);
  if (!prefill_id_.empty()) writer.Key("prefill_worker").String(prefill_id_);
  const std::string_view trace = request.Header("traceparent");
  if (!trace.empty()) writer.Key("traceparent").String(trace);
  writer.EndObject();
  LogInfo("{}", line);
}

}  // namespace portico::router
