#include "app/client/portico_client.h"

#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "app/client/local_answer.h"
#include "app/gateway/token_fronts.h"
#include "base/metrics.h"
#include "router/gateway.h"
#include "router/proxy/proxy_call.h"
#include "text/json.h"
#include "text/json_outline.h"

namespace portico {
namespace {

constexpr std::string_view kChatPath = "/v1/chat/completions";
constexpr std::string_view kCompletionPath = "/v1/completions";
constexpr std::string_view kEmbeddingPath = "/v1/embeddings";

// A whole answer is not asked for in chunks.
Status CheckNoStream(const std::string& request) {
  // What is long is not read; whether the rest is JSON, the worker says.
  const auto outline = OutlineOf(request, [](std::string_view) { return false; });
  if (!outline) return OkStatus();
  const auto parsed = Json::Parse(outline->text);
  if (!parsed.ok() || !parsed->GetBool("stream", false)) return OkStatus();
  return InvalidArgument("stream", "stream must be false or absent where a whole answer is wanted");
}

// The body with "stream": true, all else as it came.
StatusOr<std::string> AskForStream(const std::string& request) {
  const auto parsed = Json::Parse(request);
  if (!parsed.ok() || !parsed->is_object()) {
    return Error(StatusCode::kInvalidArgument, "the request is not a JSON object");
  }
  if (const Json* stream = parsed->Find("stream"); stream != nullptr) {
    if (parsed->GetBool("stream", false)) return request;
    return InvalidArgument("stream", "stream must be true or absent");
  }
  std::string body = request;
  const bool empty = parsed->as_object().empty();
  body.insert(body.find('{') + 1, empty ? "\"stream\":true" : "\"stream\":true,");
  return body;
}

class Stream final : public ClientStream {
 public:
  explicit Stream(std::unique_ptr<LocalAnswer> answer) : answer_(std::move(answer)) {}
  StatusOr<std::optional<std::string>> Receive() override { return answer_->Receive(); }

 private:
  std::unique_ptr<LocalAnswer> answer_;
};

class GatewayClient final : public Client {
 public:
  GatewayClient() : shard_(0) {}
  ~GatewayClient() override {
    if (gateway_ == nullptr) return;
    gateway_->StopWatching();
    if (fronts_ != nullptr) {
      // Streams that were dropped have posted their ends.
      std::promise<void> done;
      shard_.Post([&done] { done.set_value(); });
      done.get_future().wait();
      fronts_->Stop();
    }
    shard_.Stop();
    on_shard_.reset();
  }

  Status Open(const ClientOptions& options) {
    router::GatewayOptions gateway;
    gateway.policy.regular = options.policy;
    gateway.api_key = options.api_key;
    gateway.request_timeout = std::chrono::duration_cast<Duration>(options.request_timeout);
    std::vector<router::WorkerSpec> specs;
    for (const std::string& url : options.workers) {
      PORTICO_ASSIGN_OR_RETURN(router::WorkerSpec spec, router::ParseWorkerUrl(url));
      specs.push_back(std::move(spec));
    }
    if (specs.empty()) return Error(StatusCode::kInvalidArgument, "no worker is named");
    PORTICO_ASSIGN_OR_RETURN(gateway_, router::Gateway::Make(std::move(gateway), registry_));
    on_shard_ = std::make_unique<router::GatewayShard>(shard_, *gateway_);
    gateway_->Attach(on_shard_.get());
    TokenFrontsOptions tokens;
    tokens.model.tokenizer_path = options.tokenizer_path;
    tokens.model.chat_template = options.chat_template;
    tokens.request_timeout = gateway_->options().request_timeout;
    tokens.api_key = options.api_key;
    tokens.shards = {&shard_};
    tokens.on_lost = [this](const router::WorkerPtr& worker, bool reached) {
      gateway_->NoteLost(*worker, reached);
    };
    tokens.on_malformed = [this](const router::WorkerPtr& worker, std::string_view why) {
      gateway_->NoteMalformed(*worker, why);
    };
    shard_.Start();
    fronts_ = std::make_unique<TokenFronts>(std::move(tokens));
    gateway_->UseTokens(fronts_.get());
    gateway_->StartWatching();
    for (router::WorkerSpec& spec : specs) {
      PORTICO_RETURN_IF_ERROR(gateway_->AddWorker(std::move(spec)).status());
    }
    const auto deadline = std::chrono::steady_clock::now() + options.startup_timeout;
    while (true) {
      const Status ready = gateway_->Ready();
      if (ready.ok()) return ready;
      if (std::chrono::steady_clock::now() > deadline) {
        return Error(StatusCode::kDeadlineExceeded, std::string(MessageOf(ready)));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  StatusOr<std::string> ChatCompletion(const std::string& request) override {
    return Whole(kChatPath, request);
  }
  StatusOr<std::unique_ptr<ClientStream>> ChatCompletionStream(
      const std::string& request) override {
    return Chunks(kChatPath, request);
  }
  StatusOr<std::string> Completion(const std::string& request) override {
    return Whole(kCompletionPath, request);
  }
  StatusOr<std::unique_ptr<ClientStream>> CompletionStream(const std::string& request) override {
    return Chunks(kCompletionPath, request);
  }
  StatusOr<std::string> Embeddings(const std::string& request) override {
    return Whole(kEmbeddingPath, request);
  }

 private:
  StatusOr<std::string> Whole(std::string_view path, const std::string& request) {
    PORTICO_RETURN_IF_ERROR(CheckNoStream(request));
    return Send(path, request, /*whole=*/true)->Await();
  }

  StatusOr<std::unique_ptr<ClientStream>> Chunks(std::string_view path,
                                                 const std::string& request) {
    PORTICO_ASSIGN_OR_RETURN(std::string body, AskForStream(request));
    return std::make_unique<Stream>(Send(path, std::move(body), /*whole=*/false));
  }

  std::unique_ptr<LocalAnswer> Send(std::string_view path, std::string body, bool whole) {
    net::HttpRequest request;
    request.method = "POST";
    request.path = std::string(path);
    request.headers.emplace_back("content-type", "application/json");
    request.body = std::move(body);
    return LocalAnswer::Start(shard_, std::move(request),
                              [this](std::unique_ptr<net::Exchange> exchange) {
                                router::ProxyCall::Start(*on_shard_, std::move(exchange));
                              },
                              {.whole = whole, .wants_done = true});
  }

  Registry registry_;
  std::unique_ptr<router::Gateway> gateway_;
  net::Shard shard_;
  std::unique_ptr<router::GatewayShard> on_shard_;
  std::unique_ptr<TokenFronts> fronts_;
};

}  // namespace

StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  auto client = std::make_unique<GatewayClient>();
  PORTICO_RETURN_IF_ERROR(client->Open(options));
  return client;
}

}  // namespace portico
