#include "api/grpc/native/json_rpcs.h"

#include <utility>

#include "api/grpc/native/json_exchange.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

using Envelope = JsonExchange::Envelope;

struct JsonMethod {
  std::string_view name;
  std::string_view path;
  Envelope envelope;
};

constexpr JsonMethod kMethods[] = {
    {"ChatComplete", "/v1/chat/completions", Envelope::kChunks},
    {"Complete", "/v1/completions", Envelope::kChunks},
    {"OpenAIEmbed", "/v1/embeddings", Envelope::kResponse},
    {"OpenAIClassify", "/v1/classify", Envelope::kResponse},
    {"Score", "/v1/score", Envelope::kResponse},
    {"Rerank", "/v1/rerank", Envelope::kResponse},
};

// W3C's. Any other of a message's trace_headers would be taken for one of the request's own.
constexpr std::string_view kTraceHeaders[] = {"traceparent", "tracestate", "baggage"};

// simdjson reads this far behind a body.
constexpr size_t kPadding = 64;

void PassThrough(RpcContext& context, const JsonMethod& method, CallPtr call,
                 const std::string& bytes) {
  ::sglang::runtime::v1::OpenAIRequest request;
  const Status parsed = ParseProtobuf(bytes, &request);
  if (!parsed.ok()) return Refuse(*call, parsed);
  ShardContext& shard = context.ShardOf(*call);
  net::HttpRequest http;
  http.method = "POST";
  http.path = method.path;
  http.headers = call->metadata();
  for (const std::string_view name : kTraceHeaders) {
    const auto found = request.trace_headers().find(name);
    if (found != request.trace_headers().end()) http.headers.emplace_back(name, found->second);
  }
  http.peer = call->peer();
  http.client = call->client();
  http.body = std::move(*request.mutable_json_body());
  http.body.reserve(http.body.size() + kPadding);
  auto exchange = std::make_unique<JsonExchange>(std::move(call), method.envelope);
  exchange->request = std::move(http);
  context.routes.Dispatch(std::move(exchange), shard);
}

}  // namespace

void AddJsonRpcs(RpcContext& context) {
  for (const JsonMethod& method : kMethods) {
    context.methods.Add("/sglang.runtime.v1.SglangService/" + std::string(method.name),
                        [&context, &method](CallPtr call, std::string bytes) {
                          PassThrough(context, method, std::move(call), bytes);
                        });
  }
}

}  // namespace portico::api::rpc
