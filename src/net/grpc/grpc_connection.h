// One HTTP/2 connection of a gRPC channel: the calls on it, flow control, keepalive and GOAWAY, on
// an nghttp2 client session.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/grpc/grpc_client_call.h"
#include "net/loop/shard.h"
#include "net/socket/client_socket.h"

namespace portico::net {

class GrpcChannel;

class GrpcConnection final : private ClientSocketEvents {
 public:
  // Begins to connect. Owned by `channel`, and after Retire() by the end of the turn.
  explicit GrpcConnection(GrpcChannel& channel);
  ~GrpcConnection() override;
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  // The server's settings have come, so that its limits are known.
  bool ready() const { return ready_; }
  // It takes no new calls.
  bool draining() const { return draining_; }
  bool has_room() const;
  bool idle() const { return calls_.empty(); }
  // Has been of use: it has answered a call, or stood for a while.
  bool proved() const;
  TimePoint began() const { return began_; }

  // False if it turns out that it takes no more.
  bool Begin(GrpcClientCall& call);
  // The call leaves the connection; what has not ended of its stream is reset.
  void Release(GrpcClientCall& call, uint32_t error);
  void Resume(GrpcClientCall& call);
  // Of the stream's window; the connection's is given back as bytes come.
  void Consume(GrpcClientCall& call, size_t bytes);
  // Takes no new calls and closes when those that run have ended.
  void Drain();
  // The channel has let it go: it tells the channel nothing more.
  void Detach();
  // Says good-bye, and is ready to be destroyed.
  void Leave();

 private:
  friend struct GrpcConnectionCallbacks;

  void OnConnected() override;
  void OnBytes(std::string_view bytes) override;
  void OnWritable() override;
  void OnLost(const Status& status) override;

  // From nghttp2.
  int OnFrame(const nghttp2_frame& frame);
  void OnGoaway(const nghttp2_goaway& frame);
  void OnData(int32_t stream, std::string_view bytes);
  void OnStreamClosed(GrpcClientCall& call, uint32_t error);
  void OnNotSent(const nghttp2_frame& frame);
  void Send(std::string_view bytes);
  int SendData(GrpcClientCall& call, std::string_view head, size_t size);
  static ssize_t OfferData(GrpcClientCall& call, size_t max, uint32_t* flags);

  GrpcClientCall* Find(int32_t stream);
  void Remove(GrpcClientCall& call);
  void Lose(Status status);
  void CloseIfDone();
  void WriteSoon();
  TimePoint NextTick() const;
  void SetTimer();
  void Tick();

  Shard& shard_;
  GrpcChannel* channel_;  // null once retired
  nghttp2_session* nghttp2_ = nullptr;
  std::unique_ptr<ClientSocket> socket_;
  std::vector<GrpcClientCall*> calls_;

  const TimePoint began_;
  TimePoint ready_since_{};
  TimePoint last_received_{};
  TimePoint idle_since_{};
  TimePoint ping_sent_{};
  std::unique_ptr<Shard::Timer> timer_;
  TimePoint timer_due_ = TimePoint::max();
  bool ready_ = false;
  bool draining_ = false;
  bool answered_ = false;
  bool pinging_ = false;
  bool lost_ = false;
};

}  // namespace portico::net
