#include "api/gateway/profile_routes.h"

#include <string>
#include <utility>
#include <vector>

#include "api/gateway/gateway_reply.h"
#include "router/proxy/fan_out.h"
#include "service/control/profiling.h"
#include "text/json.h"

namespace portico::api {
namespace {

using SharedExchange = std::shared_ptr<net::Exchange>;

struct Asked {
  SharedExchange exchange;
  std::string authorization;  // for workers without a key of their own
};

// `fields`: a JSON object, which gets `workers`.
void AskWorkers(const Asked& asked, router::GatewayShard& shard, std::string body,
                std::string fields) {
  const SharedExchange& exchange = asked.exchange;
  router::SmallRequest request = {.method = "POST",
                                  .target = exchange->request.path,
                                  .body = std::move(body),
                                  .content_type = "application/json",
                                  .authorization = asked.authorization,
                                  .timeout = std::chrono::seconds(60)};
  router::FanOut::Start(
      shard, std::move(request),
      [exchange, fields = std::move(fields)](std::vector<router::FanOutAnswer> answers) {
        Json reply = Json::Parse(fields).value_or(Json(JsonObject{}));
        Json workers(JsonArray{});
        for (const auto& [worker, answer] : answers) {
          Json one(JsonObject{});
          one.Set("worker", worker);
          one.Set("status", static_cast<int64_t>(answer.ok() ? answer->status : 502));
          one.Set("answer",
                  answer.ok() ? std::string_view(answer->body) : MessageOf(answer.status()));
          workers.as_array().push_back(std::move(one));
        }
        reply.Set("workers", std::move(workers));
        GatewayReply(*exchange, 200, reply.Dump());
      });
}

// On the shard again, from the recorder's thread.
template <typename Task>
void OnShard(router::GatewayShard& shard, Task task) {
  shard.shard().Post(std::move(task));
}

void Start(Asked asked, router::GatewayShard& shard, ProfileRequest request, bool events_only) {
  const events::RunOptions run = *request.recorder;
  events::Start(run, [asked = std::move(asked), &shard, request = std::move(request),
                      events_only](Status status) mutable {
    OnShard(shard, [asked = std::move(asked), &shard, request = std::move(request), events_only,
                    status = std::move(status)]() mutable {
      if (!status.ok()) return GatewayError(*asked.exchange, status);
      const events::RunOptions& started = *request.recorder;
      // Workers have folders of their own.
      Json body(JsonObject{{"run_id", started.run_id}});
      if (!events_only) body.Set("enable_torch", request.enable_torch);
      AskWorkers(asked, shard, body.Dump(),
                 ProfileAnswer(started, events_only, request.enable_torch));
    });
  });
}

void Stop(Asked asked, router::GatewayShard& shard, const std::string& run) {
  events::Stop(run, [asked = std::move(asked), &shard, run](StatusOr<std::string> was) {
    OnShard(shard, [asked, &shard, run, was = std::move(was)] {
      if (!was.ok()) return GatewayError(*asked.exchange, was.status());
      const std::string& stopped = was->empty() ? run : *was;
      Json body(JsonObject{});
      if (!stopped.empty()) body.Set("run_id", stopped);
      const Json answer(JsonObject{{"run_id", was->empty() ? Json() : Json(*was)}});
      AskWorkers(asked, shard, body.Dump(), answer.Dump());
    });
  });
}

}  // namespace

bool IsProfilePath(std::string_view path) {
  return path == "/start_profile" || path == "/stop_profile" || path == "/start_request_profile" ||
         path == "/stop_request_profile";
}

void HandleGatewayProfile(std::unique_ptr<net::Exchange>* exchange, std::string authorization,
                          router::GatewayShard& shard, bool* passed_on) {
  events::LeaveOut(events::OnThread().key);
  const net::HttpRequest& asked = (*exchange)->request;
  const bool events_only = asked.path.ends_with("_request_profile");
  if (asked.path.starts_with("/stop")) {
    auto run = ReadProfileStop(asked.body);
    if (!run.ok()) return GatewayError(**exchange, run.status());
    return Stop({SharedExchange(std::move(*exchange)), std::move(authorization)}, shard, *run);
  }
  auto request = ReadProfileStart(asked.body, events_only);
  if (!request.ok()) return GatewayError(**exchange, request.status());
  *passed_on = !request->recorder.has_value();
  if (*passed_on) return;
  Start({SharedExchange(std::move(*exchange)), std::move(authorization)}, shard,
        *std::move(request), events_only);
}

}  // namespace portico::api
