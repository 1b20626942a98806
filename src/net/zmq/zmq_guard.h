// Decides who may speak with the guarded sockets of a context (ZmqBinding), as libzmq's authentication protocol has it
// (ZAP, https://rfc.zeromq.org/spec/27/): before a peer gets or sends anything, its connection is asked for here. One
// that is not admitted is closed; libzmq's own sockets connect again.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "net/zmq/zmq_socket.h"

namespace portico::net {

class ZmqGuard {
 public:
  // The peer's IP address as text.
  using Admits = std::function<bool(std::string_view address)>;

  ZmqGuard() = default;
  // Before the sockets that it guards; closed after them. UNAVAILABLE: the context has one already.
  static StatusOr<ZmqGuard> Bind(const ZmqContext& context, Admits admits);

  // For poll(), as ZmqSocket's; -1: there is no guard.
  int descriptor() const { return socket_.is_open() ? socket_.descriptor() : -1; }
  // Answers all that ask. The thread that polls the descriptor.
  void Answer();

 private:
  bool AnswerOne();

  ZmqSocket socket_;
  Admits admits_;
};

}  // namespace portico::net
