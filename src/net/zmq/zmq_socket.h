// ZeroMQ sockets. Used by one thread each; libzmq has a thread of its own behind them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace portico::net {

class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;
  // Null where libzmq is not installed: every socket is UNAVAILABLE then.
  void* get() const { return context_; }

 private:
  void* context_ = nullptr;
};

// What a socket takes from a peer that is not trusted.
struct ZmqLimits {
  int max_messages = 10'000;                   // that wait to be received
  int64_t max_part_bytes = int64_t{32} << 20;  // a peer that sends more is disconnected
};

// How a socket is bound.
struct ZmqBinding {
  int listener = -1;  // listens already, and is the socket's from here on; -1: it makes its own
  // Only peers that the context's ZmqGuard admits get or send anything; everyone where it has none.
  bool guarded = false;
};

class ZmqSocket {
 public:
  ZmqSocket() = default;
  ~ZmqSocket() { Close(); }
  ZmqSocket(ZmqSocket&& other) noexcept { *this = std::move(other); }
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;

  // As SGLang's scheduler wants them: one message a frame, no limit on what waits in them (the engine bounds its
  // requests itself). UNAVAILABLE names the address that cannot be bound.
  static StatusOr<ZmqSocket> BindPush(const ZmqContext& context, const std::string& address,
                                      ZmqBinding binding);
  static StatusOr<ZmqSocket> BindPull(const ZmqContext& context, const std::string& address,
                                      ZmqBinding binding);
  // Answers one message after the other: between two calls of Receive() that give one, SendParts().
  static StatusOr<ZmqSocket> BindReply(const ZmqContext& context, const std::string& address);

  // Messages whose first part begins with `topic`. A connection that is lost, or silent for 15 s, is made again; what
  // is published meanwhile is lost, as is what does not fit the limits. *monitor, to be closed after it, tells of its
  // connections from the first one on (NextChange()). UNAVAILABLE names an address that is none.
  static StatusOr<ZmqSocket> ConnectSub(const ZmqContext& context, const std::string& address,
                                        const std::string& topic, const ZmqLimits& limits,
                                        ZmqSocket* monitor);
  // Asks a ROUTER. UNAVAILABLE names an address that is none.
  static StatusOr<ZmqSocket> ConnectDealer(const ZmqContext& context, const std::string& address,
                                           const ZmqLimits& limits);

  // False: nobody is connected yet, or the socket failed; try again later.
  bool Send(std::string_view frame);
  // The same without a copy: the frame is moved from, and freed once it is sent; `*held`, which may be null, is let go of
  // then. On any thread, until the context is destroyed at the latest. False: both are as before.
  bool SendOwned(std::string* frame, std::shared_ptr<void>* held);
  // The same of a message of several parts.
  bool SendParts(const std::vector<std::string_view>& parts);
  // The next frame, without waiting; false if there is none. The bytes are valid until the next call. Parts of a
  // multipart message come as frames, all of them at once.
  bool Receive(std::string_view* frame);
  // Whether more parts of the message follow the one that Receive() gave.
  bool HasMore() const;
  // For poll(): readable when something has changed. Receive() until it gives nothing before the next poll(), which
  // does not report again what was there.
  int descriptor() const;
  // Does what is due without receiving: a new connection is subscribed on.
  void Settle();
  // Of a monitor: the next change, without waiting. True: a connection can be used; false: it is lost.
  std::optional<bool> NextChange();

  bool is_open() const { return socket_ != nullptr; }
  void* get() const { return socket_; }
  void Close();

 private:
  static StatusOr<ZmqSocket> Bind(const ZmqContext& context, int type, const std::string& address,
                                  ZmqBinding binding);
  static StatusOr<ZmqSocket> Make(const ZmqContext& context, int type, const ZmqLimits& limits);
  Status ConnectTo(const std::string& address);
  StatusOr<ZmqSocket> MakeMonitor(const ZmqContext& context);
  void Set(int option, int value);

  void* socket_ = nullptr;
  void* message_ = nullptr;  // zmq_msg_t, made at the first Receive()
  bool monitored_ = false;
};

}  // namespace portico::net
