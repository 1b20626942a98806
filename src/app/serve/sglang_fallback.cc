#include "app/serve/sglang_fallback.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "app/gateway/gateway_loop.h"
#include "app/gateway/worker_processes.h"
#include "app/load/load_model.h"
#include "app/load/sglang_flags.h"
#include "app/options/route_options.h"
#include "base/log.h"

namespace portico {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);
constexpr int kFirstPort = 31000;

// What would silently be different.
Status CheckHonoured(const ServeOptions& options) {
  const ModelOptions& model = options.models.front();
  const std::pair<bool, std::string_view> wanted[] = {
      {!model.attach.empty(), "--attach"},
      {model.sglang_replicas > 1, "--sglang-replicas"},
      {model.sglang_transport != "ipc", "--sglang-transport"},
      {!options.admin_api_key.empty(), "--admin-api-key"},
      {!options.ssl_ca_certs.empty(), "--ssl-ca-certs"},
      {!options.ssl_keyfile_password.empty(), "--ssl-keyfile-password"},
      {options.speech, "--speech"},
      {options.grpc_port != 0, "--grpc-port"},
      {!model.preferred_sampling_params.empty(), "--preferred-sampling-params"},
      {model.allow_auto_truncate, "--allow-auto-truncate"},
      {model.return_original_logprob, "--return-original-logprob"},
      {model.sglang_media_helpers == 0, "--sglang-media-helpers 0"},
      {!options.allowed_media_domain.empty(), "--allowed-media-domain"},
      {!options.allowed_local_media_path.empty(), "--allowed-local-media-path"},
      {options.reasoning_field != ServeOptions().reasoning_field, "--reasoning-field"},
  };
  for (const auto& [is, flag] : wanted) {
    if (!is) continue;
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("--sglang-fallback http cannot honour {}", flag));
  }
  return OkStatus();
}

WorkerCommand CommandOf(const ServeOptions& options, const std::string& path, int port) {
  const ModelOptions& model = options.models.front();
  WorkerCommand command;
  command.name = "SGLang's own server";
  command.words = {model.sglang_python, "-m",     "sglang.launch_server", "--host",
                   "127.0.0.1",         "--port", std::to_string(port)};
  const auto add = [&](const char* flag, const std::string& value) {
    command.words.emplace_back(flag);
    command.words.push_back(value);
  };
  add("--served-model-name", ModelId(model));
  if (!model.chat_template.empty()) add("--chat-template", model.chat_template);
  for (const auto& [flag, parser] : {std::pair{"--tool-call-parser", &model.tool_call_parser},
                                     {"--reasoning-parser", &model.reasoning_parser}}) {
    if (*parser != "auto" && *parser != "none") add(flag, *parser);
  }
  if (!options.limit_mm_data_per_request.empty()) {
    add("--limit-mm-data-per-request", options.limit_mm_data_per_request);
  }
  if (model.sampling_defaults != "model") add("--sampling-defaults", model.sampling_defaults);
  const std::vector<std::string> flags = SglangFlags(model, path);
  command.words.insert(command.words.end(), flags.begin(), flags.end());
  return command;
}

RouteOptions GatewayOf(const ServeOptions& options, std::string_view why, int worker_port) {
  RouteOptions route;
  route.host = options.host;
  route.port = options.port;
  route.shards = options.shards;
  route.max_connections = options.max_connections;
  route.max_payload_size = options.max_body_bytes;
  route.max_unsent_bytes = options.max_unsent_bytes;
  route.tls_cert_path = options.ssl_certfile;
  route.tls_key_path = options.ssl_keyfile;
  route.api_key = options.api_key;
  route.allowed_host = options.allowed_host;
  if (!options.cors_origin.empty()) route.cors_allowed_origins = {options.cors_origin};
  route.log_level = options.log_level;
  route.access_log = options.access_log;
  route.shutdown_grace_period_secs = options.drain_timeout;
  route.policy = "round_robin";
  route.prometheus_port = -1;  // /metrics is on the main port
  route.worker_urls = {fmt::format("http://127.0.0.1:{}", worker_port)};
  route.server_note = Json(JsonObject{{"version", PORTICO_VERSION},
                                      {"engine", "sglang"},
                                      {"sglang_fallback", "http"},
                                      {"sglang_fallback_reason", std::string(why)}})
                          .Dump();
  return route;
}

}  // namespace

bool FallsBack(const ServeOptions& options, const Status& status) {
  return status.code() == StatusCode::kUnimplemented && options.models.size() == 1 &&
         options.models.front().engine == "sglang" &&
         options.models.front().sglang_fallback == "http";
}

Status ServeSglangOverHttp(const ServeOptions& options, std::string_view why,
                           const sigset_t& signals) {
  PORTICO_RETURN_IF_ERROR(CheckHonoured(options));
  std::string path = options.models.front().model_path;
  if (path.empty()) {
    PORTICO_ASSIGN_OR_RETURN(path, DemoModelPath());
  }
  PORTICO_ASSIGN_OR_RETURN(const int port, FreePorts(kFirstPort, 1));
  LogWarning("{}", why);
  LogWarning(
      "falling back: SGLang's own server answers, on port {} of this machine, and Portico is a "
      "gateway before it. Its Python is on the path of every request, and there is no gRPC.",
      port);
  WorkerProcesses workers({CommandOf(options, path, port)});
  const Status ran = RunGateway(GatewayOf(options, why, port), nullptr, "", signals,
                                [&workers] { return workers.Tick(); });
  LogInfo("stopping SGLang's own server");
  workers.Stop(kPatience);
  return ran;
}

}  // namespace portico
