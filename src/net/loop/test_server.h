// For tests: a server with its shards, and a blocking client that sends and reads raw bytes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/loop/server.h"

namespace portico::net {

// Seconds. Only a test that fails waits so long, even on a busy machine.
inline constexpr int kTestPatience = 120;

class TestClient {
 public:
  // `receive_buffer` > 0 makes a slow reader's backlog small.
  explicit TestClient(int port, int receive_buffer = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    timeval limit = {kTestPatience, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~TestClient() { Close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // Up to `size` bytes, fewer at the end of input, a reset or after kTestPatience.
  std::string Read(size_t size) {
    std::string out = std::exchange(rest_, {});
    while (out.size() < size && Receive(&out)) {
    }
    if (out.size() > size) {
      rest_ = out.substr(size);
      out.resize(size);
    }
    return out;
  }
  std::string ReadUntil(std::string_view mark) {
    std::string out = std::exchange(rest_, {});
    size_t at;
    while ((at = out.find(mark)) == std::string::npos && Receive(&out)) {
    }
    if (at != std::string::npos) {
      rest_ = out.substr(at + mark.size());
      out.resize(at + mark.size());
    }
    return out;
  }
  // Whether bytes, the end of input or an error are there; waits a little for them.
  bool Readable() const {
    pollfd waited = {fd_, POLLIN, 0};
    return !rest_.empty() || poll(&waited, 1, /*timeout=*/20) > 0;
  }
  // What has come, at least one byte; empty at the end of input or after kTestPatience.
  std::string ReadSome() {
    std::string out = std::exchange(rest_, {});
    if (out.empty()) Receive(&out);
    return out;
  }
  std::string ReadToEnd() { return Read(static_cast<size_t>(-1)); }
  // One answer with Content-Length: head and body.
  std::string ReadAnswer() {
    std::string answer = ReadUntil("\r\n\r\n");
    size_t at = answer.find("content-length: ");
    if (at == std::string::npos) return answer;
    return answer + Read(std::stoul(answer.substr(at + 16)));
  }
  std::string Ask(std::string_view request) {
    Send(request);
    return ReadAnswer();
  }

  // Waits until the server's kernel has all that was sent, or there is no connection any more.
  void WaitUntilTaken() {
    int left = 0;
    while (ioctl(fd_, SIOCOUTQ, &left) == 0 && left > 0) std::this_thread::yield();
  }

  void HalfClose() { shutdown(fd_, SHUT_WR); }
  void Reset() {
    linger hard = {1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    Close();
  }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  bool Receive(std::string* out) {
    char buffer[16384];
    ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    out->append(buffer, static_cast<size_t>(got));
    return true;
  }

  int fd_;
  bool connected_ = false;
  std::string rest_;
};

// Answers with method, path, query and body.
inline void EchoHandler(std::unique_ptr<Exchange> exchange) {
  HttpResponse response;
  response.content_type = "text/plain";
  const HttpRequest& request = exchange->request;
  response.body =
      request.method + " " + request.path + "?" + request.query + " [" + request.body + "]";
  exchange->Respond(std::move(response));
}

class TestServer {
 public:
  explicit TestServer(Handler handler = EchoHandler, ServerOptions options = {}, int shards = 1) {
    std::vector<Shard*> pointers;
    for (int i = 0; i < shards; ++i) {
      shards_.push_back(std::make_unique<Shard>(i));
      shards_.back()->Start();
      pointers.push_back(shards_.back().get());
    }
    auto started = Server::Start(std::move(options), pointers, std::move(handler));
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  ~TestServer() {
    server_.reset();
    for (auto& shard : shards_) shard->Stop();
  }

  Server& server() { return *server_; }
  int port() const { return server_->port(); }
  Shard& shard(int i = 0) { return *shards_[static_cast<size_t>(i)]; }

  // Runs `task` on the shard and waits for it.
  void OnShard(std::function<void()> task) {
    std::promise<void> done;
    shard().Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  int open() {
    int open = 0;
    for (int count : server_->stats().open) open += count;
    return open;
  }
  // Waits for what must happen. Where it must happen within a limit that the client itself may
  // miss, `condition` tries it anew.
  static void WaitFor(const std::function<bool()>& condition) {
    const TimePoint end = Clock::now() + std::chrono::seconds(kTestPatience);
    bool met;
    while (!(met = condition()) && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_TRUE(met);
  }

 private:
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Server> server_;
};

inline std::string StatusOf(std::string_view answer) { return std::string(answer.substr(0, 12)); }

}  // namespace portico::net
