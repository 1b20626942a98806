#include "net/socket/connection.h"

#include <poll.h>

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

using ErrorCode = boost::system::error_code;

constexpr int kParts = 8;
// A client that reads a long answer as fast as it is written must not keep the shard from the others. More is written where
// the client would be cut off for what is left: first its socket must have been full.
constexpr size_t kWrittenATurn = size_t{1} << 20;

}  // namespace

Connection::Connection(ServerShard& shard, TcpSocket socket, std::string peer,
                       std::unique_ptr<Transport> transport, bool late, OpenCount& total)
    : shard_(shard),
      total_(total),
      socket_(std::move(socket)),
      transport_(std::move(transport)),
      output_(shard.buffers),
      peer_(std::move(peer)),
      late_(late) {}

Connection::~Connection() = default;

void Connection::Start(std::unique_ptr<Session> session, Wait first) {
  session_ = std::move(session);
  SetWait(first);
  WaitReadable();
}

void Connection::BecomeSession(std::unique_ptr<Session> session) {
  former_sessions_.push_back(std::exchange(session_, std::move(session)));
  MarkDirty();
}

std::string& Connection::Output() {
  MarkDirty();
  return output_.Tail();
}

void Connection::Write(std::string bytes) {
  MarkDirty();
  output_.Append(std::move(bytes));
}

void Connection::SetWait(Wait wait) {
  wait_ = wait;
  ApplyWait();
}

void Connection::ApplyWait() {
  Wait wait = stuck_ ? Wait::kSend : paused_ ? Wait::kPeer : wait_;
  if (wait != listed_) shard_.table.Move(this, wait);
}

void Connection::PauseReading() {
  paused_ = true;
  ApplyWait();
}

void Connection::ResumeReading() {
  if (!paused_) return;
  paused_ = false;
  ApplyWait();
  WaitReadable();
}

void Connection::RunAtEndOfTurn() {
  wants_end_of_turn_ = true;
  MarkDirty();
}

void Connection::TellWhenSent() {
  wants_sent_ = true;
  MarkDirty();
}

void Connection::CallWhenBelow(size_t bytes, BelowCall::Call call) {
  if (state_ != State::kOpen) return;
  below_ = BelowCall::Make(shard_.shard, bytes, unsent(), std::move(call));
}

void Connection::CloseWhenSent() {
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  below_.reset();
  paused_ = false;
  MarkDirty();
  WaitReadable();
}

void Connection::Abort() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  below_.reset();
  transport_.reset();  // before its descriptor can belong to another
  ErrorCode ignored;
  socket_.close(ignored);
  TellSessionEnd();
  RetireIfDone();
}

void Connection::OnTimeout(Wait wait, size_t moved) {
  switch (wait) {
    case Wait::kSend:
      if (moved > 0) return;
      shard_.load.readers_cut.fetch_add(1, std::memory_order_relaxed);
      Abort();
      return;
    case Wait::kLinger:
      Abort();
      return;
    case Wait::kPeer:
      CheckPeer();
      return;
    case Wait::kBody:
      if (moved < shard_.options.min_body_bytes) session_->OnTimeout(wait);
      return;
    default:
      session_->OnTimeout(wait);
  }
}

void Connection::Drain() {
  if (state_ == State::kOpen) session_->OnDrain();
}

void Connection::WaitReadable() {
  if (state_ == State::kClosed || input_ended_ || paused_) return;
  if (std::exchange(read_armed_, true)) return;
  socket_.async_wait(TcpSocket::wait_read, [this](const ErrorCode&) { OnReadable(); });
}

void Connection::WaitWritable() {
  if (std::exchange(write_armed_, true)) return;
  socket_.async_wait(TcpSocket::wait_write, [this](const ErrorCode&) { OnWritable(); });
}

void Connection::OnReadable() {
  Shard::Turn turn(shard_.shard);
  read_armed_ = false;
  if (state_ != State::kClosed) ReadSome();
  if (std::exchange(write_needs_read_, false) && state_ != State::kClosed) Flush();
  WaitReadable();
  RetireIfDone();
}

void Connection::OnWritable() {
  Shard::Turn turn(shard_.shard);
  write_armed_ = false;
  if (state_ != State::kClosed) Flush();
  if (std::exchange(read_needs_write_, false) && state_ != State::kClosed) ReadSome();
  RetireIfDone();
}

