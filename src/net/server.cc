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
#include "net/tls_reload.h"

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
  Status Listen();
  void OnAccept(int fd, const sockaddr_storage& peer);
  void UseTls(const std::shared_ptr<const TlsContext>& changed);
  void StopAccepting();
  void Stop();

  ServerOptions options;
  Handler handler;
  std::unique_ptr<TlsReloader> tls;  // used on the first shard; null: no TLS
  OpenCount open;
  std::vector<std::unique_ptr<ServerShard>> shards;
  std::vector<std::unique_ptr<Listener>> listeners;  // used on the first shard
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

Status Server::Impl::Listen() {
  std::vector<int> ports = {options.port};
  ports.insert(ports.end(), options.more_ports.begin(), options.more_ports.end());
  for (int wanted : ports) {
    PORTICO_ASSIGN_OR_RETURN(
        std::unique_ptr<Listener> opened,
        Listener::Open(shards.front()->shard, options.host, wanted,
                       [this](int fd, const sockaddr_storage& peer) { OnAccept(fd, peer); }));
    listeners.push_back(std::move(opened));
  }
  port = listeners.front()->port();
  return OkStatus();
}

void Server::Impl::UseTls(const std::shared_ptr<const TlsContext>& changed) {
  // Called on the first: what it posted to itself could come after its last turn for the server.
  shards.front()->UseTls(changed);
  for (size_t i = 1; i < shards.size(); ++i) {
    shards[i]->shard.Post([shard = shards[i].get(), changed] { shard->UseTls(changed); });
  }
}

void Server::Impl::StopAccepting() {
  std::lock_guard lock(stopping);
  if (std::exchange(stopped_accepting, true)) return;
  for (auto& listener : listeners) {
    RunAndWait(shards.front()->shard, [&](std::function<void()> done) {
      listener->Close([&, done] {
        // Not within the listener's own handler.
        shards.front()->shard.Post([&, done] {
          listener.reset();
          done();
        });
      });
    });
  }
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
    RunAndWait(shard->shard, [&](std::function<void()> done) {
      if (shard == shards.front()) tls.reset();
      done();
    });
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
  if (wanted.tls.certificate.empty() != wanted.tls.key.empty()) {
    return Error(StatusCode::kInvalidArgument, "TLS needs both a certificate and a key");
  }
  std::shared_ptr<const TlsContext> tls;
  if (!wanted.tls.certificate.empty()) {
    server->tls = std::make_unique<TlsReloader>(*shards.front(), wanted.tls, wanted.http2.enabled);
    PORTICO_ASSIGN_OR_RETURN(tls, server->tls->Load());
  }
  for (Shard* shard : shards) {
    server->shards.push_back(
        std::make_unique<ServerShard>(*shard, wanted, server->handler, tls, server->open));
  }
  PORTICO_RETURN_IF_ERROR(server->Listen());
  shards.front()->Post([server] {
    for (auto& listener : server->listeners) listener->Start();
    const bool watch = server->options.tls.reload_period != Duration::zero();
    if (server->tls == nullptr || !watch) return;
    server->tls->Watch(
        [server](std::shared_ptr<const TlsContext> changed) { server->UseTls(changed); });
  });
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
