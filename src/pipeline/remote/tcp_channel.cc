#include "pipeline/remote/tcp_channel.h"

#include <atomic>
#include <deque>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "pipeline/remote/frame.h"

namespace portico::pipeline {
namespace {

using net::IoResult;

class TcpChannel final : public Channel {
 public:
  TcpChannel(Fd socket, std::unique_ptr<net::Transport> transport)
      : socket_(std::move(socket)), transport_(std::move(transport)) {}
  ~TcpChannel() override {
    const MutexLock lock(&mutex_);
    transport_->EndOutput();
  }

  void Send(const Datagram& message) override {
    const MutexLock lock(&mutex_);
    if (lost_) return;
    kept_.push_back(message);
    if (kept_.size() == 1) SendKept();
  }
  // What a stopped reader's socket still takes is little, and then there is no progress.
  void Flush() override {
    const MutexLock lock(&mutex_);
    progress_ += SendKept();
  }
  bool keeps() const override {
    const MutexLock lock(&mutex_);
    return !kept_.empty();
  }
  StatusOr<Received> Receive() override {
    Received received;
    while (true) {
      PORTICO_ASSIGN_OR_RETURN(const bool whole, reader_.Next(&received.message));
      if (whole) return received;
      const std::span<char> space = reader_.Space();
      IoResult result;
      {
        const MutexLock lock(&mutex_);
        result = lost_ ? IoResult{.kind = IoResult::kFailed}
                       : transport_->Read(space.data(), space.size());
      }
      reader_.Filled(result.kind == IoResult::kDone ? result.bytes : 0);
      if (result.kind == IoResult::kDone) {
        progress_ += result.bytes;
        continue;
      }
      received.empty = result.kind == IoResult::kBlocked;
      received.ended = !received.empty;
      return received;
    }
  }
  int fd() const override { return socket_.get(); }
  uint64_t progress() const override { return progress_; }

 private:
  // The bytes that went. A lost connection is Receive()'s to tell.
  size_t SendKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t went = 0;
    while (!kept_.empty()) {
      const Datagram& front = kept_.front();
      const auto head = FrameHead(front);
      std::string_view pieces[] = {{head.data(), head.size()},
                                   front.bytes,
                                   front.blob == nullptr ? "" : front.blob->bytes()};
      iovec parts[3];
      int count = 0;
      size_t skip = sent_;
      for (std::string_view piece : pieces) {
        const size_t skipped = std::min(skip, piece.size());
        skip -= skipped;
        piece.remove_prefix(skipped);
        if (!piece.empty()) parts[count++] = {const_cast<char*>(piece.data()), piece.size()};
      }
      const IoResult result = transport_->Write(parts, count);
      if (result.kind == IoResult::kBlocked) return went;
      if (result.kind != IoResult::kDone) {
        lost_ = true;
        kept_.clear();
        return went;
      }
      went += result.bytes;
      sent_ += result.bytes;
      if (sent_ < kFrameHead + front.size()) continue;
      sent_ = 0;
      kept_.pop_front();
    }
    return went;
  }

  const Fd socket_;
  FrameReader reader_;  // of Receive() alone
  std::atomic<uint64_t> progress_{0};
  mutable Mutex mutex_;
  const std::unique_ptr<net::Transport> transport_ ABSL_PT_GUARDED_BY(mutex_);
  std::deque<Datagram> kept_ ABSL_GUARDED_BY(mutex_);
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // of the first of kept_, with its head
};

}  // namespace

std::unique_ptr<Channel> MakeTcpChannel(Fd socket, std::unique_ptr<net::Transport> transport) {
  return std::make_unique<TcpChannel>(std::move(socket), std::move(transport));
}

}  // namespace portico::pipeline