void Connection::CheckPeer() {
  if (state_ == State::kClosed) return;
  pollfd look = {socket_.native_handle(), POLLRDHUP, 0};
  if (poll(&look, 1, 0) != 1) return;
  if ((look.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
    Abort();
  } else if ((look.revents & POLLRDHUP) != 0) {
    OnInputEnd();
  }
}

void Connection::ReadSome() {
  if (paused_) return;
  const auto take = [this](std::string_view bytes) {
    moved_ += bytes.size();
    if (state_ == State::kOpen) {
      session_->OnBytes(bytes);
    } else if ((dropped_ += bytes.size()) > kDroppedInput) {
      // What is not sent by now waits for a client that only talks.
      Abort();
    }
    return !paused_ && state_ != State::kClosed;
  };
  const IoResult result =
      ReadTurn(*transport_, {shard_.read_buffer.get(), ServerShard::kReadBuffer}, take);
  switch (result.kind) {
    case IoResult::kBlocked:
      read_needs_write_ = result.opposite;
      if (result.opposite) WaitWritable();
      return;
    case IoResult::kEnd:
      return OnInputEnd();
    case IoResult::kFailed:
      LogFailedHandshake();
      return Abort();
    case IoResult::kDone:
      return;
  }
}

void Connection::LogFailedHandshake() const {
  const std::string why = transport_->HandshakeFailure();
  if (why.empty()) return;
  if (const auto others = shard_.load.failed_handshakes.Take(Clock::now())) {
    LogWarning("TLS: the handshake with {} failed: {}{}", peer_, why, AndOthers(*others));
  }
}

void Connection::OnInputEnd() {
  input_ended_ = true;
  if (state_ == State::kLingering) {
    Abort();
    return;
  }
  TellSessionEnd();
  CloseWhenSent();
}

void Connection::Flush() {
  const bool waits = write_armed_ || write_needs_read_;
  if (waits && (put_off_ == 0 || !IsBehind())) return;
  put_off_ = 0;
  size_t written = 0;
  while (!output_.empty()) {
    if (written >= kWrittenATurn && !IsBehind()) {
      put_off_ = unsent();
      stuck_ = true;
      ApplyWait();
      return WaitWritable();
    }
    iovec parts[kParts];
    int count = output_.Gather(parts, kParts);
    IoResult result = transport_->Write(parts, count);
    if (result.kind == IoResult::kBlocked) {
      write_needs_read_ = result.opposite;
      if (!result.opposite) WaitWritable();
      stuck_ = true;
      ApplyWait();
      return;
    }
    if (result.kind != IoResult::kDone) {
      Abort();
      return;
    }
    output_.Consume(result.bytes);
    moved_ += result.bytes;
    written += result.bytes;
    if (below_ != nullptr) below_->OnSent(unsent());
  }
  OnFlushed();
}

void Connection::OnFlushed() {
  if (std::exchange(stuck_, false)) ApplyWait();
  if (state_ == State::kOpen && std::exchange(wants_sent_, false)) session_->OnSent();
  if (state_ != State::kFlushing) return;
  if (input_ended_) {
    Abort();
    return;
  }
  state_ = State::kLingering;
  transport_->EndOutput();
  SetWait(Wait::kLinger);
}

void Connection::MarkDirty() {
  if (state_ == State::kClosed || std::exchange(dirty_, true)) return;
  shard_.shard.AtEndOfTurn([this] { EndOfTurn(); });
}

void Connection::EndOfTurn() {
  dirty_ = false;
  if (state_ == State::kOpen && std::exchange(wants_end_of_turn_, false)) session_->OnEndOfTurn();
  if (state_ == State::kOpen || state_ == State::kFlushing) Flush();
  CutIfBehind();
  former_sessions_.clear();
  RetireIfDone();
}

bool Connection::CutIfBehind() {
  if (!IsBehind() || unsent() - put_off_ <= max_unsent_) return false;
  shard_.load.readers_cut.fetch_add(1, std::memory_order_relaxed);
  Abort();
  return true;
}

void Connection::TellSessionEnd() {
  if (!std::exchange(session_ended_, true) && session_ != nullptr) session_->OnEnd();
}

void Connection::RetireIfDone() {
  if (state_ != State::kClosed || read_armed_ || write_armed_ || dirty_) return;
  if (!std::exchange(retired_, true)) shard_.Retire(this);
}

}  // namespace portico::net
