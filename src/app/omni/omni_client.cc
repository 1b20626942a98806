#include "app/omni/omni_client.h"

#include <atomic>
#include <vector>

#include "app/load/load_model.h"
#include "app/load/load_models.h"
#include "app/omni/omni_command.h"
#include "app/omni/stage_command.h"
#include "app/program_path.h"
#include "app/serve/serve_command.h"
#include "base/log.h"
#include "grammar/compile/compile_process.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace portico::omni {
namespace {

constexpr std::string_view kStageCommand = "omni-stage";

std::atomic<bool> may_be_helper{false};

class Reader final : public AnswerStream {
 public:
  explicit Reader(std::unique_ptr<LocalAnswer> answer) : answer_(std::move(answer)) {}

  StatusOr<Answer> Head() override {
    PORTICO_ASSIGN_OR_RETURN(net::ResponseHead head, answer_->Head());
    Answer answer;
    answer.content_type = std::string(head.Header("content-type"));
    answer.headers = std::move(head.headers);
    return answer;
  }
  StatusOr<std::optional<std::string>> Receive() override { return answer_->Receive(); }

 private:
  std::unique_ptr<LocalAnswer> answer_;
};

// The first of what /v1/models lists.
std::string FirstModel(const std::string& list) {
  const auto parsed = Json::Parse(list);
  const Json* data = parsed.ok() ? parsed->Find("data") : nullptr;
  if (data == nullptr || !data->is_array() || data->as_array().empty()) return "";
  return data->as_array().front().GetString("id");
}

}  // namespace

std::optional<int> RunAsHelper(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == kStageCommand) return StageCommand(argc - 2, argv + 2);
  if (name == kGrammarCommand) return GrammarCommand(argc - 2, argv + 2);
  may_be_helper = true;
  return std::nullopt;
}

StatusOr<ServeOptions> OptionsOf(const Config& config) {
  if (!config.program.empty()) {
    SetProgramPath(config.program);
  } else if (!may_be_helper) {
    return Error(StatusCode::kFailedPrecondition,
                 "main() must call portico::omni::RunAsHelper() first, or Config::program name the "
                 "program `portico`");
  }
  std::vector<std::string> flags;
  const auto add = [&flags](const char* flag, const std::string& value) {
    if (value.empty()) return;
    flags.emplace_back(flag);
    flags.push_back(value);
  };
  add("--model-path", config.model_path);
  add("--served-model-name", config.model_name);
  add("--log-level", config.log_level);
  flags.insert(flags.end(), config.flags.begin(), config.flags.end());
  PORTICO_ASSIGN_OR_RETURN(ParsedOptions parsed,
                           OmniServeOptions(config.pipeline, config.overrides, flags));
  if (parsed.print_and_exit) {
    return Error(StatusCode::kInvalidArgument, "Config::flags must not ask for help");
  }
  return std::move(parsed.options);
}

StatusOr<std::shared_ptr<Client>> Client::Start(const Config& config) {
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<OmniClient> client, OmniClient::Load(config));
  return std::shared_ptr<Client>(std::move(client));
}

StatusOr<std::shared_ptr<OmniClient>> OmniClient::Load(const Config& config) {
  PORTICO_ASSIGN_OR_RETURN(ServeOptions options, OptionsOf(config));
  PORTICO_ASSIGN_OR_RETURN(const LogLevel level, ParseLogLevel(options.log_level));
  InitLog(level);
  // Requests of this process need no key.
  options.api_key.clear();
  options.admin_api_key.clear();
  std::shared_ptr<OmniClient> client(new OmniClient(std::move(options)));
  PORTICO_RETURN_IF_ERROR(client->Open());
  return client;
}

Status OmniClient::Open() {
  for (const ModelOptions& model : options_.models) {
    PORTICO_RETURN_IF_ERROR(CheckBeforeLoading(model));
  }
  PORTICO_ASSIGN_OR_RETURN(auto compiling,
                           grammar::CompileProcess::StartProgram(kGrammarCommand, ProgramPath()));
  PORTICO_ASSIGN_OR_RETURN(service_, HttpService::Make(options_));
  auto grammars = std::make_shared<grammar::GrammarCompiler>(
      std::move(compiling), GrammarOptions(options_), &service_->registry());
  PORTICO_RETURN_IF_ERROR(LoadModels(options_, grammars, service_.get()));
  PORTICO_ASSIGN_OR_RETURN(const std::string models, Ask({.path = "/v1/models", .body = ""}));
  name_ = FirstModel(models);
  return OkStatus();
}

std::unique_ptr<LocalAnswer> OmniClient::Send(const Request& request, bool whole) {
  net::HttpRequest http;
  http.method = request.method;
  http.path = request.path;
  http.query = request.query;
  http.headers = request.headers;
  if (!request.body.empty() && !request.content_type.empty()) {
    http.headers.emplace_back("content-type", request.content_type);
  }
  http.body = request.body;
  http.peer = "this process";
  const std::vector<net::Shard*> shards = service_->shards();
  net::Shard& shard = *shards[next_.fetch_add(1, std::memory_order_relaxed) % shards.size()];
  return LocalAnswer::Start(
      shard, std::move(http),
      [this](std::unique_ptr<net::Exchange> exchange) { service_->Dispatch(std::move(exchange)); },
      {.whole = whole});
}

StatusOr<Answer> OmniClient::Submit(const Request& request) {
  const auto sent = Send(request, /*whole=*/true);
  PORTICO_ASSIGN_OR_RETURN(net::ResponseHead head, sent->Head());
  Answer answer;
  answer.content_type = std::string(head.Header("content-type"));
  answer.headers = std::move(head.headers);
  PORTICO_ASSIGN_OR_RETURN(answer.body, sent->Await());
  return answer;
}

std::unique_ptr<AnswerStream> OmniClient::Stream(const Request& request) {
  return std::make_unique<Reader>(Send(request, /*whole=*/false));
}

StatusOr<std::string> OmniClient::Ask(Request request) {
  if (request.body.empty()) request.method = "GET";
  PORTICO_ASSIGN_OR_RETURN(Answer answer, Submit(request));
  return std::move(answer.body);
}

Status OmniClient::Abort(std::string_view request_id) {
  std::string body;
  JsonWriter(&body).BeginObject().Key("rid").String(request_id).EndObject();
  return Ask({.path = "/abort_request", .body = std::move(body)}).status();
}

StatusOr<std::string> OmniClient::Health() {
  PORTICO_ASSIGN_OR_RETURN(std::string text, Ask({.path = "/health", .body = ""}));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

StatusOr<std::string> OmniClient::Admin(std::string_view action, const std::string& payload) {
  return Ask({.path = "/" + std::string(action), .body = payload.empty() ? "{}" : payload});
}

int LaunchServer(const Config& config, const LaunchOptions& options) {
  Config launched = config;
  launched.log_level = options.log_level;
  launched.flags.insert(launched.flags.end(),
                        {"--host", options.host, "--port", std::to_string(options.port)});
  const auto parsed = OptionsOf(launched);
  if (parsed.ok()) return ServeWith(*parsed);
  std::fprintf(stderr, "portico: %s\n", std::string(MessageOf(parsed.status())).c_str());
  return 1;
}

}  // namespace portico::omni
