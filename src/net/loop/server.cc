#include "net/loop/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "net/loop/listener.h"
#include "net/loop/server_shard.h"
#include "net/tls/tls_reload.h"

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
  OpenCount late;  // connections that came during the drain
  std::atomic<bool> draining{false};
  std::vector<std::unique_ptr<ServerShard>> shards;
  std::vector<std::unique_ptr<Listener>> listeners;  // used on the first shard
  int port = 0;
  std::atomic<uint64_t> accepted{0};
  Mutex stopping;
  bool stopped_accepting ABSL_GUARDED_BY(stopping) = false;
  bool stopped ABSL_GUARDED_BY(stopping) = false;
};

void Server::Impl::OnAccept(int fd, const sockaddr_storage& peer) {
  accepted.fetch_add(1, std::memory_order_relaxed);
  const int now = open.count() + late.count();
  const bool refuse = now >= options.max_connections;
  if (refuse) {
    options.load->connections_refused.fetch_add(1, std::memory_order_relaxed);
    if (now >= options.max_connections + kMaxRefusals) {
      close(fd);
      return;
    }
  }
  auto least = std::min_element(shards.begin(), shards.end(),
                                [](const auto& a, const auto& b) { return a->open() < b->open(); });
  ServerShard* chosen = least->get();
  OpenCount& count = draining ? late : open;
  chosen->Expect(count);
  chosen->shard.Post([this, chosen, fd, refuse, &count, ipv6 = peer.ss_family == AF_INET6,
                      name = PeerName(peer)]() mutable {
    chosen->Adopt({fd, ipv6, std::move(name), refuse, &count == &late}, count);
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
  const MutexLock lock(&stopping);
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
  const MutexLock lock(&stopping);
  if (std::exchange(stopped, true)) return;
  for (auto& shard : shards) {
    shard->shard.Post([shard = shard.get()] { shard->AbortAll(); });
  }
  for (OpenCount* count : {&open, &late}) {
    while (!count->WaitForZero(Clock::now() + std::chrono::hours(1))) {
    }
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
  if (server->options.load == nullptr) {
    server->options.load = std::make_shared<ServerLoad>(server->options.max_inflight_body_bytes);
  }
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
        std::make_unique<ServerShard>(*shard, wanted, server->handler, *wanted.load, tls));
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
  stats.refused = impl_->options.load->connections_refused.load(std::memory_order_relaxed);
  for (const auto& shard : impl_->shards) stats.open.push_back(shard->open());
  return stats;
}

void Server::StopAccepting() { impl_->StopAccepting(); }

bool Server::Drain(TimePoint deadline) {
  impl_->draining = true;
  if (!impl_->options.answers_while_draining) impl_->StopAccepting();
  for (auto& shard : impl_->shards) {
    shard->shard.Post([shard = shard.get()] { shard->Drain(); });
  }
  return impl_->open.WaitForZero(deadline);
}

void Server::Stop() { impl_->Stop(); }

}  // namespace portico::net
