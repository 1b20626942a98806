// Pipelines of stages inside another program: speech, transcriptions and chat by voice (docs/omni.md).
//
//   Client         loads the models and runs the pipeline; requests are made in this process
//   CreateApp      adds OpenAI's routes to a Server that the caller owns, beside routes of the caller's
//   LaunchServer   all of it: what `portico omni serve` does
//
// Link with the target portico_omni. main() calls RunAsHelper() first. Functions block and are thread
// safe, but for those of one answer, which is one thread's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace portico::omni {

using Headers = std::vector<std::pair<std::string, std::string>>;

// Grammars are compiled, and stages with a `process` run, in processes of their own, which are this
// program started again. The exit status if it is one: main returns it. To be called before anything
// else, unless Config::program names the program `portico` for these.
std::optional<int> RunAsHelper(int argc, char** argv);

struct Config {
  std::string pipeline = {};  // a PipelineConfig's file; empty: the bundled one
  std::vector<std::pair<std::string, std::string>> overrides = {};  // {"say.factory.voice", "rms"}
  std::string model_path = {};  // of stages that are portico.engine; empty: the pipeline's
  std::string model_name = {};  // what requests call the model; empty: as `portico omni serve`
  std::vector<std::string> flags =
      {};  // others of `portico omni serve`: {"--max-queued-requests", "64"}
  std::string log_level = "warning";
  std::string program = {};  // the program `portico`; empty: this one
};

// What the routes of docs/omni.md take.
struct Request {
  std::string path;  // "/v1/audio/speech"
  std::string body;  // JSON, unless content_type says otherwise
  std::string method = "POST";
  std::string content_type = "application/json";
  std::string query = {};
  Headers headers = {};  // others, names in lower case
};

struct Answer {
  std::string content_type = {};
  Headers headers;
  std::string body;
};

// An answer while it is made. Dropping it aborts the request. Not after its client.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  // Type and headers. Waits for them. Fails as Submit() does.
  virtual StatusOr<Answer> Head() = 0;
  // What comes next: the data of one event where the answer is text/event-stream (but for [DONE]), else
  // bytes as they come. Nothing at the end. Waits for it. Who does not call it stops the stages of this
  // request, and of no other. An error ends the stream: UNAVAILABLE if it was cut off.
  virtual StatusOr<std::optional<std::string>> Receive() = 0;
};

class Client {
 public:
  // Loads and starts everything: seconds, minutes at the first import of a model. INVALID_ARGUMENT
  // names what cannot be, UNAVAILABLE the package that a stage lacks, FAILED_PRECONDITION if main() has
  // not called RunAsHelper().
  static StatusOr<std::shared_ptr<Client>> Start(const Config& config);
  virtual ~Client() = default;

  // The whole answer. Errors have the answer's message and field: INVALID_ARGUMENT for 4xx,
  // RESOURCE_EXHAUSTED for 429, else UNAVAILABLE.
  virtual StatusOr<Answer> Submit(const Request& request) = 0;
  // The same while it is made; errors come from the stream.
  virtual std::unique_ptr<AnswerStream> Stream(const Request& request) = 0;
  // Ends the request that was given this `request_id`. Nothing happens if there is none.
  virtual Status Abort(std::string_view request_id) = 0;
  // "ok", or "degraded: …" with what is wrong. UNAVAILABLE if nothing can be answered.
  virtual StatusOr<std::string> Health() = 0;
  // What operators do: "pause_generation", "flush_cache", "start_profile" … with a JSON body.
  virtual StatusOr<std::string> Admin(std::string_view action, const std::string& payload) = 0;
  // What /v1/models shows first.
  virtual std::string ModelName() = 0;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any free one
  int threads = 1;  // for connections
  size_t max_body_bytes = size_t{32} << 20;
  int max_connections = 16384;
  std::string tls_certificate = {};  // PEM files; empty: no TLS
  std::string tls_key = {};
};

// An HTTP server of the caller's, with HTTP/1.1, HTTP/2 and WebSockets on one port.
class Server {
 public:
  struct RouteRequest {
    std::string method;
    std::string path;   // percent-decoded
    std::string query;  // raw
    Headers headers;    // names in lower case
    std::string body;
  };
  struct RouteAnswer {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body = {};
    Headers headers = {};
  };
  // Called on the server's threads, which it must not block.
  using Handler = std::function<RouteAnswer(const RouteRequest&)>;

  static std::unique_ptr<Server> Make(const ServerOptions& options);
  // Closes everything at once.
  virtual ~Server() = default;

  // A route of the caller's, before Listen(). `path` is exact, or ends in "/*" for everything below
  // it. It comes before those of an app.
  virtual void Route(const std::string& method, const std::string& path, Handler handler) = 0;
  // From now on it answers, on threads of its own.
  virtual Status Listen() = 0;
  virtual int port() const = 0;
  // Requests in flight may finish for so long; the rest is aborted. False if something was.
  virtual bool Drain(std::chrono::milliseconds patience) = 0;
};

struct AppOptions {
  std::string model_name = {};   // empty: the client's; another than the client's is refused
  std::string api_key = {};      // what clients must send as a bearer token; empty: nothing
  std::string cors_origin = {};  // whose web pages may call it; empty: none
};

// Adds the routes that serve a client to a server that does not listen yet: health, metrics, models,
// chat, completions, speech, transcriptions and the two WebSockets; none that operate the server.
// The server keeps the client until it is destroyed. FAILED_PRECONDITION if it has an app, or listens.
Status CreateApp(std::shared_ptr<Client> client, Server& server, const AppOptions& options = {});

struct LaunchOptions {
  std::string host = "0.0.0.0";
  int port = 8000;
  std::string log_level = "info";
};

// Runs the server until SIGINT or SIGTERM, and drains it then. To be called while there are no other
// threads. The exit status; what goes wrong is on standard error.
int LaunchServer(const Config& config, const LaunchOptions& options = {});

}  // namespace portico::omni
