// A request on one worker: the call to it, over HTTP or by means of token ids, and all that is held
// of the worker meanwhile: its counters, its breaker, the policy's bookkeeping.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http/exchange.h"
#include "net/http/http1_client.h"
#include "router/fleet/worker_set.h"
#include "router/gateway.h"
#include "router/proxy/proxy_events.h"

namespace portico::router {

// On its shard.
class WorkerCall final : private net::HttpCallEvents {
 public:
  // As of net::HttpCallEvents; each may destroy the call.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnHead(WorkerCall& call, net::ResponseHead& head) = 0;
    virtual void OnStreamFailure(WorkerCall& call, net::HttpResponse& instead) = 0;
    virtual void OnBody(WorkerCall& call, std::string_view bytes) = 0;
    virtual void OnDone(WorkerCall& call) = 0;
    virtual void OnFailed(WorkerCall& call, net::CallFailure failure, const std::string& why) = 0;
    virtual void OnBodyWanted(WorkerCall& call) = 0;
  };
  // How it ended, for the worker's breaker.
  enum class Verdict : uint8_t { kGood, kBad, kNothing };

  // `pick` is of `set`; the worker's breaker has let the request in. `profile`: of the request.
  WorkerCall(GatewayShard& shard, WorkerSetPtr set, const Pick& pick, const RoutingKey& key,
             ProxyEvents profile, Events& events);
  // Closes a call that is under way, which tells the worker.
  ~WorkerCall() override;

  // What of a body follows by WriteBody() and EndBody().
  struct BodyRest {
    bool open = false;
    int64_t bytes = 0;  // -1: not known
  };
  // Once. `request` outlives the call, but for its body, which is `body`; null: none. UNAVAILABLE:
  // the worker takes tokens and cannot be used now, or the body has a rest, which only workers of HTTP
  // take.
  Status Send(const net::HttpRequest& request, std::shared_ptr<const std::string> body,
              BodyRest rest, std::string request_id);
  // Only after OnBodyWanted(). The request cannot be sent again from then on.
  void WriteBody(std::string_view bytes);
  void EndBody();
  void Pause();
  void Resume();
  // Drops the call and gives all back; nothing is called any more.
  void End(Verdict verdict);
  // Nobody wants the rest of the answer: it is read and dropped, for some seconds at most. The call
  // is the shard's from now on.
  static void LetFinish(std::unique_ptr<WorkerCall> call);

  // Of the request, with this call as its hop.
  const ProxyEvents& profile() const { return profile_; }
  // A profile is told that it came to nothing; before End().
  void NoteFailed() { profile_.Failed(); }

  Worker& worker() const { return worker_; }
  std::string_view reason() const { return reason_; }
  TimePoint sent_at() const { return sent_at_; }
  // When the answer's head came; epoch: not yet.
  TimePoint first_at() const { return first_at_; }
  // When something came last.
  TimePoint last_at() const { return worker_.last_life(); }
  // Whether nothing is the worker's to do: the rest of the body has not come from the client, or the client has not read
  // what there is of the answer.
  bool awaits_client() const { return awaits_body_ || paused_; }

 private:
  void NoteWaits(bool body, bool reading);
  void SendHttp(bool fresh);
  int64_t BodyBytes() const;
  Status SendToTokens();
  void NoteFirst();

  // net::HttpCallEvents
  void OnHead(net::ResponseHead& head) override;
  void OnPrompt(std::span<const int32_t> tokens) override;
  void OnStreamFailure(net::HttpResponse& instead) override;
  void OnBody(std::string_view bytes) override;
  void OnDone() override;
  void OnBodyWanted() override;
  void OnFailed(net::CallFailure failure, const std::string& why) override;

  GatewayShard& shard_;
  const WorkerSetPtr set_;  // keeps the worker and its group alive
  Worker& worker_;
  const WorkerGroup& group_;
  const std::string_view reason_;
  const RoutingKey key_;   // of what the events' owner holds
  const int64_t prefill_;  // as the worker's Start() has it
  ProxyEvents profile_;
  Events* events_;                             // null: nobody wants the answer
  const net::HttpRequest* request_ = nullptr;  // null: it cannot be sent again
  std::shared_ptr<const std::string> body_;
  BodyRest rest_;
  std::string request_id_;
  std::unique_ptr<net::HttpCall> call_;
  std::unique_ptr<net::Shard::Timer> patience_;
  TimePoint sent_at_{};
  TimePoint first_at_{};
  int stale_ = 0;
  bool reads_usage_ = false;  // the policy wants it, and nothing has said it yet
  bool awaits_body_ = false;  // the worker has taken all of it that there was
  bool paused_ = false;
  bool prefill_open_ = true;
  bool open_ = true;
};

}  // namespace portico::router
