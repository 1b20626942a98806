// The way of a gateway as a library: workers and, where they need one, a tokenizer go in; an OpenAI
// request as JSON goes in, its answer or its chunks as JSON come out. What `portico route` does between
// its sockets happens here without any: policies, health, retries, and for workers that take tokens
// templates, tokenizing and detokenizing.
//
// Link with the target portico_client. Functions block and are thread safe, but for those of one stream,
// which is one thread's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace portico {

struct ClientOptions {
  std::vector<std::string> workers;  // http://, https://, grpc://, grpcs:// or host:port
  std::string tokenizer_path;        // of workers that take tokens; empty: theirs
  std::string chat_template;         // a file or the template; empty: the tokenizer's
  std::string policy = "cost";
  std::string api_key;  // what workers are shown
  std::chrono::milliseconds startup_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds request_timeout = std::chrono::seconds(1800);
};

// The chunks of one answer. Dropping it cancels the request. Not after its client.
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  // The next chunk as JSON; nothing after the last. Waits for it. An error ends the stream: what the
  // worker or gateway says of the request, or UNAVAILABLE if the answer was cut off.
  virtual StatusOr<std::optional<std::string>> Receive() = 0;
};

class Client {
 public:
  // Waits until a worker is healthy. INVALID_ARGUMENT for options that cannot be, DEADLINE_EXCEEDED.
  static StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options);
  virtual ~Client() = default;

  // `request`: the body of POST /v1/chat/completions, without `stream`. The answer's body. Errors have
  // the answer's message: INVALID_ARGUMENT for 4xx, RESOURCE_EXHAUSTED for 429, else UNAVAILABLE.
  virtual StatusOr<std::string> ChatCompletion(const std::string& request) = 0;
  // The same with `stream`. Errors of the request come from Receive().
  virtual StatusOr<std::unique_ptr<ClientStream>> ChatCompletionStream(
      const std::string& request) = 0;
  // Likewise of POST /v1/completions.
  virtual StatusOr<std::string> Completion(const std::string& request) = 0;
  virtual StatusOr<std::unique_ptr<ClientStream>> CompletionStream(const std::string& request) = 0;
  // Likewise of POST /v1/embeddings.
  virtual StatusOr<std::string> Embeddings(const std::string& request) = 0;
};

}  // namespace portico
