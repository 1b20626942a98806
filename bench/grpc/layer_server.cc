// The same answers as grpc_raw_server's, on Portico's gRPC layer, one shard.
//   grpc_layer_server PORT MESSAGES MESSAGE_BYTES STEP_MS
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "net/grpc/grpc_call.h"
#include "net/grpc/grpc_methods.h"
#include "net/loop/server.h"

namespace portico {
namespace {

// The calls that a shard answers step by step.
class Steps {
 public:
  Steps(net::Shard& shard, int messages, std::string message, Duration step)
      : shard_(shard), messages_(messages), message_(std::move(message)), step_(step) {}

  void Begin(std::unique_ptr<net::GrpcCall> call) {
    if (step_ == Duration::zero()) {
      for (int i = 0; i < messages_; ++i) call->Write(message_);
      call->Finish(OkStatus());
      return;
    }
    if (calls_.empty()) {
      next_ = Clock::now() + step_;
      Arm();
    }
    calls_.push_back({std::move(call), messages_});
  }

 private:
  struct Running {
    std::unique_ptr<net::GrpcCall> call;
    int left;
  };

  void Arm() {
    timer_ = shard_.After(next_ - Clock::now(), [this] { Step(); });
  }
  void Step() {
    for (size_t i = calls_.size(); i-- > 0;) {
      calls_[i].call->Write(message_);
      if (--calls_[i].left > 0) continue;
      calls_[i].call->Finish(OkStatus());
      calls_[i] = std::move(calls_.back());
      calls_.pop_back();
    }
    next_ += step_;
    if (!calls_.empty()) Arm();
  }

  net::Shard& shard_;
  const int messages_;
  const std::string message_;
  const Duration step_;
  std::vector<Running> calls_;
  TimePoint next_;
  std::unique_ptr<net::Shard::Timer> timer_;
};

int Serve(int port, int messages, size_t bytes, int step_ms) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  net::Shard shard(0);
  Steps steps(shard, messages, std::string(bytes, 'x'), std::chrono::milliseconds(step_ms));
  net::GrpcMethods methods;
  methods.Add("/bench.Echo/Call", [&](std::unique_ptr<net::GrpcCall> call, std::string) {
    steps.Begin(std::move(call));
  });
  shard.Start();
  net::ServerOptions options;
  options.port = port;
  options.grpc.methods = &methods;
  auto server = net::Server::Start(std::move(options), {&shard}, [](auto) {});
  if (!server.ok()) return 1;
  int signal = 0;
  sigwait(&signals, &signal);
  _exit(0);  // calls may still run
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return portico::Serve(std::atoi(argv[1]), std::atoi(argv[2]),
                        static_cast<size_t>(std::atoi(argv[3])), std::atoi(argv[4]));
}
