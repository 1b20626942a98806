#include "api/sglang/weights_handler.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "api/common/control_fields.h"
#include "api/common/error_body.h"
#include "api/control_call.h"
#include "api/reply.h"
#include "service/control/each_engine.h"
#include "service/control/weight_update.h"
#include "text/json.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

constexpr size_t kMaxVersionBytes = 256;

struct AskedWeights : WeightUpdate {
  std::string model;  // empty: the default one
  bool has_path = false;
};

template <auto kMember>
Status ReadControlFlag(std::string_view name, Element value, AskedWeights* asked) {
  return ReadBool(name, value, &(asked->control.*kMember));
}

Status ReadPath(std::string_view name, Element value, AskedWeights* asked) {
  if (!value.is_string()) return WrongValue(name, "a string", value);
  asked->has_path = true;
  return ReadString(name, value, &asked->control.path);
}

Status ReadLoadFormat(std::string_view name, Element value, AskedWeights* asked) {
  return ReadString(name, value, &asked->control.load_format);
}

Status ReadVersion(std::string_view name, Element value, AskedWeights* asked) {
  std::string& version = asked->control.weight_version;
  PORTICO_RETURN_IF_ERROR(ReadString(name, value, &version));
  if (version.size() <= kMaxVersionBytes) return OkStatus();
  return InvalidArgument(name,
                         fmt::format("{} must be at most {} bytes long", name, kMaxVersionBytes));
}

// Fields of SGLang's alone. What they ask for when they are left out needs no engine that knows them.
Status AddOther(std::string_view name, Element value, AskedWeights* asked) {
  asked->control.others.emplace_back(name, simdjson::minify(value));
  return OkStatus();
}

Status ReadOtherFlag(std::string_view name, Element value, AskedWeights* asked) {
  bool flag = false;
  PORTICO_RETURN_IF_ERROR(ReadBool(name, value, &flag));
  return flag ? AddOther(name, value, asked) : OkStatus();
}

Status ReadTokenStep(std::string_view name, Element value, AskedWeights* asked) {
  int64_t step = 0;
  PORTICO_RETURN_IF_ERROR(ReadInt64(name, value, {0, kMaxInt32}, &step));
  return step != 0 ? AddOther(name, value, asked) : OkStatus();
}

Status ReadManifest(std::string_view name, Element value, AskedWeights* asked) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  return AddOther(name, value, asked);
}

constexpr FieldReader<AskedWeights> kWeightFields[] = {
    {"abort_all_requests", ReadControlFlag<&UpdateWeightsControl::abort_requests>},
    {"flush_cache", ReadControlFlag<&UpdateWeightsControl::flush_cache>},
    {"is_async", ReadOtherFlag},
    {"keep_pause", ReadFlag<AskedWeights, &AskedWeights::keep_pause>},
    {"load_format", ReadLoadFormat},
    {"manifest", ReadManifest},
    {"model", ReadText<AskedWeights, &AskedWeights::model>},
    {"model_path", ReadPath},
    {"recapture_cuda_graph", ReadOtherFlag},
    {"token_step", ReadTokenStep},
    {"torch_empty_cache", ReadOtherFlag},
    {"weight_version", ReadVersion},
};
static_assert(IsSortedByName(kWeightFields));

StatusOr<AskedWeights> ReadWeights(const net::HttpRequest& request, simdjson::dom::parser& parser) {
  AskedWeights asked;
  PORTICO_RETURN_IF_ERROR(ReadControl(request, parser, kWeightFields, {}, &asked));
  if (asked.has_path) return asked;
  return InvalidArgument("model_path", "model_path is required and must be a string");
}

// Those that a pause keeps from being computed, as of now.
int64_t PausedRequests(const ApiContext& api) {
  int64_t paused = 0;
  for (const ServingModel* model : api.models->models()) {
    const EngineLoad load = model->engine->load();
    if (load.paused) paused += load.running + load.waiting;
  }
  return paused;
}

// SGLang's answer has `success` and `message` at its top level, a refusal's too.
void AnswerUpdate(ExchangePtr exchange, ShardContext& shard, const Status& status,
                  const std::string& version) {
  std::string message(MessageOf(status));
  if (status.ok()) {
    message = "The weights are updated.";
    if (!version.empty()) message += " Weight version updated to " + version + ".";
    if (shard.api.on_pause_change) shard.api.on_pause_change();
  }
  Json body = JsonObject{
      {"success", status.ok()},
      {"message", std::move(message)},
      {"num_paused_requests", PausedRequests(shard.api)},
  };
  if (!status.ok()) body.Set("error", *Json::Parse(ErrorBody(status))->Find("error"));
  ReplyJson(*exchange, shard.api, HttpStatus(status.code()), body.Dump());
}

void HandleUpdateWeights(ExchangePtr exchange, ShardContext& shard) {
  StatusOr<AskedWeights> asked = ReadWeights(exchange->request, shard.parser);
  if (!asked.ok()) return AnswerUpdate(std::move(exchange), shard, asked.status(), "");
  auto answer = [version = asked->control.weight_version](ExchangePtr to, ShardContext& on,
                                                          const Status& status) {
    AnswerUpdate(std::move(to), on, status, version);
  };
  const std::string model = std::move(asked->model);
  UpdateWeights(*shard.api.models, model, *std::move(asked), Clock::now() + kWeightsPatience,
                AnswerWhenDone(std::move(exchange), shard, std::move(answer)));
}

}  // namespace

void AddWeightsRoute(RouteTable& routes) {
  routes.Add({.method = "POST",
              .path = "/update_weights_from_disk",
              .access = Access::kAdmin,
              .max_body_bytes = kControlBody,
              .handler = HandleUpdateWeights});
}

}  // namespace portico::api
