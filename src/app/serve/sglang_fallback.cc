#include "app/serve/sglang_fallback.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gateway/gateway_loop.h"
#include "app/gateway/worker_processes.h"
#include "app/load/load_model.h"
#include "app/load/sglang_flags.h"
#include "app/options/options_table.h"
#include "app/options/route_options.h"
#include "base/log.h"

namespace portico {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);
constexpr int kFirstPort = 31000;

// Of arguments: SGLang takes no abbreviation of it.
bool NamesFile(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](std::string_view word) {
    return word == "--config" || word.starts_with("--config=");
  });
}

// Options that hold for the gateway or for SGLang's own server, and those that have no effect with SGLang in any case. All
// others would silently be different.
constexpr std::string_view kHonoured[] = {
    // of the model
    "model-path", "served-model-name", "tokenizer-path", "chat-template", "context-length", "dtype",
    "quantization", "sampling-defaults", "engine", "tool-call-parser", "reasoning-parser",
    "is-embedding", "max-running-requests", "max-queued-requests", "max-total-tokens",
    "kv-cache-dtype", "chunked-prefill-size", "disable-radix-cache", "return-original-logprob",
    "enable-deterministic-inference", "allow-auto-truncate", "stream-interval",
    "preferred-sampling-params", "weight-version", "sglang-python", "sglang-launcher",
    "sglang-fallback", "restart-engine", "policy",
    // of the server
    "host", "port", "shards", "api-key", "cors-origin", "allowed-host", "limit-mm-data-per-request",
    "grpc-mode", "smg-grpc-mode", "accept-any-model", "drain-timeout", "model-cache-bytes",
    "max-connections", "max-body-bytes", "max-unsent-bytes", "disable-grpc", "ssl-keyfile",
    "ssl-certfile", "profile-dir", "profile-max-bytes", "log-level", "log-requests", "access-log"};

Status CheckHonoured(const ServeOptions& options) {
  const auto cannot = [](std::string_view flag) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("--sglang-fallback http cannot honour {}", flag));
  };
  const ModelOptions& model = options.models.front();
  for (const Option& option : ServeOptionTable()) {
    const bool said =
        OptionText(option, options, model) != OptionText(option, ServeOptions(), ModelOptions());
    const bool honoured =
        std::find(std::begin(kHonoured), std::end(kHonoured), option.name) != std::end(kHonoured);
    if (said && !honoured) return cannot(fmt::format("--{}", option.name));
  }
  // A key in it would be unknown to the gateway.
  if (NamesFile(model.engine_arguments)) return cannot("a --config file of SGLang's");
  return OkStatus();
}

WorkerCommand CommandOf(const ServeOptions& options, const std::string& path, int port) {
  const ModelOptions& model = options.models.front();
  WorkerCommand command;
  command.name = "SGLang's own server";
  command.url = fmt::format("http://127.0.0.1:{}", port);
  command.words = {model.sglang_python, "-m", "sglang.launch_server"};
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
  if (model.max_queued_requests != ModelOptions().max_queued_requests) {
    add("--max-queued-requests", std::to_string(model.max_queued_requests));
  }
  if (model.sampling_defaults != "model") add("--sampling-defaults", model.sampling_defaults);
  if (!model.preferred_sampling_params.empty()) {
    add("--preferred-sampling-params", model.preferred_sampling_params);
  }
  if (model.allow_auto_truncate) command.words.emplace_back("--allow-auto-truncate");
  if (options.log_requests) {
    command.words.emplace_back("--log-requests");
    add("--log-requests-level", "1");  // without contents; one of SGLang's own flags may say more
  }
  if (model.return_original_logprob) {
    command.environment.emplace_back("SGLANG_RETURN_ORIGINAL_LOGPROB", "1");
  }
  const std::vector<std::string> flags = SglangFlags(model, path);
  command.words.insert(command.words.end(), flags.begin(), flags.end());
  // Last: the gateway's own may be among the arguments.
  add("--host", "127.0.0.1");
  add("--port", std::to_string(port));
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
  route.profile_dir = options.profile_dir;
  route.profile_max_bytes = options.profile_max_bytes;
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
      "gateway in front of it. Its Python is on the path of every request, and there is no gRPC.",
      port);
  WorkerProcesses workers({CommandOf(options, path, port)});
  const Status ran = RunGateway(GatewayOf(options, why, port), nullptr, "", signals, &workers);
  LogInfo("stopping SGLang's own server");
  workers.Stop(kPatience);
  return ran;
}

}  // namespace portico
