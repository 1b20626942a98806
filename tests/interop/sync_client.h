// The gRPC client as a test program likes it: calls that block, on a shard of their own.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "net/grpc/grpc_channel.h"

namespace portico {

class SyncClient {
 public:
  explicit SyncClient(net::GrpcChannelOptions options) : shard_(0) {
    shard_.Start();
    Run([&] { channel_ = std::make_unique<net::GrpcChannel>(shard_, std::move(options)); });
  }
  ~SyncClient() {
    Run([&] { channel_.reset(); });
    Run([] {});  // what leaves at the end of a turn has left
    shard_.Stop();
  }
  SyncClient(const SyncClient&) = delete;
  SyncClient& operator=(const SyncClient&) = delete;

  net::GrpcChannel& channel() { return *channel_; }
  template <typename Task>
  void Run(Task task) {
    std::promise<void> done;
    shard_.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  net::Shard shard_;
  std::unique_ptr<net::GrpcChannel> channel_;
};

class SyncCall final : private net::GrpcCallEvents {
 public:
  SyncCall(SyncClient& client, net::GrpcCallOptions options) : client_(client) {
    client_.Run([&] { call_ = client_.channel().Start(std::move(options), *this); });
  }
  ~SyncCall() override {
    client_.Run([&] { call_.reset(); });
  }
  SyncCall(const SyncCall&) = delete;
  SyncCall& operator=(const SyncCall&) = delete;

  void Write(std::string_view message) {
    client_.Run([&] { call_->Write(message); });
  }
  void End() {
    client_.Run([&] { call_->End(); });
  }
  void Cancel() {
    client_.Run([&] { call_->Cancel(); });
  }
  // The next message; nothing once the call has ended.
  std::optional<std::string> Read() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !messages_.empty() || status_; });
    if (messages_.empty()) return std::nullopt;
    std::string message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  Status Finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return status_.has_value(); });
    return *status_;
  }
  // After Finish().
  const net::Headers& head() const { return head_; }
  const net::Headers& trailers() const { return trailers_; }

 private:
  void OnHead(net::Headers metadata) override {
    std::lock_guard lock(mutex_);
    head_ = std::move(metadata);
  }
  void OnMessage(std::string_view message) override {
    std::lock_guard lock(mutex_);
    messages_.emplace_back(message);
    changed_.notify_all();
  }
  void OnEnd(Status status, net::Headers trailers) override {
    std::lock_guard lock(mutex_);
    trailers_ = std::move(trailers);
    status_ = std::move(status);
    changed_.notify_all();
  }

  SyncClient& client_;
  std::unique_ptr<net::GrpcClientCall> call_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> messages_;  // guarded by mutex_, as the rest
  net::Headers head_;
  net::Headers trailers_;
  std::optional<Status> status_;
};

}  // namespace portico
