#include "net/socket/client_socket.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>
#include <vector>

#include "net/socket/transport.h"
#include "net/tls/tls_client.h"

namespace portico::net {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Tcp = asio::ip::tcp;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using Resolver = asio::ip::basic_resolver<Tcp, Executor>;

constexpr size_t kReadBuffer = 64 << 10;
constexpr int kParts = 8;

struct TcpOption {
  int level, name, value;
};
// TCP_USER_TIMEOUT also bounds how long a server may take nothing at all of what it is sent, so that it is
// longer than a pause of one that lives. It stands in for TCP_KEEPCNT.
constexpr std::array<TcpOption, 5> kTcpOptions = {{
    {IPPROTO_TCP, TCP_NODELAY, 1},
    {SOL_SOCKET, SO_KEEPALIVE, 1},
    {IPPROTO_TCP, TCP_KEEPIDLE, 15},
    {IPPROTO_TCP, TCP_KEEPINTVL, 5},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000},
}};

// A shard's connections read in turn, each into what its thread has.
char* ReadBuffer() {
  thread_local const std::unique_ptr<char[]> buffer(new char[kReadBuffer]);
  return buffer.get();
}

}  // namespace

// Handlers of the loop keep it alive; once `events_` is null they do nothing.
class ClientSocket::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Shard& shard, const ClientTarget& target, ClientSocketEvents& events)
      : shard_(shard),
        target_(target),
        events_(&events),
        resolver_(shard.io()),
        socket_(shard.io()),
        output_(buffers_) {}

  void Begin() {
    ErrorCode error;
    const auto address = asio::ip::make_address(target_.host, error);
    if (!error) {
      addresses_.emplace_back(address, static_cast<uint16_t>(target_.port));
      Connect();
      return;
    }
    resolver_.async_resolve(
        target_.host, std::to_string(target_.port), Tcp::resolver::numeric_service,
        [self = shared_from_this()](const ErrorCode& failed, Resolver::results_type found) {
          Shard::Turn turn(self->shard_);
          if (self->events_ == nullptr) return;
          if (failed) return self->Lose("no address found: " + failed.message());
          for (const auto& entry : found) self->addresses_.push_back(entry.endpoint());
          self->Connect();
        });
  }

  void Close() {
    events_ = nullptr;
    if (transport_ != nullptr) {
      Send();
      if (transport_ != nullptr) transport_->EndOutput();
    }
    Drop();
  }

  void WriteSoon() {
    if (transport_ == nullptr || std::exchange(dirty_, true)) return;
    shard_.AtEndOfTurn([self = shared_from_this()] {
      self->dirty_ = false;
      if (self->events_ == nullptr || self->stuck_) return;
      self->events_->OnWritable();
      self->Flush();
    });
  }

  void PauseReading() { paused_ = true; }

  void ResumeReading() {
    if (!std::exchange(paused_, false) || transport_ == nullptr) return;
    shard_.AtEndOfTurn([self = shared_from_this()] {
      if (self->paused_ || self->events_ == nullptr) return;
      self->Read();  // TLS may hold bytes that no readiness will tell of
      self->WaitReadable();
    });
  }

  std::string& Output() { return output_.Tail(); }
  size_t unsent() const { return output_.size(); }

 private:
  void Connect() {
    asio::async_connect(
        socket_, addresses_,
        [self = shared_from_this()](const ErrorCode& error, const Tcp::endpoint& at) {
          Shard::Turn turn(self->shard_);
          if (self->events_ == nullptr) return;
          error ? self->Lose(error.message()) : self->OnConnected(at.protocol());
        });
  }

  // To connect is to wait for a writable socket, which Asio goes on waiting for until the socket leaves its reactor: each
  // WaitReadable() would then wake the loop once more at once, for a socket that can be written.
  ErrorCode WatchAnew(Tcp protocol) {
    ErrorCode error;
    const int fd = socket_.release(error);
    if (error) return error;
    socket_.assign(protocol, fd, error);
    if (error) close(fd);
    return error;
  }

  void OnConnected(Tcp protocol) {
    ErrorCode error = WatchAnew(protocol);
    if (error) return Lose(error.message());
    const int fd = socket_.native_handle();
    for (const TcpOption& option : kTcpOptions) {
      setsockopt(fd, option.level, option.name, &option.value, sizeof option.value);
    }
    socket_.non_blocking(true, error);
    transport_ = target_.tls == nullptr ? MakePlainTransport(fd)
                                        : target_.tls->Connect(fd, target_.tls_name);
    if (error || transport_ == nullptr) return Lose("out of memory");
    WaitReadable();
    events_->OnConnected();
  }

  void WaitReadable() {
    if (events_ == nullptr || paused_ || std::exchange(read_armed_, true)) return;
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const ErrorCode&) {
      Shard::Turn turn(self->shard_);
      self->read_armed_ = false;
      self->Read();
      if (std::exchange(self->write_needs_read_, false)) self->Flush();
      self->WaitReadable();
    });
  }

  void WaitWritable() {
    if (std::exchange(write_armed_, true)) return;
    socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const ErrorCode&) {
      Shard::Turn turn(self->shard_);
      self->write_armed_ = false;
      self->Flush();
      if (std::exchange(self->read_needs_write_, false)) self->Read();
    });
  }

  void Read() {
    if (events_ == nullptr || paused_) return;
    const auto take = [this](std::string_view bytes) {
      events_->OnBytes(bytes);
      return events_ != nullptr && !paused_;
    };
    const IoResult result = ReadTurn(*transport_, {ReadBuffer(), kReadBuffer}, take);
    switch (result.kind) {
      case IoResult::kBlocked:
        read_needs_write_ = result.opposite;
        if (result.opposite) WaitWritable();
        return;
      case IoResult::kEnd:
        return Lose("the server closed the connection");
      case IoResult::kFailed:
        return LoseTransport();
      case IoResult::kDone:
        return;
    }
  }

  void Flush() {
    if (events_ == nullptr || write_armed_ || write_needs_read_) return;
    if (output_lost_) return output_.Consume(output_.size());
    const bool was_stuck = std::exchange(stuck_, false);
    Send();
    // What was held back may follow now.
    if (was_stuck && !stuck_ && events_ != nullptr) WriteSoon();
  }

  void Send() {
    while (!output_.empty()) {
      iovec parts[kParts];
      const int count = output_.Gather(parts, kParts);
      const IoResult result = transport_->Write(parts, count);
      if (result.kind == IoResult::kBlocked) {
        if (events_ == nullptr) return;
        write_needs_read_ = result.opposite;
        if (!result.opposite) WaitWritable();
        stuck_ = true;
        return;
      }
      if (result.kind != IoResult::kDone) return LoseOutput();
      output_.Consume(result.bytes);
    }
  }

  // A server that answers before it has read all may close at once: what it has said is still to be
  // read, and then the end. TLS cannot be read after such a failure.
  void LoseOutput() {
    if (events_ == nullptr || !transport_->Failure().empty()) return LoseTransport();
    output_.Consume(output_.size());
    if (std::exchange(output_lost_, true)) return;
    shard_.AtEndOfTurn([self = shared_from_this()] {
      self->Read();
      self->WaitReadable();
    });
  }

  void LoseTransport() {
    const std::string why = transport_->Failure();
    Lose(why.empty() ? "connection lost" : why);
  }

  void Lose(const std::string& why) {
    auto self = shared_from_this();
    ClientSocketEvents* events = std::exchange(events_, nullptr);
    Drop();
    if (events == nullptr) return;
    const std::string where = target_.host + ":" + std::to_string(target_.port);
    events->OnLost(Error(StatusCode::kUnavailable, where + ": " + why));
  }

  void Drop() {
    transport_.reset();  // before its descriptor can belong to another
    ErrorCode ignored;
    resolver_.cancel();
    socket_.close(ignored);
  }

  Shard& shard_;
  const ClientTarget target_;
  ClientSocketEvents* events_;
  Resolver resolver_;
  Socket socket_;
  std::vector<Tcp::endpoint> addresses_;
  std::unique_ptr<Transport> transport_;
  BufferPool buffers_;
  OutputQueue output_;

  bool paused_ = false;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool read_needs_write_ = false;  // TLS
  bool write_needs_read_ = false;  // TLS
  bool stuck_ = false;             // the kernel takes no more
  bool dirty_ = false;             // a flush is on its way
  bool output_lost_ = false;       // the server takes no more; what it has sent is still read
};

ClientSocket::ClientSocket(Shard& shard, const ClientTarget& target, ClientSocketEvents& events)
    : impl_(std::make_shared<Impl>(shard, target, events)) {
  impl_->Begin();
}

ClientSocket::~ClientSocket() { impl_->Close(); }

void ClientSocket::PauseReading() { impl_->PauseReading(); }

void ClientSocket::ResumeReading() { impl_->ResumeReading(); }

void ClientSocket::WriteSoon() { impl_->WriteSoon(); }

std::string& ClientSocket::Output() { return impl_->Output(); }

size_t ClientSocket::unsent() const { return impl_->unsent(); }

}  // namespace portico::net
