#include "api/sglang/profile_handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "api/common/control_fields.h"
#include "api/control_call.h"
#include "api/reply.h"
#include "service/control/control_log.h"
#include "service/control/each_engine.h"
#include "service/control/profiling.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

bool AnyEngineCan(const ShardContext& shard) {
  const auto models = shard.api.models->models();
  return std::any_of(models.begin(), models.end(),
                     [](const ServingModel* model) { return model->engine->info().can.profiles; });
}

// What ControlAll() will come to where an engine that it asks has no profiler.
Status CheckProfilers(const ShardContext& shard, const StartProfileControl& control) {
  const auto models = shard.api.models->models();
  for (const ServingModel* model : models) {
    const Engine& engine = *model->engine;
    if (engine.info().can.profiles || !engine.load().healthy) continue;
    return CannotControl(engine.info().name, control);
  }
  return OkStatus();
}

void ControlAll(ShardContext& shard, EngineControl control, ControlDone done) {
  ControlEngines(*shard.api.models, "", control, Clock::now() + kControlPatience, std::move(done));
}

// SGLang's own answer, where only its engine was meant.
void ReplyEngine(ExchangePtr exchange, ShardContext& shard, const Status& status) {
  if (!status.ok()) return ReplyError(*exchange, shard.api, status);
  ReplyJson(*exchange, shard.api, 200, R"({"message":"","status":"ok"})");
}

// The recorder runs, or was not asked for; now the engines.
void StartEngines(ExchangePtr exchange, ShardContext& shard, ProfileRequest request) {
  const bool asked = request.engine.has_value();
  const bool wanted = asked || (request.enable_torch && AnyEngineCan(shard));
  if (!wanted) {
    return ReplyJson(*exchange, shard.api, 200, ProfileAnswer(*request.recorder, false, false));
  }
  StartProfileControl control = request.engine.value_or(StartProfileControl{});
  if (request.recorder && control.output_dir.empty()) {
    const std::string& trace = request.recorder->trace_path_template;
    control.output_dir = trace.substr(0, trace.find_last_of('/'));
  }
  auto answer = [request = std::move(request)](ExchangePtr kept, ShardContext& on,
                                               const Status& status) {
    if (status.ok()) EnginesAreProfiled() = true;
    if (!request.recorder) return ReplyEngine(std::move(kept), on, status);
    if (status.ok()) {
      return ReplyJson(*kept, on.api, 200, ProfileAnswer(*request.recorder, false, true));
    }
    // All or nothing.
    events::Stop(request.recorder->run_id, [](const StatusOr<std::string>&) {});
    ReplyError(*kept, on.api, status);
  };
  ControlAll(shard, std::move(control),
             AnswerWhenDone(std::move(exchange), shard, std::move(answer)));
}

template <bool kEventsOnly>
void HandleStart(ExchangePtr exchange, ShardContext& shard) {
  events::LeaveOut(events::OnThread().key);
  const Status query = CheckQueryNames(exchange->request, {});
  if (!query.ok()) return ReplyError(*exchange, shard.api, query);
  auto request = ReadProfileStart(exchange->request.body, kEventsOnly);
  if (!request.ok()) return ReplyError(*exchange, shard.api, request.status());
  if (!request->recorder) return StartEngines(std::move(exchange), shard, *std::move(request));
  // A refusal leaves the run that is current alone.
  if (request->engine) {
    const Status can = CheckProfilers(shard, *request->engine);
    if (!can.ok()) return ReplyError(*exchange, shard.api, can);
  }
  events::RunOptions run = *request->recorder;
  auto answer = [request = *std::move(request)](ExchangePtr kept, ShardContext& on,
                                                const Status& status) {
    if (!status.ok()) return ReplyError(*kept, on.api, status);
    LogControl(fmt::format("profile {}: events are recorded in {}", request.recorder->run_id,
                           request.recorder->directory));
    if (!kEventsOnly) return StartEngines(std::move(kept), on, request);
    ReplyJson(*kept, on.api, 200, ProfileAnswer(*request.recorder, true, false));
  };
  auto done =
      std::make_shared<ControlDone>(AnswerWhenDone(std::move(exchange), shard, std::move(answer)));
  events::Start(std::move(run), [done](Status status) { (*done)(std::move(status)); });
}

// `stopped`: the run that was, or nothing.
void StopEngines(ExchangePtr exchange, ShardContext& shard, const std::string& stopped) {
  const bool profiled = EnginesAreProfiled().exchange(false);
  const Json id = stopped.empty() ? Json() : Json(stopped);
  const std::string body = Json(JsonObject{{"run_id", id}}).Dump();
  // Others than this server may have started the profiler of an engine that has one.
  if (!profiled && (!stopped.empty() || !AnyEngineCan(shard)))
    return ReplyJson(*exchange, shard.api, 200, body);
  auto answer = [body, stopped](ExchangePtr kept, ShardContext& on, const Status& status) {
    if (stopped.empty() || !status.ok()) return ReplyEngine(std::move(kept), on, status);
    ReplyJson(*kept, on.api, 200, body);
  };
  ControlAll(shard, StopProfileControl{},
             AnswerWhenDone(std::move(exchange), shard, std::move(answer)));
}

template <bool kEventsOnly>
void HandleStop(ExchangePtr exchange, ShardContext& shard) {
  events::LeaveOut(events::OnThread().key);
  const Status query = CheckQueryNames(exchange->request, {});
  if (!query.ok()) return ReplyError(*exchange, shard.api, query);
  auto run = ReadProfileStop(exchange->request.body);
  if (!run.ok()) return ReplyError(*exchange, shard.api, run.status());
  auto stopped = std::make_shared<std::string>();
  auto answer = [stopped, any = run->empty()](ExchangePtr kept, ShardContext& on,
                                              const Status& status) {
    if (!status.ok()) return ReplyError(*kept, on.api, status);
    if (!stopped->empty()) LogControl(fmt::format("profile {}: it has been stopped", *stopped));
    // Another run's stop leaves the engines alone, too.
    if (!kEventsOnly && (any || !stopped->empty())) {
      return StopEngines(std::move(kept), on, *stopped);
    }
    const Json id = stopped->empty() ? Json() : Json(*stopped);
    ReplyJson(*kept, on.api, 200, Json(JsonObject{{"run_id", id}}).Dump());
  };
  auto done =
      std::make_shared<ControlDone>(AnswerWhenDone(std::move(exchange), shard, std::move(answer)));
  events::Stop(*run, [done, stopped](StatusOr<std::string> was) {
    if (was.ok()) *stopped = *was;
    (*done)(was.status());
  });
}

}  // namespace

void AddProfileRoutes(RouteTable& routes) {
  for (const char* method : {"GET", "POST"}) {  // SGLang takes both
    routes.Add(method, "/start_profile", Access::kAdmin, HandleStart<false>, kControlBody);
    routes.Add(method, "/stop_profile", Access::kAdmin, HandleStop<false>, kControlBody);
  }
  routes.Add("POST", "/start_request_profile", Access::kAdmin, HandleStart<true>, kControlBody);
  routes.Add("POST", "/stop_request_profile", Access::kAdmin, HandleStop<true>, kControlBody);
}

}  // namespace portico::api
