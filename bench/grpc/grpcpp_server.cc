// The same answers as grpc_raw_server's, on grpc++'s callback API.
//   grpc_grpcpp_server PORT MESSAGES MESSAGE_BYTES STEP_MS
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace {

int messages;
int step_ms;
grpc::ByteBuffer message;

class Call;
std::mutex running_mutex;
std::unordered_set<Call*> running;

class Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Fail();
    if (step_ms == 0) {
      Allow(messages);
      return;
    }
    std::lock_guard lock(running_mutex);
    running.insert(this);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Fail();
    std::unique_lock lock(mutex_);
    writing_ = false;
    Advance();
  }
  void OnDone() override {
    {
      std::lock_guard lock(running_mutex);
      running.erase(this);
    }
    delete this;
  }
  // Lets so many more messages go.
  void Allow(int more) {
    std::unique_lock lock(mutex_);
    allowed_ += more;
    Advance();
  }

 private:
  void Advance() {
    if (writing_ || finished_) return;
    if (sent_ == messages) {
      finished_ = true;
      Finish(grpc::Status::OK);
    } else if (sent_ < allowed_) {
      ++sent_;
      writing_ = true;
      StartWrite(&message);
    }
  }
  void Fail() {
    std::unique_lock lock(mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(grpc::Status::CANCELLED);
  }

  grpc::ByteBuffer request_;
  std::mutex mutex_;
  int allowed_ = 0;
  int sent_ = 0;
  bool writing_ = false;
  bool finished_ = false;
};

class Service final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Call();
  }
};

void Step() {
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    next += std::chrono::milliseconds(step_ms);
    std::this_thread::sleep_until(next);
    std::lock_guard lock(running_mutex);
    for (Call* call : running) call->Allow(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  messages = std::atoi(argv[2]);
  step_ms = std::atoi(argv[4]);
  const grpc::Slice slice(std::string(static_cast<size_t>(std::atoi(argv[3])), 'x'));
  message = grpc::ByteBuffer(&slice, 1);
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::string(argv[1]), grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  if (step_ms > 0) std::thread(Step).detach();
  server->Wait();
}
