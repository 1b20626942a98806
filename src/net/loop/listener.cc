#include "net/loop/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace portico::net {
namespace {

constexpr int kAcceptsATurn = 64;
// After the process has run out of descriptors the clients wait in the backlog. The socket stays
// readable all that time, so waiting for readiness would spin.
constexpr Duration kRetry = std::chrono::milliseconds(50);

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

// The listening socket or -1 with errno.
int ListenOn(const addrinfo& address) {
  int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

StatusOr<std::unique_ptr<Listener>> Listener::Open(Shard& shard, const std::string& host, int port,
                                                   OnAccept on_accept) {
  std::string where = host + ":" + std::to_string(port);
  if (port < 0 || port > 65535) {
    return Error(StatusCode::kInvalidArgument, "cannot listen on " + where + ": no such port");
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  AddressList list;
  std::string service = std::to_string(port);
  if (int failed = getaddrinfo(host.c_str(), service.c_str(), &hints, &list.first); failed != 0) {
    // A name may be resolved later, when the network is up.
    const bool later = failed == EAI_AGAIN || failed == EAI_SYSTEM || failed == EAI_MEMORY;
    return Error(later ? StatusCode::kUnavailable : StatusCode::kInvalidArgument,
                 "cannot listen on " + where + ": " + gai_strerror(failed));
  }
  int fd = -1;
  const addrinfo* address = list.first;
  for (; address != nullptr && fd < 0; address = fd < 0 ? address->ai_next : address) {
    fd = ListenOn(*address);
    if (fd >= 0) break;
  }
  if (fd < 0) {
    std::string why = errno == EADDRINUSE ? "the port is in use" : std::strerror(errno);
    return Error(StatusCode::kUnavailable, "cannot listen on " + where + ": " + why);
  }
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return std::unique_ptr<Listener>(
      new Listener(shard, fd, address->ai_family == AF_INET6, PortOf(bound), std::move(on_accept)));
}

Listener::Listener(Shard& shard, int fd, bool ipv6, int port, OnAccept on_accept)
    : shard_(shard),
      acceptor_(shard.io().get_executor(),
                ipv6 ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4(), fd),
      port_(port),
      on_accept_(std::move(on_accept)) {}

Listener::~Listener() = default;

void Listener::Start() { Wait(); }

void Listener::Wait() {
  waiting_ = true;
  acceptor_.async_wait(Acceptor::wait_read, [this](const boost::system::error_code&) {
    waiting_ = false;
    Shard::Turn turn(shard_);
    if (closed_ != nullptr) {
      std::exchange(closed_, nullptr)();
      return;
    }
    if (AcceptSome(kAcceptsATurn)) {
      Wait();
      return;
    }
    retry_ = shard_.After(kRetry, [this] {
      retry_ = nullptr;
      Wait();
    });
  });
}

bool Listener::AcceptSome(int max) {
  for (int i = 0; i < max; ++i) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    int fd = accept4(acceptor_.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return false;
      continue;  // that client has given up already (ECONNABORTED and the network's errors)
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    on_accept_(fd, peer);
  }
  return true;
}

void Listener::Close(std::function<void()> closed) {
  retry_ = nullptr;
  AcceptSome(INT_MAX);
  boost::system::error_code ignored;
  if (waiting_) {
    closed_ = std::move(closed);
    acceptor_.close(ignored);
  } else {
    acceptor_.close(ignored);
    closed();
  }
}

std::string PeerName(const sockaddr_storage& address) {
  std::string name(INET6_ADDRSTRLEN, '\0');
  bool ipv6 = address.ss_family == AF_INET6;
  const void* host =
      ipv6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
           : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  inet_ntop(address.ss_family, host, name.data(), static_cast<socklen_t>(name.size()));
  name.resize(std::strlen(name.c_str()));
  if (ipv6) {
    name.insert(name.begin(), '[');
    name.push_back(']');
  }
  name.push_back(':');
  name.append(std::to_string(PortOf(address)));
  return name;
}

}  // namespace portico::net
