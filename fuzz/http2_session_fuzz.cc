// Any bytes on a connection that begins with HTTP/2's preface (or not, by the first byte), in pieces: frames, HPACK, flow
// control and endings as a client may make them. Whatever came, the connection is gone once the client is, and so is
// every request that a handler held.
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

#include "net/server_shard.h"

namespace {

using portico::net::Exchange;
using portico::net::HttpResponse;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Requests that are answered later, or whose clients leave before.
std::vector<std::unique_ptr<Exchange>>* held = nullptr;

// What is done with a request depends on its path's last byte, so that every way to answer is reached.
void Handle(std::unique_ptr<Exchange> exchange) {
  HttpResponse response;
  switch (exchange->request.path.empty() ? 0 : exchange->request.path.back() % 6) {
    case 0:
      response.body = exchange->request.body;
      return exchange->Respond(std::move(response));
    case 1:
      response.status = 204;
      return exchange->Respond(std::move(response));
    case 2:
      exchange->StartStream(std::move(response));
      exchange->Write(exchange->request.path);
      return exchange->End();
    case 3:
      exchange->StartStream(std::move(response));
      exchange->Write(std::string(70 << 10, 'x'));  // more than a window
      break;
    case 4:
      return;  // dropped
    default:
      break;
  }
  Exchange* address = exchange.get();
  exchange->set_on_closed([address] {
    std::erase_if(*held, [address](const auto& one) { return one.get() == address; });
  });
  held->push_back(std::move(exchange));
}

class Fuzzed {
 public:
  Fuzzed() : server_(shard_, options_, handler_, nullptr, open_) { held = &exchanges_; }

  void Run(std::string_view input, size_t piece, bool is_http2) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    server_.Expect();
    Do([&] { server_.Adopt(ends[0], false, "fuzz", false); });
    while (!input.empty()) {
      const size_t size = std::min(piece, input.size());
      const ssize_t sent = send(ends[1], input.data(), size, MSG_NOSIGNAL);
      Poll();
      Drop(ends[1]);
      if (sent <= 0) break;  // closed by the server, which has read all before
      input.remove_prefix(static_cast<size_t>(sent));
    }
    // Late answers, for which the client may have gone.
    Do([&] {
      for (auto& exchange : std::exchange(exchanges_, {})) exchange->Respond({});
    });
    Drop(ends[1]);
    close(ends[1]);
    Poll();
    if (!is_http2) {  // a client of HTTP/1.1 that waits for an answer is looked for once a second
      Do([&] { server_.AbortAll(); });
      Poll();
    }
    if (open_.count() != 0 || !exchanges_.empty()) std::abort();
  }

 private:
  template <typename Task>
  void Do(Task task) {
    portico::net::Shard::Turn turn(shard_);
    task();
  }
  void Poll() {
    shard_.io().restart();
    while (shard_.io().poll() > 0) {
    }
  }
  static void Drop(int fd) {
    char buffer[4096];
    while (read(fd, buffer, sizeof(buffer)) > 0) {
    }
  }

  portico::net::ServerOptions options_ = [] {
    portico::net::ServerOptions options;
    options.max_head_bytes = 2048;
    options.max_body_bytes = 4096;
    options.max_unsent_bytes = 32 << 10;
    return options;
  }();
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  portico::net::Handler handler_ = Handle;
  portico::net::OpenCount open_;
  portico::net::Shard shard_{0};
  portico::net::ServerShard server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto ignored = signal(SIGPIPE, SIG_IGN);
  (void)ignored;
  if (size < 2) return 0;
  std::string input(data[0] & 1 ? kPreface : std::string_view());
  input.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  Fuzzed().Run(input, 1 + size_t{data[0]} * 16, input.starts_with(kPreface));
  return 0;
}
