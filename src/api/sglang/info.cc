#include "api/sglang/info.h"

#include <memory>
#include <string>
#include <utility>

#include "api/common/control_fields.h"
#include "api/model_facts.h"
#include "api/model_name.h"
#include "api/reply.h"
#include "api/sglang/flush_handler.h"
#include "api/sglang/tokenize_handlers.h"
#include "service/control/control_log.h"
#include "service/control/pause.h"
#include "template/template_facts.h"
#include "text/json_writer.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

void HandleModelInfo(ExchangePtr exchange, ShardContext& shard) {
  const StatusOr<std::string> name = ModelInQuery(exchange->request.query);
  if (!name.ok()) return ReplyError(*exchange, shard.api, name.status());
  const StatusOr<const ServingModel*> found = shard.api.models->Find(*name);
  if (!found.ok()) return ReplyError(*exchange, shard.api, found.status());
  ReplyJson(*exchange, shard.api, 200, ModelInfoBody(**found));
}

Json LoadAsJson(const ServingModel& model) {
  EngineLoad load = model.engine->load();
  return JsonObject{
      {"model", model.id},
      {"running_requests", load.running},
      {"waiting_requests", load.waiting},
      {"kv_cells_used", load.kv_cells_used},
      {"kv_cells_cached", load.kv_cells_cached},
      {"kv_cells_total", load.kv_cells_total},
      {"prompt_tokens", static_cast<int64_t>(load.prompt_tokens)},
      {"cached_tokens", static_cast<int64_t>(load.cached_tokens)},
      {"generated_tokens", static_cast<int64_t>(load.generated_tokens)},
      {"retractions", static_cast<int64_t>(load.retractions)},
      {"paused", load.paused},
      {"healthy", load.healthy},
  };
}

void HandleServerInfo(ExchangePtr exchange, ShardContext& shard) {
  ReplyJson(*exchange, shard.api, 200, ServerInfo(shard.api).Dump());
}

struct AskedAbort {
  std::string rid;
  bool all = false;
};

constexpr FieldReader<AskedAbort> kAbortFields[] = {
    {"abort_all", ReadFlag<AskedAbort, &AskedAbort::all>},
    {"rid", ReadName<AskedAbort, &AskedAbort::rid>},
};
static_assert(IsSortedByName(kAbortFields));

constexpr RefusedField kAbortDefaults[] = {
    {"abort_message", ""}, {"finished_reason", ""}, {"weight_versions", ""}};
static_assert(IsSortedByName(kAbortDefaults));

void HandleAbort(ExchangePtr exchange, ShardContext& shard) {
  AskedAbort asked;
  Status status =
      ReadControl(exchange->request, shard.parser, kAbortFields, kAbortDefaults, &asked);
  if (status.ok() && asked.rid.empty() && !asked.all) {
    status = InvalidArgument("rid", "name a rid, or set abort_all to true");
  }
  if (!status.ok()) return ReplyError(*exchange, shard.api, status);
  AbortEverywhere(shard, asked.rid, asked.all);
  ReplyJson(*exchange, shard.api, 200, "{\"success\":true}");
}

}  // namespace

std::string ModelInfoBody(const ServingModel& model) {
  const EngineInfo& engine = model.engine->info();
  std::string body;
  JsonWriter w(&body);
  w.BeginObject();
  w.Key("model_path").String(model.model_path());
  w.Key("tokenizer_path").String(model.tokenizer_path);
  w.Key("served_model_name").String(model.id);
  AppendTaskFacts(engine, &w);
  w.Key("preferred_sampling_params");
  if (model.preferred_json.empty()) {
    w.Null();
  } else {
    w.String(model.preferred_json);
  }
  w.Key("weight_version").String(model.weight_version());
  w.Key("has_image_understanding").Bool(engine.can.Takes(MediaKind::kImage));
  w.Key("has_audio_understanding").Bool(engine.can.Takes(MediaKind::kAudio));
  w.Key("model_type").String(engine.architecture);
  w.Key("max_model_len").Int(engine.context_length);
  w.Key("vocab_size").Int(engine.vocab_size);
  if (engine.task == ModelTask::kGenerate) {
    w.Key("eos_token_ids").BeginArray();
    for (TokenId id : model.end_token_ids) w.Int(id);
    w.EndArray();
  }
  w.Key("chat_template");
  if (model.chat_template == nullptr) {
    w.Null();
  } else {
    w.BeginObject();
    w.Key("without_tools").Raw(DescribeFacts(model.chat_template->facts(false)).Dump());
    w.Key("with_tools").Raw(DescribeFacts(model.chat_template->facts(true)).Dump());
    w.EndObject();
  }
  w.EndObject();
  return body;
}

Json ServerInfo(const ApiContext& api) {
  Json info = api.server_info;
  info.Set("version", PORTICO_VERSION);
  JsonArray states;
  for (const ServingModel* model : api.models->models()) {
    states.push_back(LoadAsJson(*model));
    const EngineInfo& engine = model->engine->info();
    if (states.size() > 1) continue;
    // What the options leave to their defaults, and what an update of the weights changes.
    info.Set("model_path", model->model_path());
    info.Set("tokenizer_path", model->tokenizer_path);
    info.Set("served_model_name", model->id);
    info.Set("weight_version", model->weight_version());
    info.Set("dp_size", engine.can.data_parallel_ranks);
    info.Set("max_total_num_tokens", engine.max_total_tokens);
    info.Set("max_context_length", engine.context_length);
    // SGLang's word for a server that is no half of a pair; gateways of such pairs look for it.
    if (!engine.can.disaggregation) info.Set("disaggregation_mode", "null");
  }
  info.Set("is_pause", AnyPaused(*api.models));
  info.Set("internal_states", std::move(states));
  return info;
}

void AbortEverywhere(ShardContext& shard, const std::string& rid, bool all) {
  if (all) LogControl("all requests are aborted: it was asked for");
  for (ShardContext* other : shard.api.shards) {
    if (other == &shard) {
      shard.calls.Abort(rid, all);
    } else {
      other->shard.Post([other, rid, all] { other->calls.Abort(rid, all); });
    }
  }
}

void AddSglangRoutes(RouteTable& routes) {
  for (const char* path : {"/get_model_info", "/model_info"}) {
    routes.Add("GET", path, Access::kKey, HandleModelInfo);
  }
  for (const char* path : {"/get_server_info", "/server_info"}) {
    routes.Add("GET", path, Access::kKey, HandleServerInfo);
  }
  routes.Add({.method = "POST",
              .path = "/abort_request",
              .access = Access::kAdmin,
              .max_body_bytes = kControlBody,
              .handler = HandleAbort});
  routes.Add("GET", "/flush_cache", Access::kAdmin, HandleFlush);
  routes.Add("POST", "/flush_cache", Access::kAdmin, HandleFlush, kControlBody);
  for (const char* path : {"/v1/tokenize", "/tokenize"}) {
    routes.Add("POST", path, Access::kKey, HandleTokenize);
  }
  for (const char* path : {"/v1/detokenize", "/detokenize"}) {
    routes.Add("POST", path, Access::kKey, HandleDetokenize);
  }
}

}  // namespace portico::api
