#include "net/zmq/zmq_socket.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "net/zmq/zmq_library.h"

namespace portico::net {
namespace {

// A step of thousands of streams with log-probabilities is a few MB.
constexpr int64_t kMaxFrameBytes = int64_t{1} << 30;
constexpr int kMaxSockets = 16384;  // libzmq's own bound is 1023
constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 2000;
constexpr int kConnectMs = 5000;
// A peer that answers no heartbeat is gone, whatever the network says.
constexpr int kHeartbeatMs = 5000;
constexpr int kSilenceMs = 15000;

constexpr char kGuardedDomain[] = "portico";
// A peer that is not admitted may hear nothing and wait for its connection to be closed, by default for 30 s.
constexpr int kGuardedHandshakeMs = 3000;

std::atomic<uint64_t> g_next_monitor{1};

// Of a process that has a context.
const ZmqLibrary& Zmq() { return *LoadZmq(); }

// Null: no memory, or no library.
void* NewSocket(const ZmqContext& context, int type) {
  return context.get() == nullptr ? nullptr : Zmq().socket(context.get(), type);
}

std::string Why() {
  const ZmqLibrary* zmq = LoadZmq();
  return zmq == nullptr ? "libzmq.so.5 cannot be loaded" : zmq->strerror(zmq->error());
}

zmq_msg_t* MessageIn(void* message) { return static_cast<zmq_msg_t*>(message); }

}  // namespace

ZmqContext::ZmqContext() {
  if (LoadZmq() == nullptr) return;
  context_ = Zmq().ctx_new();
  Zmq().ctx_set(context_, ZMQ_MAX_SOCKETS, kMaxSockets);
}
ZmqContext::~ZmqContext() {
  if (context_ != nullptr) Zmq().ctx_term(context_);
}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  if (this == &other) return *this;
  Close();
  socket_ = std::exchange(other.socket_, nullptr);
  message_ = std::exchange(other.message_, nullptr);
  monitored_ = std::exchange(other.monitored_, false);
  return *this;
}

void ZmqSocket::Close() {
  if (message_ != nullptr) {
    Zmq().msg_close(MessageIn(message_));
    delete MessageIn(message_);
    message_ = nullptr;
  }
  // Else libzmq's thread would wait for a monitor that is closed.
  if (std::exchange(monitored_, false)) Zmq().socket_monitor(socket_, nullptr, 0);
  if (socket_ != nullptr) Zmq().close(socket_);
  socket_ = nullptr;
}

void ZmqSocket::Set(int option, int value) {
  Zmq().setsockopt(socket_, option, &value, sizeof(value));
}

StatusOr<ZmqSocket> ZmqSocket::Bind(const ZmqContext& context, int type, const std::string& address,
                                    ZmqBinding binding) {
  ZmqSocket socket;
  socket.socket_ = NewSocket(context, type);
  if (socket.socket_ != nullptr) {
    constexpr int kUnlimited = 0;
    socket.Set(ZMQ_SNDHWM, kUnlimited);
    socket.Set(ZMQ_RCVHWM, kUnlimited);
    socket.Set(ZMQ_LINGER, 0);
    Zmq().setsockopt(socket.socket_, ZMQ_MAXMSGSIZE, &kMaxFrameBytes, sizeof(kMaxFrameBytes));
    if (binding.listener >= 0) socket.Set(ZMQ_USE_FD, binding.listener);
    if (binding.guarded) {
      Zmq().setsockopt(socket.socket_, ZMQ_ZAP_DOMAIN, kGuardedDomain, sizeof(kGuardedDomain) - 1);
      socket.Set(ZMQ_HANDSHAKE_IVL, kGuardedHandshakeMs);
    }
    if (address.find('[') != std::string::npos) socket.Set(ZMQ_IPV6, 1);
    if (Zmq().bind(socket.socket_, address.c_str()) == 0) return socket;
  }
  const std::string why = Why();
  if (binding.listener >= 0) close(binding.listener);
  return Error(StatusCode::kUnavailable, fmt::format("cannot bind {}: {}", address, why));
}

StatusOr<ZmqSocket> ZmqSocket::BindPush(const ZmqContext& context, const std::string& address,
                                        ZmqBinding binding) {
  return Bind(context, ZMQ_PUSH, address, binding);
}

StatusOr<ZmqSocket> ZmqSocket::BindPull(const ZmqContext& context, const std::string& address,
                                        ZmqBinding binding) {
  return Bind(context, ZMQ_PULL, address, binding);
}

StatusOr<ZmqSocket> ZmqSocket::BindReply(const ZmqContext& context, const std::string& address) {
  return Bind(context, ZMQ_REP, address, {});
}

StatusOr<ZmqSocket> ZmqSocket::Make(const ZmqContext& context, int type, const ZmqLimits& limits) {
  ZmqSocket socket;
  socket.socket_ = NewSocket(context, type);
  if (socket.socket_ == nullptr) {
    return Error(StatusCode::kUnavailable, fmt::format("no socket: {}", Why()));
  }
  socket.Set(ZMQ_RCVHWM, limits.max_messages);
  socket.Set(ZMQ_LINGER, 0);
  socket.Set(ZMQ_RECONNECT_IVL, kFirstReconnectMs);
  socket.Set(ZMQ_RECONNECT_IVL_MAX, kMaxReconnectMs);
  socket.Set(ZMQ_CONNECT_TIMEOUT, kConnectMs);
  socket.Set(ZMQ_HEARTBEAT_IVL, kHeartbeatMs);
  socket.Set(ZMQ_HEARTBEAT_TIMEOUT, kSilenceMs);
  Zmq().setsockopt(socket.socket_, ZMQ_MAXMSGSIZE, &limits.max_part_bytes,
                   sizeof(limits.max_part_bytes));
  return socket;
}

