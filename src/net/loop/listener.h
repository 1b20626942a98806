// The listening socket and its accept loop, on one shard.
#pragma once

#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/loop/shard.h"

namespace portico::net {

class Listener {
 public:
  // A non-blocking socket, the callee's from now on.
  using OnAccept = std::function<void(int fd, const sockaddr_storage& peer)>;

  // Any thread. Binds and listens; accepts after Start().
  static StatusOr<std::unique_ptr<Listener>> Open(Shard& shard, const std::string& host, int port,
                                                  OnAccept on_accept);
  ~Listener();  // on the shard, or after it has ended

  int port() const { return port_; }
  // On the shard.
  void Start();
  // Takes what waits in the backlog, then closes. Destroying is allowed once the pending wait has
  // been handled: `closed` is called then.
  void Close(std::function<void()> closed);

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp,
                                                      boost::asio::io_context::executor_type>;

  Listener(Shard& shard, int fd, bool ipv6, int port, OnAccept on_accept);
  void Wait();
  // False if the process has no descriptors or memory left for more.
  bool AcceptSome(int max);

  Shard& shard_;
  Acceptor acceptor_;
  int port_;
  OnAccept on_accept_;
  bool waiting_ = false;
  std::function<void()> closed_;
  std::unique_ptr<Shard::Timer> retry_;
};

// "127.0.0.1:51234", "[::1]:51234"
std::string PeerName(const sockaddr_storage& address);

}  // namespace portico::net
