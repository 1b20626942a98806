// One accepted socket on its shard: reads, buffered writes that leave at the end of the turn, time
// limits, closing.
//
// Reading waits for readiness and then reads into the shard's one buffer, so an idle connection
// holds none. Writing tries a direct non-blocking send; only back-pressure waits. While it is open
// a connection always watches its socket for bytes; while the session has paused reading, the
// client's presence is looked up every second.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/socket/below_call.h"
#include "net/socket/output_queue.h"
#include "net/socket/session.h"
#include "net/socket/transport.h"

namespace portico::net {

class OpenCount;
class ServerShard;

using TcpSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

class Connection {
 public:
  // Of input that nobody wants.
  static constexpr size_t kDroppedInput = 1 << 20;

  // Owned by `shard`'s table, and counted in `total`. `late`: it came while the server drains. The session is set by Start(), and may replace itself.
  Connection(ServerShard& shard, TcpSocket socket, std::string peer,
             std::unique_ptr<Transport> transport, bool late, OpenCount& total);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start(std::unique_ptr<Session> session, Wait first);
  // From within a call of the present session, which lives until the end of the turn.
  void BecomeSession(std::unique_ptr<Session> session);

  ServerShard& shard() { return shard_; }
  OpenCount& total() { return total_; }
  bool late() const { return late_; }
  const std::string& peer() const { return peer_; }
  // As Transport::PeerSubject(), looked up at the first request.
  const std::string& client() {
    if (!std::exchange(client_known_, true)) client_ = transport_->PeerSubject();
    return client_;
  }

  // Output to append to; valid until the next call of anything here.
  std::string& Output();
  void Write(std::string bytes);
  size_t unsent() const { return output_.size(); }

  // What the client is waited for. Naming the present one again does not prolong it.
  void SetWait(Wait wait);
  // Bytes beyond the session's bounds stay in the kernel; a lost peer is still noticed.
  void PauseReading();
  void ResumeReading();
  // One call of OnEndOfTurn.
  void RunAtEndOfTurn();
  // One call of OnSent once everything written so far has been taken.
  void TellWhenSent();
  // As Exchange::CallWhenBelow(), of everything that is unsent. Dropped once the connection closes, which sends the rest.
  void CallWhenBelow(size_t bytes, BelowCall::Call call);
  // Cuts the client off if more than this is unsent at the end of a turn though the socket is full; 0: no limit.
  void LimitUnsent(size_t bytes) { max_unsent_ = bytes; }
  // Aborts the connection where more than that has not been taken, beside what the server has put off; at the
  // end of each turn by itself, and in between for sessions that may add much more in one turn.
  bool CutIfBehind();

  // Sends what is written, then closes. Input that still comes is dropped, up to kDroppedInput and for
  // a second: closing a socket with unread input resets it, which can destroy an answer that the client
  // has not read yet.
  void CloseWhenSent();
  // Closes now; the session gets OnEnd().
  void Abort();
  bool closing() const { return state_ != State::kOpen; }

  // For the table. `moved` bytes have come (kBody) or gone (kSend) in the period that has passed.
  void OnTimeout(Wait wait, size_t moved);
  void Drain();

 private:
  friend class ConnectionTable;
  enum class State : uint8_t { kOpen, kFlushing, kLingering, kClosed };

  void WaitReadable();
  void WaitWritable();
  void OnReadable();
  void OnWritable();
  void ReadSome();
  // Of TLS, where it has failed: clients that the server does not suit are in no other log.
  void LogFailedHandshake() const;
  void OnInputEnd();
  void Flush();
  void OnFlushed();
  void EndOfTurn();
  // More is unsent than the session allows.
  bool IsBehind() const {
    return state_ == State::kOpen && max_unsent_ != 0 && unsent() > max_unsent_;
  }
  void MarkDirty();
  void ApplyWait();
  void CheckPeer();
  void TellSessionEnd();
  void RetireIfDone();

  ServerShard& shard_;
  OpenCount& total_;
  TcpSocket socket_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Session> session_;
  std::vector<std::unique_ptr<Session>> former_sessions_;
  OutputQueue output_;
  std::unique_ptr<BelowCall> below_;  // null: nobody waits for the client to read
  std::string peer_;
  std::string client_;

  // The table's: place in the list of `listed_`, due time, progress since it was listed.
  Connection* before_ = nullptr;
  Connection* after_ = nullptr;
  TimePoint due_;
  size_t moved_ = 0;
  Wait listed_ = Wait::kAnswer;

  Wait wait_ = Wait::kAnswer;  // the session's wish
  State state_ = State::kOpen;
  const bool late_;
  size_t max_unsent_ = 0;
  size_t put_off_ = 0;  // what the last Flush() left to a later turn though the socket took more
  size_t dropped_ = 0;  // since the session had its last bytes

  // Waits of the socket whose handler has not run: while there is one, the connection must live.
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool read_needs_write_ = false;  // TLS
  bool write_needs_read_ = false;  // TLS

  bool paused_ = false;
  bool stuck_ = false;  // output waits for the client
  bool input_ended_ = false;
  bool session_ended_ = false;  // it has had OnEnd()
  bool dirty_ = false;          // EndOfTurn is on its way
  bool wants_end_of_turn_ = false;
  bool wants_sent_ = false;
  bool client_known_ = false;
  bool retired_ = false;
};

}  // namespace portico::net
