#include "net/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <mutex>
#include <utility>

#include "net/listener.h"
#include "net/server_shard.h"

namespace portico::net {
namespace {

// Refusals in progress above max_connections; beyond them a client is closed without a word.
constexpr int kMaxRefusals = 256;

// Runs `task` on the shard and waits until it has called what it is given.
void RunAndWait(Shard& shard, std::function<void(std::function<void()> done)> task) {
  std::promise<void> finished;
  shard.Post([&] { task([&finished] { finished.set_value(); }); });
  finished.get_future().wait();
}

}  // namespace

struct Server::Impl {
  void OnAccept(int fd, const sockaddr_storage& peer);
  void StopAccepting();
  void Stop();

  ServerOptions options;
  Handler handler;
  std::unique_ptr<TlsContext> tls;
  OpenCount open;
  std::vector<std::unique_ptr<ServerShard>> shards;
  std::unique_ptr<Listener> listener;  // used on the first shard
  int port = 0;
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> refused{0};
  std::mutex stopping;
  bool stopped_accepting = false;  // guarded by stopping
  bool stopped = false;            // guarded by stopping
};

void Server::Impl::OnAccept(int fd, const sockaddr_storage& peer) {
  accepted.fetch_add(1, std::memory_order_relaxed);
  bool refuse = open.count() >= options.max_connections;
  if (refuse) {
    refused.fetch_add(1, std::memory_order_relaxed);
    if (open.count() >= options.max_connections + kMaxRefusals) {
      close(fd);
      return;
    }
  }
  auto least = std::min_element(shards.begin(), shards.end(),
                                [](const auto& a, const auto& b) { return a->open() < b->open(); });
  ServerShard* chosen = least->get();
  chosen->Expect();
  chosen->shard.Post(
      [chosen, fd, refuse, ipv6 = peer.ss_family == AF_INET6, name = PeerName(peer)]() mutable {
        chosen->Adopt(fd, ipv6, std::move(name), refuse);
      });
}

void Server::Impl::StopAccepting() {
  std::lock_guard lock(stopping);
  if (std::exchange(stopped_accepting, true)) return;
  RunAndWait(shards.front()->shard, [this](std::function<void()> done) {
    listener->Close([this, done] {
      // Not within the listener's own handler.
      shards.front()->shard.Post([this, done] {
        listener.reset();
        done();
      });
    });
  });
}

void Server::Impl::Stop() {
  StopAccepting();
  std::lock_guard lock(stopping);
  if (std::exchange(stopped, true)) return;
  for (auto& shard : shards) {
    shard->shard.Post([shard = shard.get()] { shard->AbortAll(); });
  }
  while (!open.WaitForZero(Clock::now() + std::chrono::hours(1))) {
  }
  for (auto& shard : shards) {
    RunAndWait(shard->shard, [](std::function<void()> done) { done(); });
  }
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { Stop(); }

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, std::vector<Shard*> shards,
                                                Handler handler) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  auto impl = std::make_unique<Impl>();
  Impl* server = impl.get();
  server->options = std::move(options);
  server->handler = std::move(handler);
  const ServerOptions& wanted = server->options;
  if (wanted.tls_certificate.empty() != wanted.tls_key.empty()) {
    return Error(StatusCode::kInvalidArgument, "TLS needs both a certificate and a key");
  }
  if (!wanted.tls_certificate.empty()) {
    PORTICO_ASSIGN_OR_RETURN(server->tls, TlsContext::Load(wanted.tls_certificate, wanted.tls_key,
                                                           wanted.http2.enabled));
  }
  for (Shard* shard : shards) {
    server->shards.push_back(std::make_unique<ServerShard>(*shard, wanted, server->handler,
                                                           server->tls.get(), server->open));
  }
  PORTICO_ASSIGN_OR_RETURN(server->listener,
                           Listener::Open(*shards.front(), wanted.host, wanted.port,
                                          [server](int fd, const sockaddr_storage& peer) {
                                            server->OnAccept(fd, peer);
                                          }));
  server->port = server->listener->port();
  shards.front()->Post([listener = server->listener.get()] { listener->Start(); });
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

int Server::port() const { return impl_->port; }

ServerStats Server::stats() const {
  ServerStats stats;
  stats.accepted = impl_->accepted.load(std::memory_order_relaxed);
  stats.refused = impl_->refused.load(std::memory_order_relaxed);
  for (const auto& shard : impl_->shards) stats.open.push_back(shard->open());
  return stats;
}

void Server::StopAccepting() { impl_->StopAccepting(); }

bool Server::Drain(TimePoint deadline) {
  impl_->StopAccepting();
  for (auto& shard : impl_->shards) {
    shard->shard.Post([shard = shard.get()] { shard->Drain(); });
  }
  return impl_->open.WaitForZero(deadline);
}

void Server::Stop() { impl_->Stop(); }

}  // namespace portico::net
