// The net room alone: reads any request and answers the same 1 KB, on one shard.
//   http_echo_server PORT
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "net/loop/server.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PORT\n", argv[0]);
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  portico::net::Shard shard(0);
  shard.Start();
  portico::net::ServerOptions options;
  options.port = std::atoi(argv[1]);
  const std::string body = "{\"text\":\"" + std::string(1011, 'e') + "\"}";
  auto server = portico::net::Server::Start(
      options, {&shard}, [&body](std::unique_ptr<portico::net::Exchange> exchange) {
        portico::net::HttpResponse response;
        response.body = body;
        exchange->Respond(std::move(response));
      });
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(portico::MessageOf(server.status())).c_str());
    return 1;
  }
  int signal;
  sigwait(&signals, &signal);
  server->reset();
  shard.Stop();
}
