#include "pipeline/remote/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace portico::pipeline {
namespace {

constexpr Duration kConnectPatience = std::chrono::seconds(5);
constexpr int kBacklog = 64;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

StatusOr<AddressList> Resolve(const HostPort& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (failed != 0) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("{}: {}", address.Text(), gai_strerror(failed)));
  }
  return AddressList(found, freeaddrinfo);
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address->sa_family != AF_INET6) return false;
  sockaddr_in6 v6;
  std::memcpy(&v6, address, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

Status CheckLoopback(const addrinfo& entry, const HostPort& address, bool loopback_only) {
  if (!loopback_only || IsLoopback(entry.ai_addr)) return OkStatus();
  return Error(
      StatusCode::kPermissionDenied,
      fmt::format("{} is not on this machine's loopback, and there is no token", address.Text()));
}

Status SocketError(const HostPort& address, int error) {
  return Error(StatusCode::kUnavailable,
               fmt::format("{}: {}", address.Text(), std::strerror(error)));
}

StatusOr<Fd> ConnectOne(const addrinfo& entry, const HostPort& address, TimePoint deadline,
                        const std::function<bool()>& stopping) {
  Fd fd(socket(entry.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SocketError(address, errno);
  if (connect(fd.get(), entry.ai_addr, entry.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return SocketError(address, errno);
  if (!WaitFor(fd.get(), POLLOUT, deadline, stopping)) return SocketError(address, ETIMEDOUT);
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return SocketError(address, error);
  return fd;
}

}  // namespace

std::string HostPort::Text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

StatusOr<HostPort> ParseHostPort(std::string_view text) {
  const auto bad = [text] {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("`{}` is not an address and port, such as 10.0.0.2:7000, gpu2:7000 or "
                             "[fd00::2]:7000",
                             text));
  };
  HostPort address;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  address.port = text.substr(colon + 1);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets) host = host.substr(1, host.size() - 2);
  address.host = host;
  constexpr std::string_view kNameBytes =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const size_t other = host.find_first_not_of(kNameBytes);
  in6_addr v6;
  const bool good_host = in_brackets ? inet_pton(AF_INET6, address.host.c_str(), &v6) == 1
                                     : !host.empty() && other == std::string_view::npos;
  const std::string& port = address.port;
  const bool good_port = !port.empty() && port.size() <= 5 &&
                         port.find_first_not_of("0123456789") == std::string::npos &&
                         std::stoi(port) <= 65535;
  if (!good_host || !good_port) return bad();
  return address;
}

bool WaitFor(int fd, short events, TimePoint deadline, const std::function<bool()>& stopping) {
  constexpr int kSliceMs = 50;  // how late `stopping` is seen
  while (Clock::now() < deadline) {
    if (stopping()) return false;
    pollfd wait{fd, events, 0};
    if (poll(&wait, 1, kSliceMs) > 0) return true;
  }
  return false;
}

void TuneConnection(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that has vanished is noticed within half a minute, even if nothing is sent.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

StatusOr<Fd> ConnectTo(const HostPort& address, bool loopback_only,
                       const std::function<bool()>& stopping) {
  PORTICO_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, 0));
  const TimePoint deadline = Clock::now() + kConnectPatience;
  Status failed = SocketError(address, EADDRNOTAVAIL);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    PORTICO_RETURN_IF_ERROR(CheckLoopback(*entry, address, loopback_only));
    auto fd = ConnectOne(*entry, address, deadline, stopping);
    if (fd.ok()) TuneConnection(fd->get());
    if (fd.ok()) return fd;
    failed = fd.status();
  }
  return failed;
}

StatusOr<Fd> ListenOn(const HostPort& address, bool loopback_only, int* port) {
  PORTICO_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, AI_PASSIVE));
  PORTICO_RETURN_IF_ERROR(CheckLoopback(*list, address, loopback_only));
  Fd fd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) {
    return SocketError(address, errno);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  // The port lies at the same place in addresses of both versions.
  sockaddr_in at;
  std::memcpy(&at, &bound, sizeof at);
  *port = ntohs(at.sin_port);
  return fd;
}

}  // namespace portico::pipeline
