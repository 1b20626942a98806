// gRPC's interoperability test service on our server layer, for gRPC's official test clients:
//   grpc_interop_server --port 10000
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpc/testing/test.pb.h"
#include "net/grpc/grpc_call.h"
#include "net/grpc/grpc_methods.h"
#include "net/loop/server.h"

namespace portico {
namespace {

using net::GrpcCall;

constexpr char kInitialEcho[] = "x-grpc-test-echo-initial";
constexpr char kTrailingEcho[] = "x-grpc-test-echo-trailing-bin";

net::GrpcMetadata Echo(const GrpcCall& call, const std::string& name) {
  std::string_view value = call.Metadata(name);
  if (value.empty()) return {};
  return {{name, std::string(value)}};
}

// False once the call is answered with an error.
template <typename Message>
bool Parse(GrpcCall& call, const std::string& bytes, Message* message) {
  if (message->ParseFromString(bytes)) return true;
  call.Finish(Error(StatusCode::kInvalidArgument, "malformed " + message->GetTypeName()));
  return false;
}

Status AskedFor(const grpc::testing::EchoStatus& status) {
  return Error(static_cast<StatusCode>(status.code()), status.message());
}

void UnaryCall(std::unique_ptr<GrpcCall> call, std::string message) {
  grpc::testing::SimpleRequest request;
  if (!Parse(*call, message, &request)) return;
  call->SetInitialMetadata(Echo(*call, kInitialEcho));
  net::GrpcMetadata trailing = Echo(*call, kTrailingEcho);
  if (request.response_status().code() != 0) {
    call->Finish(AskedFor(request.response_status()), std::move(trailing));
    return;
  }
  if (request.response_size() < 0) {
    call->Finish(InvalidArgument("response_size", "response_size is negative"));
    return;
  }
  if (request.response_compressed().value()) call->CompressMessages();
  grpc::testing::SimpleResponse response;
  response.mutable_payload()->mutable_body()->resize(static_cast<size_t>(request.response_size()));
  if (request.fill_server_id()) response.set_server_id("portico-" + std::to_string(getpid()));
  call->Reply(response.SerializeAsString(), std::move(trailing));
}

// Sends what requests ask for, each message after its pause. Owns itself until the call ends.
class Responder {
 public:
  // `half_duplex`: nothing is sent before the client has ended.
  static Responder* Start(std::unique_ptr<GrpcCall> call, bool half_duplex) {
    auto* responder = new Responder(std::move(call));
    responder->waits_for_end_ = half_duplex;
    responder->call_->set_on_closed([responder](Status) { delete responder; });
    return responder;
  }

  // All three may delete this.
  void OnRequest(const std::string& message) {
    if (Take(message)) Advance();
  }
  void OnEnd() {
    ended_ = true;
    waits_for_end_ = false;
    Advance();
  }
  void OnOnlyRequest(const std::string& message) {
    if (Take(message)) OnEnd();
  }
  GrpcCall& call() { return *call_; }

 private:
  explicit Responder(std::unique_ptr<GrpcCall> call) : call_(std::move(call)) {
    call_->SetInitialMetadata(Echo(*call_, kInitialEcho));
  }

  void End() { delete this; }

  bool Take(const std::string& message) {
    grpc::testing::StreamingOutputCallRequest request;
    if (!Parse(*call_, message, &request)) {
      End();
      return false;
    }
    if (request.response_status().code() != 0) {
      call_->Finish(AskedFor(request.response_status()), Echo(*call_, kTrailingEcho));
      End();
      return false;
    }
    for (const auto& wanted : request.response_parameters()) queue_.push_back(wanted);
    return true;
  }

  void Advance() {
    while (!waits_for_end_ && pause_ == nullptr && !queue_.empty()) {
      const int32_t interval = queue_.front().interval_us();
      if (interval > 0) {
        pause_ = call_->shard().After(std::chrono::microseconds(interval), [this] {
          pause_ = nullptr;
          SendNext();
          Advance();
        });
        return;
      }
      SendNext();
    }
    if (!ended_ || !queue_.empty()) return;
    call_->Finish(OkStatus(), Echo(*call_, kTrailingEcho));
    End();
  }

