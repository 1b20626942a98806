// Any bytes as what a server says to the gRPC client, in pieces, behind a first SETTINGS frame or without it: frames, HPACK,
// flow control, messages, trailers and endings. Whatever came, each call that still has a listener is told its end once, and
// no connection is left.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/grpc/grpc_channel.h"
#include "net/loop/shard.h"

namespace {

using namespace portico::net;  // NOLINT: the whole of it is under test

// Its window for a stream is 1,000 bytes.
constexpr std::string_view kSettings("\0\0\6\4\0\0\0\0\0\0\4\0\0\3\xe8", 15);
// Each piece of an input is a turn of the loop; more of them show nothing new.
constexpr size_t kMaxPieces = 12;

void Check(bool condition) {
  if (!condition) std::abort();
}

// Uses its call in one of the ways that there are, by its number.
class User final : public GrpcCallEvents {
 public:
  explicit User(int way) : way_(way) {}

  void Start(GrpcChannel& channel) {
    GrpcCallOptions options{.path = "/a.B/C", .metadata = {{"k", "v"}}};
    if (way_ == 1) options.encoding = GrpcEncoding::kGzip;
    call_ = channel.Start(std::move(options), *this);
    call_->Write(std::string(way_ == 2 ? 3000 : 10, 'x'));  // more than a window, or less
    if (way_ < 3) call_->End();
  }
  // What a user does later, if there is still something to do it with.
  void GoOn() {
    if (call_ == nullptr || ends_ > 0) return;
    call_->ResumeReading();
    if (way_ >= 3) call_->Write("more");
  }
  void Cancel() {
    if (call_ != nullptr && ends_ == 0) call_->Cancel();
  }
  // Told once, unless it has dropped its call.
  bool Done() const { return call_ == nullptr || ends_ == 1; }

  void OnHead(Headers) override {
    if (way_ == 3) call_->Cancel();
  }
  void OnMessage(std::string_view) override {
    if (way_ == 4) call_.reset();
    if (way_ == 5) call_->PauseReading();
  }
  void OnEnd(portico::Status, Headers) override { Check(++ends_ == 1); }

  static constexpr int kWays = 6;

 private:
  const int way_;
  int ends_ = 0;
  std::unique_ptr<GrpcClientCall> call_;
};

class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    Check(bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd_, 64) == 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }
  // -1 where nobody waits.
  int Accept() const { return accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }
  // Without TIME_WAIT, of which there is not room for millions.
  static void Close(int fd) {
    const linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
  }

 private:
  int fd_;
  int port_ = 0;
};

class Fuzzed {
 public:
  Fuzzed(const Listener& listener, Shard& shard) : listener_(listener), shard_(shard) {
    GrpcChannelOptions options;
    options.host = "127.0.0.1";
    options.port = listener.port();
    options.max_message_bytes = 4096;
    options.max_head_bytes = 2048;
    options.stream_window = 8192;
    channel_ = std::make_unique<GrpcChannel>(shard_, options);
    for (int way = 0; way < User::kWays; ++way) users_.push_back(std::make_unique<User>(way));
  }

  void Run(std::string_view input, size_t piece) {
    Do([&] {
      for (auto& user : users_) user->Start(*channel_);
    });
    int server = -1;
    while ((server = listener_.Accept()) < 0) Poll();
    Poll();
    piece = std::max(piece, input.size() / kMaxPieces);
    while (!input.empty()) {
      const size_t size = std::min(piece, input.size());
      const ssize_t sent = send(server, input.data(), size, MSG_NOSIGNAL);
      Poll();
      Drop(server);
      if (sent <= 0) break;
      input.remove_prefix(static_cast<size_t>(sent));
    }
    Do([&] {
      for (auto& user : users_) user->GoOn();
    });
    Poll();
    Drop(server);
    Listener::Close(server);
    Poll();
    // Those that the server had refused have come again, perhaps.
    for (int fd; (fd = listener_.Accept()) >= 0;) Listener::Close(fd);
    Do([&] {
      for (auto& user : users_) user->Cancel();
    });
    Poll();
    for (const auto& user : users_) Check(user->Done());
    Check(channel_->calls() == 0 && channel_->pending_calls() == 0);
    Do([&] { channel_.reset(); });
    Poll();
    for (int fd; (fd = listener_.Accept()) >= 0;) Listener::Close(fd);
  }

 private:
  template <typename Task>
  void Do(Task task) {
    Shard::Turn turn(shard_);
    task();
  }
  void Poll() {
    shard_.io().restart();
    while (shard_.io().poll() > 0) {
    }
  }
  static void Drop(int fd) {
    static char buffer[64 << 10];
    while (read(fd, buffer, sizeof(buffer)) == sizeof(buffer)) {
    }
  }

  const Listener& listener_;
  Shard& shard_;
  std::vector<std::unique_ptr<User>> users_;
  std::unique_ptr<GrpcChannel> channel_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto ignored = signal(SIGPIPE, SIG_IGN);
  (void)ignored;
  static const Listener listener;
  static auto* const shard = new Shard(0);
  if (size < 2) return 0;
  std::string input(data[0] & 1 ? kSettings : std::string_view());
  input.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  Fuzzed(listener, *shard).Run(input, 1 + size_t{data[0]} * 16);
  return 0;
}
