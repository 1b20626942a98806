// What the gateway needs to use workers that take token ids over gRPC. Requests and answers are those
// of HTTP here, as with any worker; who implements this renders, tokenizes and detokenizes (the app room).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/http/exchange.h"
#include "net/http/http1_client.h"
#include "router/fleet/worker_set.h"

namespace portico::router {

class TokenWorkers {
 public:
  virtual ~TokenWorkers() = default;

  struct Facts {
    std::vector<ModelCard> models;
    int ranks = 1;  // data-parallel ones of its server
  };
  // Whether the worker can infer, and what it says of itself. `fresh`: it has been down or is new,
  // and may be another program than before. `done` is called once, later, on any thread, unless this
  // is stopped before. UNAVAILABLE: it cannot be reached.
  using ProbeDone = absl::AnyInvocable<void(StatusOr<Facts>)>;
  virtual void Probe(const WorkerPtr& worker, bool fresh, Duration timeout, ProbeDone done) = 0;
  using LoadDone = absl::AnyInvocable<void(StatusOr<ReportedLoad>)>;
  virtual void AskLoad(const WorkerPtr& worker, Duration timeout, LoadDone done) = 0;
  // Whether its engine is paused, as it says. UNIMPLEMENTED: its protocol cannot say it.
  using PausedDone = absl::AnyInvocable<void(StatusOr<bool>)>;
  virtual void AskPaused(const WorkerPtr& worker, Duration timeout, PausedDone done) = 0;

  // Answers the request by means of the worker, on `shard`. UNAVAILABLE before its first good probe.
  // `events` as in Http1Client::Start().
  virtual StatusOr<std::unique_ptr<net::HttpCall>> Start(const Worker& worker, net::Shard& shard,
                                                         net::HttpRequest request,
                                                         net::HttpCallEvents& events) = 0;

  // Lets workers go that are not in `set`, once their requests have ended.
  virtual void Keep(const WorkerSet& set) = 0;
};

}  // namespace portico::router
