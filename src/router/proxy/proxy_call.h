// One request on its way through the gateway to a worker and back.
//
// The request's bytes go to a worker as they came. The answer is kept until it is whole if it is
// small, so that another worker can be asked when this one dies; streams go on as they come, from
// their first event on: events, and whatever has no length and is not one JSON value. Until a byte of
// the answer has gone to the client every failure leads to another worker, within the limits of
// RetryOptions; after that never: a stream of events ends with an error event and [DONE], any other
// answer is cut.
//
// A gateway of prefill and decode workers (GatewayOptions::pairs) sends what generates to one of each
// at once, with the fields by which they find each other; the client gets the decode worker's answer,
// or what the prefill worker has refused. One that fails ends the other's work. Workers that take tokens
// tell of a stream's failure beside its events (net::Exchange::NoteFailure()): its head had been sent by then.
//
// A failure that is of the request's media alone (kFailureHeader) is nobody's but the request's: as 500 it is not retried, and
// it counts against no worker.
//
// A request whose answer has not begun after hedge_after goes to a second worker too; whose answer
// begins first is taken.
//
// A body that comes with a rest (net::Exchange::body_open()) is passed on as it comes, and the worker's
// pace is its client's. Its first part is kept until a worker has taken it: until then the request can go
// to another. Where more is needed than the first part has, it is collected first: workers that take
// tokens, fields to be put into it, a model that is not named yet.
//
// The client's pace is the worker's: while the client is more than kHighWater behind, the worker's
// connection is not read.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "net/http/exchange.h"
#include "net/http/http1_client.h"
#include "router/gateway.h"
#include "router/proxy/proxy_events.h"
#include "router/proxy/request_facts.h"
#include "router/proxy/sse_frames.h"
#include "router/proxy/worker_call.h"

namespace portico::router {

// Lives on its shard, owned by it.
class ProxyCall final : private WorkerCall::Events, private net::BodyReader {
 public:
  // Takes over a request whose body, or its first part, is there and answers it.
  static void Start(GatewayShard& shard, std::unique_ptr<net::Exchange> exchange);
  ~ProxyCall() override;

  // Whether the worker of that number works for this request.
  bool IsOn(uint64_t worker) const;
  // That worker holds this request and has sent nothing for long.
  void OnWorkerStalled(uint64_t worker);

  static constexpr size_t kHighWater = 128 << 10;
  static constexpr size_t kLowWater = 32 << 10;
  static constexpr size_t kMaxKept = 1 << 20;      // of an answer that is kept until it is whole
  static constexpr size_t kMaxFailure = 64 << 10;  // of one of 5xx, in which addresses are hidden

 private:
  enum class Mode : uint8_t { kNone, kWhole, kEvents, kBytes };
  // What must be read of a request before workers of a set can be chosen.
  struct Reading {
    bool model = false, prompt = false, session = false;
  };
  using Verdict = WorkerCall::Verdict;
  using CallPtr = std::unique_ptr<WorkerCall>;

  ProxyCall(GatewayShard& shard, std::unique_ptr<net::Exchange> exchange);

  // Where memory lacks for `work`, the request is refused: the shard owns it, so that nothing else would end it.
  void InMemory(absl::FunctionRef<void()> work);
  void Begin();
  // For the workers of set_. False: it has been refused, or its body is collected first.
  bool ReadFacts();
  Reading ReadingFor(const WorkerSet& set) const;
  // The model, the prompt and the session.
  void FindFacts(bool multipart);
  // The first part of its body is enough.
  bool MayPassRest(bool multipart) const;
  void Collect();
  // Its model's alias becomes what workers call the model.
  void ResolveAlias(bool multipart);
  // Which workers it needs. False: it has been refused.
  bool FindGroups();
  void Enter();
  void Attempt();
  void AskWorkers();
  // The workers may have changed since. False: it has been refused, or its body is collected first.
  bool TakeNewestSet();
  CallPtr Ask(const Pick& pick);
  bool Send(WorkerCall& call, std::string fields);
  // To the worker that has the history of the session that the request belongs to, if any. False: it is gone, and
  // the request has been refused.
  bool PinToSession();
  void AwaitHedge();
  void Hedge();
  bool OthersAvailable(const Worker& but) const;
  // Asks another worker, at once or after a pause. False if there are no attempts left.
  bool TryAgain(bool at_once);
  // None of the group can take it.
  void OnNoWorker(const WorkerGroup& asked, const Status& why);
  // All that could take it have as many requests as they may.
  void AwaitPlace(const WorkerGroup& group);
  // Drops all calls; the one that failed has had its verdict.
  void DropCalls();
  // Drops them with what has come of an answer, of which the client has got nothing.
  void ForgetAnswer();
  // Whether the limit of attempts allows another one. Those that reached no worker do not count: a request is
  // not to fail because more workers are gone than it may have attempts. One that a worker was lost with does:
  // it may be what kills them.
  bool HasAttempts(bool unreached) const;
  // A worker has failed before the client got anything: another is asked. False: there is none. `unreached`: it
  // has not seen the request.
  bool Recover(Worker& failed, bool unreached = false);
  // `call` is one of two that could answer, and will not: the other goes on.
  bool LeaveToOther(const WorkerCall& call);

