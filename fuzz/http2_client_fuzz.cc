// Any bytes as what a server says to the HTTP/2 client, in pieces, behind a first SETTINGS frame or without it: frames, HPACK,
// flow control, heads, bodies and endings. Whatever came, each call that still has a listener is told its end once, and no
// connection is left.
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

#include "net/http2/http2_client.h"
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
class User final : public HttpCallEvents {
 public:
  explicit User(int way) : way_(way) {}

  void Start(Http2Client& client) {
    HttpCallRequest request;
    request.head = "POST /a HTTP/1.1\r\nhost: b\r\nk: v\r\n\r\n";
    if (way_ != 1) {
      request.body = std::make_shared<const std::string>(way_ == 2 ? 3000 : 10,
                                                         'x');  // more than a window, or less
    }
    call_ = client.StartCall(std::move(request), *this, false);
    if (way_ == 3) call_->Pause();
  }
  void GoOn() {
    if (call_ != nullptr && ends_ == 0) call_->Resume();
  }
  void Drop() {
    if (ends_ == 0) dropped_ = true;
    call_.reset();
  }
  // Told once, unless it has dropped its call.
  bool Done() const { return ends_ == (dropped_ ? 0 : 1); }

  void OnHead(ResponseHead& head) override {
    Check(head.status >= 200 && ++heads_ == 1);
    if (way_ == 4) Drop();
  }
  void OnBody(std::string_view bytes) override {
    Check(heads_ == 1 && !bytes.empty());
    if (way_ == 5) Drop();
  }
  void OnDone() override { Check(heads_ == 1 && ++ends_ == 1); }
  void OnFailed(CallFailure, const std::string&) override { Check(++ends_ == 1); }

  static constexpr int kWays = 6;

 private:
  const int way_;
  int heads_ = 0;
  int ends_ = 0;
  bool dropped_ = false;
  std::unique_ptr<HttpCall> call_;
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
    Http2ClientOptions options;
    options.max_head_bytes = 2048;
    options.stream_window = 8192;
    client_ = std::make_unique<Http2Client>(
        shard_,
        ClientTarget{.host = "127.0.0.1", .port = listener.port(), .tls = nullptr, .tls_name = {}},
        options);
    for (int way = 0; way < User::kWays; ++way) users_.push_back(std::make_unique<User>(way));
  }

  void Run(std::string_view input, size_t piece) {
    Do([&] {
      for (auto& user : users_) user->Start(*client_);
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
      for (auto& user : users_) user->Drop();
    });
    Poll();
    for (const auto& user : users_) Check(user->Done());
    Do([&] { client_.reset(); });
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
  std::unique_ptr<Http2Client> client_;
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
