// For tests of the gRPC client: its shard, a channel there, and calls that remember what they were
// told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/grpc/grpc_channel.h"
#include "net/loop/test_server.h"

namespace portico::net {

// Lives on the shard.
struct RecordedCall final : GrpcCallEvents {
  void OnHead(Headers metadata) override { head = std::move(metadata); }
  void OnMessage(std::string_view message) override {
    messages.emplace_back(message);
    if (on_message) on_message();
  }
  void OnSent() override { ++sent; }
  void OnEnd(Status why, Headers last) override {
    ++ends;
    status = std::move(why);
    trailers = std::move(last);
    if (on_end) on_end();
  }

  std::unique_ptr<GrpcClientCall> call;
  std::function<void()> on_message;
  std::function<void()> on_end;
  Headers head;
  Headers trailers;
  std::vector<std::string> messages;
  Status status;
  int sent = 0;
  int ends = 0;
};

// A shard with a channel. What the test's thread asks runs on the shard.
class ClientLoop {
 public:
  explicit ClientLoop(GrpcChannelOptions options) : shard_(0) {
    shard_.Start();
    On([&] { channel_ = std::make_unique<GrpcChannel>(shard_, std::move(options)); });
  }
  ~ClientLoop() {
    On([&] {
      calls_.clear();
      channel_.reset();
    });
    // What leaves at the end of a turn has left.
    On([] {});
    shard_.Stop();
  }
  ClientLoop(const ClientLoop&) = delete;
  ClientLoop& operator=(const ClientLoop&) = delete;

  void On(const std::function<void()>& task) {
    std::promise<void> done;
    shard_.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Waits for what must happen, looking on the shard.
  void WaitFor(const std::function<bool()>& condition) {
    TestServer::WaitFor([&] {
      bool met = false;
      On([&] { met = condition(); });
      return met;
    });
  }

  // A call that has written `messages`, and ended if `end`.
  RecordedCall& Start(GrpcCallOptions options, std::vector<std::string> messages = {"request"},
                      bool end = true) {
    RecordedCall* made = nullptr;
    On([&] {
      calls_.push_back(std::make_unique<RecordedCall>());
      made = calls_.back().get();
      made->call = channel_->Start(std::move(options), *made);
      for (const std::string& message : messages) made->call->Write(message);
      if (end) made->call->End();
    });
    return *made;
  }
  const Status& WaitForEnd(RecordedCall& call) {
    WaitFor([&] { return call.ends > 0; });
    return call.status;
  }

  GrpcChannel& channel() { return *channel_; }
  // From within a task of the shard.
  void DropChannel() { channel_.reset(); }
  Shard& shard() { return shard_; }

 private:
  Shard shard_;
  std::unique_ptr<GrpcChannel> channel_;
  std::vector<std::unique_ptr<RecordedCall>> calls_;
};

inline GrpcChannelOptions ToPort(int port) {
  GrpcChannelOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  return options;
}

// A backoff that tests can wait for.
inline GrpcBackoffOptions ShortBackoff() {
  return {.initial = std::chrono::milliseconds(20), .max = std::chrono::milliseconds(50)};
}

}  // namespace portico::net