  // WorkerCall::Events
  void OnHead(WorkerCall& call, net::ResponseHead& head) override;
  void OnStreamFailure(WorkerCall& call, net::HttpResponse& instead) override;
  void OnBody(WorkerCall& call, std::string_view bytes) override;
  void OnDone(WorkerCall& call) override;
  void OnFailed(WorkerCall& call, net::CallFailure failure, const std::string& why) override;
  void OnBodyWanted(WorkerCall& call) override;

  // net::BodyReader
  void OnBodyBytes(std::string_view bytes) override;
  void OnBodyEnd() override;
  void OnBodyRefused(const net::HttpError& error) override;

  // The prefill worker has answered, or failed, with that status. True if the client gets its answer.
  bool OnPrefillStatus(int status);
  // Makes the head of the client's answer.
  void TakeHead(const Worker& worker, net::ResponseHead& head);
  void NoteFailure(Worker& worker, AttemptFailure kind);
  bool RetryStatus(WorkerCall& call, const net::ResponseHead& head);
  // An answer with this status counts against its worker.
  bool IsFault(int status) const;
  // Of a status of 5xx: what is in its headers and body goes to the client without addresses of workers.
  bool HidesAddresses(int status) const;
  void HideFailure();
  void BeginStream();
  void Relay(std::string_view bytes);
  void CheckBacklog();
  void KeepAlive();
  void CutStream(std::string_view message, std::string_view code);
  // `field`: of the request, the one at fault; empty: none is.
  void Refuse(int status, std::string_view message, std::string_view code, bool retry_after,
              std::string_view field = {});
  void OnClientGone();
  void OnDeadline();
  // Gives back all that is held of others.
  void Release();
  // The request is over; the exchange has been answered or is gone.
  void Finish(int status);
  void Log(int status) const;

  GatewayShard& shard_;
  Gateway& gateway_;
  std::unique_ptr<net::Exchange> exchange_;
  const TimePoint started_;
  WorkerSetPtr set_;  // keeps the workers and groups below alive
  bool pair_ = false;
  const WorkerGroup* group_ = nullptr;
  const WorkerGroup* prefill_group_ = nullptr;  // of a pair
  Reading read_;                                // what facts_ has
  RequestFacts facts_;
  RoutingKey key_;
  std::string request_id_;
  ProxyEvents events_;
  std::shared_ptr<const std::string> body_;
  bool json_object_ = false;    // the body, as far as fields must be put into it
  uint64_t pinned_ = 0;         // the worker that has the session's history; 0: none has
  int64_t rooms_ = 1;           // of a pair: how many answers its workers make
  WorkerCall::BodyRest rest_;   // of the body
  bool collecting_ = false;     // the rest goes into the request's body
  size_t collected_bytes_ = 0;  // what it will have then; 0: not known
  bool rest_flows_ = false;     // it goes to the worker: there is no other attempt
  size_t rest_held_ = 0;        // of it, what the worker's connection has not taken
  std::unique_ptr<net::Shard::Timer> deadline_;
  std::unique_ptr<net::Shard::Timer> pause_;  // before an attempt, or in a queue
  std::unique_ptr<net::Shard::Timer> hedge_timer_;
  std::unique_ptr<net::Shard::Timer> keep_alive_;
  std::shared_ptr<AdmissionQueue::Ticket> ticket_;
  bool admitted_ = false;
  PlaceQueue::TicketPtr place_;
  uint64_t turn_ = 0;     // in the queue for places
  TimePoint place_by_{};  // no longer than that; epoch: it has not waited

  // The attempt.
  CallPtr call_;     // whose answer the client gets; of a pair the decode worker's
  CallPtr hedge_;    // asked because call_ is slow
  CallPtr prefill_;  // of a pair, until it has answered
  std::string_view reason_;
  std::string worker_id_;   // of the last one, for the log
  std::string error_;       // the code of this gateway's own error, for the log
  std::string prefill_id_;  // likewise
  Tried tried_;
  int attempts_ = 0;
  int free_attempts_ = 0;  // of these, which do not count

  // The answer.
  Mode mode_ = Mode::kNone;
  int status_ = 0;
  int failed_status_ = 0;  // of the failure of a stream that has started; 0: none
  bool of_media_ = false;  // the failure is kMediaFailed
  net::HttpResponse response_;
  SseFrames frames_;
  bool hides_ = false;       // it is a failure in which addresses are hidden
  bool encoded_ = false;     // its content has a coding
  bool may_be_cut_ = false;  // its end is that of the worker's connection
  size_t answer_bytes_ = 0;
  TimePoint written_at_;
  bool streaming_ = false;
  bool paused_ = false;
  bool over_ = false;
};

}  // namespace portico::router
