// Any bytes on a connection that begins with HTTP/2's preface (or not, by the first byte), in pieces: frames, HPACK, flow
// control, gRPC calls and endings as a client may make them. Whatever came, the connection is gone once the client is, and
// so are all requests and calls that handlers held.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/grpc/grpc_methods.h"
#include "net/loop/server_shard.h"

namespace {

using portico::net::Exchange;
using portico::net::GrpcCall;
using portico::net::HttpResponse;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Each piece of an input is a turn of the loop; more of them show nothing new.
constexpr size_t kMaxPieces = 12;

// Requests and calls that are answered later, or whose clients leave before.
std::vector<std::unique_ptr<Exchange>> exchanges;
std::vector<std::unique_ptr<GrpcCall>> calls;

template <typename T>
void Forget(std::vector<std::unique_ptr<T>>& held, const T* gone) {
  std::erase_if(held, [gone](const auto& one) { return one.get() == gone; });
}

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
      exchange->CallWhenBelow(1 << 10, [waits = exchange.get()] { waits->Write("y"); });
      break;
    case 4:
      return;  // dropped
    default:
      break;
  }
  Exchange* address = exchange.get();
  exchange->set_on_closed([address] { Forget(exchanges, address); });
  exchanges.push_back(std::move(exchange));
}

GrpcCall* Hold(std::unique_ptr<GrpcCall> call) {
  GrpcCall* address = call.get();
  call->set_on_closed([address](const portico::Status&) { Forget(calls, address); });
  calls.push_back(std::move(call));
  return address;
}

// A method for each way to use a call.
portico::net::GrpcMethods MakeMethods() {
  portico::net::GrpcMethods methods;
  methods.Add("/a", [](std::unique_ptr<GrpcCall> call, const std::string& message) {
    call->CompressMessages();
    call->Reply(message, {{"k", "v"}, {"k-bin", message}});
  });
  methods.Add("/b", [](std::unique_ptr<GrpcCall> call, const std::string&) {
    GrpcCall* waits = Hold(std::move(call));
    waits->Write(std::string(70 << 10, 'x'));  // more than a window
    waits->CallWhenBelow(1 << 10, [waits] { waits->Write("y"); });
  });
  methods.Add("/c", [](std::unique_ptr<GrpcCall>, const std::string&) {});  // dropped
  methods.AddStreaming("/d", [](std::unique_ptr<GrpcCall> owned) {
    GrpcCall* call = Hold(std::move(owned));
    call->Read([call](const std::string& message) { call->Write(message); },
               [call] {
                 call->Finish(portico::Error(portico::StatusCode::kNotFound, "no more"));
                 Forget(calls, call);
               });
  });
  methods.AddStreaming("/e", [](std::unique_ptr<GrpcCall> owned) {
    GrpcCall* call = Hold(std::move(owned));
    call->Read([call](const std::string&) { call->PauseReading(); }, [] {});
  });
  return methods;
}

class Fuzzed {
 public:
  Fuzzed() { server_.emplace(shard_, options_, handler_, *options_.load, nullptr); }

  void Run(std::string_view input, size_t piece, bool is_http2) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    server_->Expect(open_);
    Do([&] { server_->Adopt({ends[0], false, "fuzz", false, false}, open_); });
    piece = std::max(piece, input.size() / kMaxPieces);
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
      for (auto& exchange : std::exchange(exchanges, {})) exchange->Respond({});
      for (size_t i = 0; i < calls.size(); ++i) calls[i]->ResumeReading();
      for (auto& call : std::exchange(calls, {})) call->Finish(portico::OkStatus());
    });
    Drop(ends[1]);
    close(ends[1]);
    Poll();
    if (!is_http2 && open_.count() != 0) Restart();
    if (open_.count() != 0 || !exchanges.empty() || !calls.empty()) std::abort();
  }

 private:
  // A client of HTTP/1.1 that waits for an answer is looked for once a second only.
  void Restart() {
    Do([&] { server_->AbortAll(); });
    Poll();
    server_.emplace(shard_, options_, handler_, *options_.load, nullptr);
  }
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
    static char buffer[256 << 10];
    while (read(fd, buffer, sizeof(buffer)) == sizeof(buffer)) {
    }
  }

  const portico::net::GrpcMethods methods_ = MakeMethods();
  const portico::net::ServerOptions options_ = [this] {
    portico::net::ServerOptions options;
    options.load = std::make_shared<portico::net::ServerLoad>(64 << 10);
    options.max_head_bytes = 2048;
    options.max_body_bytes = 4096;
    options.max_unsent_bytes = 32 << 10;
    options.grpc.methods = &methods_;
    options.grpc.max_message_bytes = 1024;
    return options;
  }();
  const portico::net::Handler handler_ = Handle;
  portico::net::OpenCount open_;
  portico::net::Shard shard_{0};
  std::optional<portico::net::ServerShard> server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto ignored = signal(SIGPIPE, SIG_IGN);
  (void)ignored;
  static auto* const fuzzed = new Fuzzed;  // one server for all inputs
  if (size < 2) return 0;
  std::string input(data[0] & 1 ? kPreface : std::string_view());
  input.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzzed->Run(input, 1 + size_t{data[0]} * 16, input.starts_with(kPreface));
  return 0;
}
