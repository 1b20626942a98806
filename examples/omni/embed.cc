// A speaking program: a pipeline inside, on a server that has routes of its own.
//
//   embed [PIPELINE] [--port N] [--say TEXT FILE]   (without PIPELINE: the bundled one)
//   embed --launch [PIPELINE] [--port N]            what `portico omni serve` does
//
// It serves until the end of its standard input.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "app/omni/portico_omni.h"

namespace omni = portico::omni;

namespace {

int Fail(const portico::Status& status) {
  std::fprintf(stderr, "embed: %s\n", std::string(portico::MessageOf(status)).c_str());
  return 1;
}

// Writes the sound as it is made.
portico::Status Say(omni::Client& client, const std::string& body, const std::string& path) {
  const auto speech = client.Stream({.path = "/v1/audio/speech", .body = body});
  PORTICO_ASSIGN_OR_RETURN(const omni::Answer head, speech->Head());
  std::ofstream file(path, std::ios::binary);
  size_t bytes = 0;
  while (true) {
    PORTICO_ASSIGN_OR_RETURN(const auto piece, speech->Receive());
    if (!piece) break;
    file << *piece;
    bytes += piece->size();
  }
  std::printf("%s: %zu bytes of %s\n", path.c_str(), bytes, head.content_type.c_str());
  return portico::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = omni::RunAsHelper(argc, argv)) return *status;
  omni::Config config;
  int port = 8000;
  bool launch = false;
  std::string say;
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--launch") {
      launch = true;
    } else if (word == "--port" && i + 1 < argc) {
      port = std::atoi(argv[++i]);
    } else if (word == "--say" && i + 2 < argc) {
      say = argv[++i];
      file = argv[++i];
    } else {
      config.pipeline = word;
    }
  }
  if (launch) return omni::LaunchServer(config, {.host = "127.0.0.1", .port = port});

  auto started = omni::Client::Start(config);
  if (!started.ok()) return Fail(started.status());
  std::shared_ptr<omni::Client> client = *std::move(started);
  if (!say.empty()) {
    const auto said = Say(*client, say, file);
    if (!said.ok()) return Fail(said);
  }

  auto server = omni::Server::Make({.port = port});
  server->Route("GET", "/about", [client](const omni::Server::RouteRequest&) {
    return omni::Server::RouteAnswer{.body =
                                         "this program speaks with " + client->ModelName() + "\n"};
  });
  if (const auto made = omni::CreateApp(client, *server); !made.ok()) return Fail(made);
  if (const auto listens = server->Listen(); !listens.ok()) return Fail(listens);
  std::printf("http://127.0.0.1:%d\n", server->port());
  std::fflush(stdout);

  for (std::string line; std::getline(std::cin, line);) {
    if (line.starts_with("abort ")) {
      if (const auto ended = client->Abort(line.substr(6)); !ended.ok()) return Fail(ended);
    } else {
      const auto health = client->Health();
      if (!health.ok()) return Fail(health.status());
      std::printf("%s\n", health->c_str());
      std::fflush(stdout);
    }
  }
  const bool drained = server->Drain(std::chrono::seconds(10));
  server.reset();
  // The last owner of the client ends its pipeline and its threads.
  const std::weak_ptr<omni::Client> left = client;
  client.reset();
  if (!left.expired()) return 4;
  return drained ? 0 : 3;
}