Status ZmqSocket::ConnectTo(const std::string& address) {
  Set(ZMQ_IPV6, address.find('[') != std::string::npos ? 1 : 0);
  if (Zmq().connect(socket_, address.c_str()) == 0) return OkStatus();
  return Error(StatusCode::kUnavailable, fmt::format("cannot connect to {}: {}", address, Why()));
}

StatusOr<ZmqSocket> ZmqSocket::ConnectSub(const ZmqContext& context, const std::string& address,
                                          const std::string& topic, const ZmqLimits& limits,
                                          ZmqSocket* monitor) {
  PORTICO_ASSIGN_OR_RETURN(ZmqSocket socket, Make(context, ZMQ_SUB, limits));
  Zmq().setsockopt(socket.socket_, ZMQ_SUBSCRIBE, topic.data(), topic.size());
  // Before it connects: a connection that is there at once must be told too.
  PORTICO_ASSIGN_OR_RETURN(*monitor, socket.MakeMonitor(context));
  PORTICO_RETURN_IF_ERROR(socket.ConnectTo(address));
  return socket;
}

StatusOr<ZmqSocket> ZmqSocket::ConnectDealer(const ZmqContext& context, const std::string& address,
                                             const ZmqLimits& limits) {
  PORTICO_ASSIGN_OR_RETURN(ZmqSocket socket, Make(context, ZMQ_DEALER, limits));
  PORTICO_RETURN_IF_ERROR(socket.ConnectTo(address));
  return socket;
}

StatusOr<ZmqSocket> ZmqSocket::MakeMonitor(const ZmqContext& context) {
  const std::string address =
      fmt::format("inproc://monitor-{}", g_next_monitor.fetch_add(1, std::memory_order_relaxed));
  ZmqSocket monitor;
  monitor.socket_ = NewSocket(context, ZMQ_PAIR);
  if (monitor.socket_ != nullptr) {
    monitor.Set(ZMQ_LINGER, 0);
    constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED;
    if (Zmq().socket_monitor(socket_, address.c_str(), kEvents) == 0) {
      monitored_ = true;
      if (Zmq().connect(monitor.socket_, address.c_str()) == 0) return monitor;
    }
  }
  return Error(StatusCode::kUnavailable, fmt::format("a connection cannot be watched: {}", Why()));
}

std::optional<bool> ZmqSocket::NextChange() {
  // The first part is a number of 16 bits and one of 32, the second the peer's address.
  std::string_view part;
  uint16_t event = 0;
  while (Receive(&part)) {
    const bool first = part.size() == sizeof(uint16_t) + sizeof(uint32_t);
    if (first && event == 0) std::memcpy(&event, part.data(), sizeof(event));
    if (HasMore()) continue;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return true;
    if (event == ZMQ_EVENT_DISCONNECTED) return false;
    event = 0;
  }
  return std::nullopt;
}

int ZmqSocket::descriptor() const {
  int descriptor = -1;
  size_t size = sizeof(descriptor);
  Zmq().getsockopt(socket_, ZMQ_FD, &descriptor, &size);
  return descriptor;
}

void ZmqSocket::Settle() {
  // libzmq runs what its own thread has asked for within any call.
  int events = 0;
  size_t size = sizeof(events);
  Zmq().getsockopt(socket_, ZMQ_EVENTS, &events, &size);
}

bool ZmqSocket::HasMore() const {
  return message_ != nullptr && Zmq().msg_more(MessageIn(message_));
}

bool ZmqSocket::Send(std::string_view frame) {
  return Zmq().send(socket_, frame.data(), frame.size(), ZMQ_DONTWAIT) >= 0;
}

bool ZmqSocket::SendOwned(std::string* frame, std::shared_ptr<void>* held) {
  struct Owned {
    std::string frame;
    std::shared_ptr<void> held;
    // libzmq orders its threads too, but out of the thread sanitizer's sight.
    std::atomic<bool> handed_over = false;
  };
  auto owned = std::make_unique<Owned>();
  owned->frame = std::move(*frame);
  owned->held = std::move(*held);
  Owned* const raw = owned.get();
  const auto free = [](void*, void* hint) {
    auto* const sent = static_cast<Owned*>(hint);
    (void)sent->handed_over.load(std::memory_order_acquire);
    delete sent;
  };
  zmq_msg_t message;
  if (Zmq().msg_init_data(&message, raw->frame.data(), raw->frame.size(), free, raw) == 0) {
    raw->handed_over.store(true, std::memory_order_release);
    owned.release();  // the message's
    if (Zmq().msg_send(&message, socket_, ZMQ_DONTWAIT) >= 0) return true;
    *frame = std::move(raw->frame);
    *held = std::move(raw->held);
    Zmq().msg_close(&message);
    return false;
  }
  *frame = std::move(raw->frame);
  *held = std::move(raw->held);
  return false;
}

bool ZmqSocket::SendParts(const std::vector<std::string_view>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const int more = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
    if (Zmq().send(socket_, parts[i].data(), parts[i].size(), ZMQ_DONTWAIT | more) < 0)
      return false;
  }
  return true;
}

bool ZmqSocket::Receive(std::string_view* frame) {
  if (message_ != nullptr) {
    Zmq().msg_close(MessageIn(message_));
  } else {
    message_ = new zmq_msg_t;
  }
  Zmq().msg_init(MessageIn(message_));
  if (Zmq().msg_recv(MessageIn(message_), socket_, ZMQ_DONTWAIT) < 0) return false;
  *frame = {static_cast<const char*>(Zmq().msg_data(MessageIn(message_))),
            Zmq().msg_size(MessageIn(message_))};
  return true;
}

}  // namespace portico::net