  void SendNext() {
    grpc::testing::StreamingOutputCallResponse response;
    const auto size = static_cast<size_t>(std::max(0, queue_.front().size()));
    response.mutable_payload()->mutable_body()->resize(size);
    call_->Write(response.SerializeAsString());
    queue_.pop_front();
  }

  std::unique_ptr<GrpcCall> call_;
  std::deque<grpc::testing::ResponseParameters> queue_;
  std::unique_ptr<net::Shard::Timer> pause_;
  bool waits_for_end_ = false;
  bool ended_ = false;
};

void StreamingOutputCall(std::unique_ptr<GrpcCall> call, std::string message) {
  Responder::Start(std::move(call), /*half_duplex=*/true)->OnOnlyRequest(message);
}

void DuplexCall(std::unique_ptr<GrpcCall> call, bool half) {
  auto* responder = Responder::Start(std::move(call), half);
  responder->call().Read([responder](std::string message) { responder->OnRequest(message); },
                         [responder] { responder->OnEnd(); });
}

void StreamingInputCall(std::unique_ptr<GrpcCall> call) {
  struct Sum {
    std::unique_ptr<GrpcCall> call;
    int32_t bytes = 0;
  };
  auto* sum = new Sum{std::move(call)};
  sum->call->set_on_closed([sum](Status) { delete sum; });
  sum->call->Read(
      [sum](std::string message) {
        grpc::testing::StreamingInputCallRequest request;
        if (Parse(*sum->call, message, &request)) {
          sum->bytes += static_cast<int32_t>(request.payload().body().size());
        } else {
          delete sum;
        }
      },
      [sum] {
        grpc::testing::StreamingInputCallResponse response;
        response.set_aggregated_payload_size(sum->bytes);
        sum->call->Reply(response.SerializeAsString());
        delete sum;
      });
}

net::GrpcMethods TestService() {
  const std::string service = "/grpc.testing.TestService/";
  net::GrpcMethods methods;
  methods.Add(service + "EmptyCall",
              [](std::unique_ptr<GrpcCall> call, std::string) { call->Reply(""); });
  methods.Add(service + "UnaryCall", UnaryCall);
  methods.Add(service + "StreamingOutputCall", StreamingOutputCall);
  methods.AddStreaming(service + "StreamingInputCall", StreamingInputCall);
  methods.AddStreaming(service + "FullDuplexCall", [](std::unique_ptr<GrpcCall> call) {
    DuplexCall(std::move(call), /*half=*/false);
  });
  methods.AddStreaming(service + "HalfDuplexCall", [](std::unique_ptr<GrpcCall> call) {
    DuplexCall(std::move(call), /*half=*/true);
  });
  return methods;
}

int Serve(int port) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const net::GrpcMethods methods = TestService();
  net::Shard shard(0);
  shard.Start();
  net::ServerOptions options;
  options.port = port;
  options.grpc.methods = &methods;
  auto server = net::Server::Start(std::move(options), {&shard}, [](auto) {});
  if (!server.ok()) {
    std::fprintf(stderr, "grpc_interop_server: %s\n", server.status().ToString().c_str());
    return 1;
  }
  std::printf("listening on port %d\n", (*server)->port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  server->reset();
  shard.Stop();
  return 0;
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) {
  int port = 0;
  std::string_view value;
  if (argc == 3 && argv[1] == std::string_view("--port")) value = argv[2];
  if (argc == 2 && std::string_view(argv[1]).starts_with("--port=")) value = argv[1] + 7;
  const char* end = value.data() + value.size();
  if (value.empty() || std::from_chars(value.data(), end, port).ptr != end) {
    std::fprintf(stderr, "usage: grpc_interop_server --port PORT (0: any free one)\n");
    return 2;
  }
  return portico::Serve(port);
}
