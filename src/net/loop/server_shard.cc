#include "net/loop/server_shard.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "net/http/http1_session.h"
#include "net/socket/protocol_door.h"

namespace portico::net {
namespace {

constexpr Duration kLinger = std::chrono::seconds(1);
constexpr Duration kPeerPeriod = std::chrono::seconds(1);

// Fine enough for the shortest limit that a session keeps itself.
Duration TickPeriod(const ServerOptions& options) {
  Duration shortest = std::chrono::seconds(4);
  for (Duration limit :
       {options.idle_timeout, options.head_timeout, options.body_timeout, options.send_timeout,
        options.http2.keepalive_time, options.http2.keepalive_timeout, options.http2.max_age}) {
    if (limit != Duration::zero()) shortest = std::min(shortest, limit);
  }
  return std::max<Duration>(shortest / 4, std::chrono::milliseconds(5));
}

ConnectionTable::Limits LimitsOf(const ServerOptions& options) {
  ConnectionTable::Limits limits{};
  auto set = [&limits](Wait wait, Duration limit) { limits[static_cast<int>(wait)] = limit; };
  set(Wait::kIdle, options.idle_timeout);
  set(Wait::kHead, options.head_timeout);
  set(Wait::kBody, options.body_timeout);
  set(Wait::kDrop, kLinger);
  set(Wait::kTick, TickPeriod(options));
  set(Wait::kSend, options.send_timeout);
  set(Wait::kPeer, kPeerPeriod);
  set(Wait::kLinger, kLinger);
  return limits;
}

Duration SweepPeriod(const ConnectionTable::Limits& limits) {
  Duration shortest = std::chrono::seconds(4);
  for (Duration limit : limits) {
    if (limit != Duration::zero()) shortest = std::min(shortest, limit);
  }
  return std::max<Duration>(shortest / 4, std::chrono::milliseconds(5));
}

}  // namespace

void OpenCount::Add() { count_.fetch_add(1, std::memory_order_relaxed); }

void OpenCount::Remove() {
  // Under the lock to the end: the waiter may destroy this as soon as it sees zero.
  const MutexLock lock(&mutex_);
  if (count_.fetch_sub(1, std::memory_order_relaxed) == 1) none_.NotifyAll();
}

bool OpenCount::WaitForZero(TimePoint deadline) {
  const MutexLock lock(&mutex_);
  while (count() != 0) {
    if (!none_.WaitUntil(&mutex_, deadline)) return count() == 0;
  }
  return true;
}

ServerShard::ServerShard(Shard& on_shard, const ServerOptions& server_options,
                         const Handler& request_handler, ServerLoad& server_load,
                         std::shared_ptr<const TlsContext> tls)
    : shard(on_shard),
      options(server_options),
      handler(request_handler),
      load(server_load),
      table(LimitsOf(server_options)),
      read_buffer(std::make_unique_for_overwrite<char[]>(kReadBuffer)),
      tls_(std::move(tls)),
      sweep_period_(SweepPeriod(LimitsOf(server_options))) {}

ServerShard::~ServerShard() = default;

void ServerShard::Expect(OpenCount& total) {
  open_.fetch_add(1, std::memory_order_relaxed);
  load.connections.fetch_add(1, std::memory_order_relaxed);
  total.Add();
}

void ServerShard::Adopt(Accepted accepted, OpenCount& total) {
  const int fd = accepted.fd;
  TcpSocket socket(shard.io().get_executor());
  boost::system::error_code error;
  socket.assign(accepted.ipv6 ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4(), fd, error);
  std::unique_ptr<Transport> transport;
  if (!error) transport = tls_ != nullptr ? tls_->Accept(fd) : MakePlainTransport(fd);
  if (transport == nullptr || (accepted.refuse && tls_ != nullptr)) {
    // A refusal is not worth a TLS handshake.
    if (error) close(fd);
    Leave(total);
    return;
  }
  auto owned = std::make_unique<Connection>(*this, std::move(socket), std::move(accepted.peer),
                                            std::move(transport), accepted.late, total);
  Connection* connection = table.Add(std::move(owned));
  if (accepted.refuse) {
    connection->Start(std::make_unique<Http1Session>(*connection), Wait::kIdle);
    Http1Session::Refuse(*connection, {503, "too many connections"});
  } else {
    connection->Start(std::make_unique<ProtocolDoor>(*connection),
                      tls_ != nullptr ? Wait::kHead : Wait::kIdle);
    if (draining_ && !accepted.late) connection->Drain();
  }
  ScheduleSweep();
}

void ServerShard::ScheduleSweep() {
  if (sweep_ != nullptr || table.size() == 0) return;
  sweep_ = shard.After(sweep_period_, [this] {
    sweep_ = nullptr;
    table.Sweep(Clock::now());
    ScheduleSweep();
  });
}

void ServerShard::Drain() {
  draining_ = true;
  table.ForEach([](Connection& connection) { connection.Drain(); });
}

void ServerShard::AbortAll() {
  draining_ = true;
  table.ForEach([](Connection& connection) { connection.Abort(); });
}

void ServerShard::Retire(Connection* connection) {
  retired_.push_back(connection);
  if (retired_.size() == 1) {
    shard.AtEndOfTurn([this] { Forget(); });
  }
}

void ServerShard::Forget() {
  std::vector<Connection*> leaving = std::exchange(retired_, {});
  std::vector<OpenCount*> totals;
  for (Connection* connection : leaving) {
    totals.push_back(&connection->total());
    table.Remove(connection);
    delete connection;
  }
  if (table.size() == 0) sweep_ = nullptr;
  for (OpenCount* total : totals) Leave(*total);
}

void ServerShard::Leave(OpenCount& total) {
  open_.fetch_sub(1, std::memory_order_relaxed);
  load.connections.fetch_sub(1, std::memory_order_relaxed);
  total.Remove();
}

}  // namespace portico::net
