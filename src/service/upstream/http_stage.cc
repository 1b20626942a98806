// One call to the server at a time for each request; its answer goes on while it comes, and while
// the stages behind have no room it is not read.
#include "service/upstream/http_stage.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>

#include "pipeline/stages/factory_arguments.h"
#include "service/plain_chat.h"
#include "service/upstream/http_roles.h"

namespace portico {
namespace {

using pipeline::Request;
using pipeline::StageOutput;
using pipeline::StageRun;

Status CheckThought(const Request& request) {
  PORTICO_RETURN_IF_ERROR(CheckIsChat(request));
  return CheckPlainChat(*request.chat);
}

class HttpStage final : public pipeline::Stage {
 public:
  HttpStage(HttpStageOptions options, const EngineStageContext& context)
      : options_(std::move(options)) {
    for (StreamHub* hub : context.hubs) {
      places_.push_back(std::make_shared<UpstreamPlace>(hub->net_shard(), options_));
    }
  }
  ~HttpStage() override {
    for (const auto& place : places_) {
      place->shard.Post([place] { place->client.reset(); });
    }
  }

  bool samples() const override { return options_.role != HttpRole::kSay; }
  bool calls_tools() const override { return options_.role == HttpRole::kThink; }
  bool Answers(pipeline::Task task) const override {
    switch (options_.role) {
      case HttpRole::kThink:
        return task == pipeline::Task::kChat;
      case HttpRole::kHear:
        return task == pipeline::Task::kTranscription;
      default:
        return task == pipeline::Task::kSpeech;
    }
  }
  bool translates() const override { return options_.translates; }
  std::vector<std::string> Voices() const override { return options_.voices; }

  Status Check(const Request& request) const override {
    if (places_.empty()) return Error(StatusCode::kInternal, "no shard to call from");
    if (options_.role == HttpRole::kThink) return CheckThought(request);
    return options_.role == HttpRole::kHear ? CheckHeard(request) : OkStatus();
  }

  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    auto place = places_[turn_.fetch_add(1) % places_.size()];
    switch (options_.role) {
      case HttpRole::kThink:
        return NewHttpThinker(options_, std::move(place), std::move(request), std::move(output));
      case HttpRole::kHear:
        return NewHttpEars(options_, std::move(place), std::move(request), std::move(output));
      default:
        return NewHttpVoice(options_, std::move(place), std::move(request), std::move(output));
    }
  }

 private:
  // Of sampling, OpenAI's transcriptions have a temperature.
  Status CheckHeard(const Request& request) const {
    if (request.translate && !options_.translates) {
      return InvalidArgument("model", "no stage of this pipeline translates");
    }
    const auto check = [this](const Json* sampling, std::string_view of) {
      if (sampling == nullptr || !sampling->is_object()) return OkStatus();
      for (const auto& [name, value] : sampling->as_object()) {
        if (name == "temperature") continue;
        return InvalidArgument(
            of.empty() ? name : std::string(of),
            fmt::format("{}: stage `{}` does not support it", name, options_.stage));
      }
      return OkStatus();
    };
    if (request.task == pipeline::Task::kTranscription) {
      PORTICO_RETURN_IF_ERROR(check(&request.sampling, ""));
    }
    if (!request.stage_sampling.is_object()) return OkStatus();
    return check(request.stage_sampling.Find(options_.stage), "stage_sampling");
  }

  const HttpStageOptions options_;
  std::vector<std::shared_ptr<UpstreamPlace>> places_;
  std::atomic<size_t> turn_{0};
};

StatusOr<HttpRole> ReadRole(const std::string& role) {
  if (role == "think") return HttpRole::kThink;
  if (role == "hear") return HttpRole::kHear;
  if (role == "say") return HttpRole::kSay;
  return Error(StatusCode::kInvalidArgument, "factory.role must be think, hear or say");
}

StatusOr<HttpStageOptions> ReadOptions(const pipeline::StageConfig& config) {
  constexpr std::string_view kKeys[] = {"url",   "role",   "model",       "api_key_env",
                                        "voice", "voices", "max_seconds", "translates"};
  PORTICO_RETURN_IF_ERROR(pipeline::CheckArguments(config, kKeys));
  HttpStageOptions options;
  options.stage = config.name;
  std::string url;
  std::string role;
  std::string key;
  PORTICO_RETURN_IF_ERROR(pipeline::ReadArgument(config, "url", &url));
  PORTICO_RETURN_IF_ERROR(pipeline::ReadArgument(config, "role", &role));
  PORTICO_RETURN_IF_ERROR(pipeline::ReadArgument(config, "model", &options.model));
  PORTICO_RETURN_IF_ERROR(pipeline::ReadArgument(config, "api_key_env", &key));
  PORTICO_RETURN_IF_ERROR(pipeline::ReadArgument(config, "voice", &options.voice));
  PORTICO_RETURN_IF_ERROR(pipeline::ReadArgument(config, "voices", &options.voices));
  PORTICO_RETURN_IF_ERROR(pipeline::ReadArgument(config, "translates", &options.translates));
  PORTICO_RETURN_IF_ERROR(
      pipeline::ReadArgument(config, "max_seconds", 1, 600, &options.max_seconds));
  PORTICO_ASSIGN_OR_RETURN(options.url, ParseUpstreamUrl(url));
  PORTICO_ASSIGN_OR_RETURN(options.role, ReadRole(role));
  if (!key.empty()) {
    const char* value = std::getenv(key.c_str());
    if (value == nullptr || *value == 0) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("factory.api_key_env: the variable {} is not set", key));
    }
    options.api_key = value;
    for (const char c : options.api_key) {
      if (c > ' ' && c <= '~') continue;
      return Error(
          StatusCode::kInvalidArgument,
          fmt::format("factory.api_key_env: {} contains bytes that are not allowed in a key", key));
    }
  }
  if (options.url.tls) {
    net::TlsClientOptions tls;
    tls.protocol = net::TlsProtocol::kHttp1;
    PORTICO_ASSIGN_OR_RETURN(options.tls, net::TlsClientContext::Load(tls));
  }
  if (options.voice.empty() && !options.voices.empty()) options.voice = options.voices.front();
  return options;
}

}  // namespace

UpstreamPlace::UpstreamPlace(net::Shard& on_shard, const HttpStageOptions& options)
    : shard(on_shard),
      tls(options.tls),
      target{options.url.host, options.url.port, tls.get(), options.url.host} {}

pipeline::StageFactory HttpStageFactory(const EngineStageContext& context) {
  return
      [context](const pipeline::StageConfig& config) -> StatusOr<std::unique_ptr<pipeline::Stage>> {
        PORTICO_ASSIGN_OR_RETURN(HttpStageOptions options, ReadOptions(config));
        return std::unique_ptr<pipeline::Stage>(
            std::make_unique<HttpStage>(std::move(options), context));
      };
}

}  // namespace portico
