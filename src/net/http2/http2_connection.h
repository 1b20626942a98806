// One connection of an Http2Client: its calls and flow control, on an nghttp2 client session.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http2/http2_client.h"

namespace portico::net {

// What a client's connections share.
struct Http2Client::Pool : std::enable_shared_from_this<Http2Client::Pool> {
  Pool(Shard& on_shard, ClientTarget where, const Http2ClientOptions& how)
      : shard(on_shard), target(std::move(where)), options(how) {}

  // Gives the calls that wait to connections with room, and opens another where there is none.
  void Assign();
  // It takes no more calls; one that was never ready takes those that wait with it.
  void Retire(Http2Connection& connection, CallFailure failure, const std::string& why);

  Shard& shard;
  const ClientTarget target;
  const Http2ClientOptions options;
  std::vector<std::shared_ptr<Http2Connection>> connections;
  std::shared_ptr<Http2Call::Waiting> waiting;
};

struct Http2Call::Waiting {
  std::vector<Http2Call*> calls;  // in their order
};

class Http2Connection final : public std::enable_shared_from_this<Http2Connection>,
                              private ClientSocketEvents {
 public:
  explicit Http2Connection(std::shared_ptr<Http2Client::Pool> pool);
  ~Http2Connection() override;
  void Connect();

  bool ready() const { return ready_; }
  bool has_room() const;
  size_t calls() const { return calls_.size(); }
  // False: it takes no more.
  bool Begin(Http2Call& call);
  // The call is dropped.
  void Abandon(Http2Call& call);
  void Consume(Http2Call& call, size_t bytes);
  // There is more of its body, or the end.
  void SendMore(Http2Call& call);
  // Closes once its calls have ended.
  void Drain();

 private:
  friend struct Http2ClientCallbacks;

  void OnConnected() override;
  void OnBytes(std::string_view bytes) override;
  void OnWritable() override;
  void OnLost(const Status& status) override;

  // From nghttp2.
  void OnHeader(Http2Call& call, std::string_view name, std::string_view value);
  void OnFrame(const nghttp2_frame& frame);
  void OnData(int32_t stream, std::string_view bytes);
  void OnStreamClosed(Http2Call& call, uint32_t error);
  ssize_t OfferBody(Http2Call& call, size_t max, uint32_t* flags);
  int SendBody(Http2Call& call, std::string_view head, size_t size);
  void TellWanted();
  Http2Call* Find(int32_t stream);

  void OnHead(Http2Call& call, bool ends);
  void Complete(Http2Call& call);
  // The call leaves; what has not ended of its stream is reset.
  void Release(Http2Call& call, uint32_t error);
  void Remove(Http2Call& call);
  void Fail(Http2Call& call, CallFailure failure, const std::string& why);
  // `failure`: of the calls that wait for it, if it was never ready.
  void Lose(const std::string& why, CallFailure failure = CallFailure::kConnect);
  void CloseIfDone();
  void SetIdleTimer();

  const std::shared_ptr<Http2Client::Pool> pool_;
  nghttp2_session* nghttp2_ = nullptr;
  std::unique_ptr<ClientSocket> socket_;
  std::unique_ptr<Shard::Timer> timer_;
  std::vector<Http2Call*> calls_;
  bool connected_ = false;
  bool ready_ = false;     // the server's settings have come
  bool draining_ = false;  // takes no new calls
};

}  // namespace portico::net
