// One server whose events a KvFeed follows: its ranks' sockets and what has come of them. On the feed's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/kv_feed/kv_feed.h"
#include "engine/kv_feed/kv_sequence.h"

namespace portico {

class KvServer {
 public:
  // Opens the sockets, on any thread. UNAVAILABLE names an address that is none.
  static StatusOr<std::unique_ptr<KvServer>> Open(const net::ZmqContext& context,
                                                  const std::vector<KvPublisher>& ranks,
                                                  KvFeedListener* listener);

  // Appends the sockets from which something is wanted.
  void AddSockets(std::vector<void*>* sockets) const;
  // When Handle() is due though no socket says so.
  TimePoint deadline() const;
  // Takes some of what has come.
  void Handle(TimePoint now);

 private:
  struct Rank {
    KvPublisher where;
    // The last one is closed first.
    net::ZmqSocket monitor;
    net::ZmqSocket events;
    net::ZmqSocket replay;  // open while one is under way
    TimePoint replay_until{};
    size_t replayed = 0;
    bool connected = false;
    KvSequence sequence;
  };
  struct Message {
    size_t parts = 0;
    std::string number;        // of the last part but one, at most 9 bytes
    std::string_view payload;  // the last part; valid until the next message
    bool ReadNumber(uint64_t* value) const;
  };

  KvServer(const net::ZmqContext& context, KvFeedListener* listener)
      : context_(context), listener_(*listener) {}

  static bool Take(net::ZmqSocket* socket, Message* message);
  void WatchConnection(Rank* rank);
  // What was told does not count any more. `restarted`: the server holds nothing of it. `ask`: for what is kept.
  void Reset(bool restarted, bool ask);
  void Ask(Rank* rank, uint64_t from);
  void TakeLive(Rank* rank);
  void OnLive(Rank* rank, const Message& message);
  void TakeReplayed(Rank* rank, TimePoint now);
  // False: that was the end.
  bool OnReplayed(Rank* rank, const Message& message);
  void EndReplay(Rank* rank);
  void Tell(Rank* rank, std::string_view payload);
  bool AllConnected() const;

  const net::ZmqContext& context_;
  KvFeedListener& listener_;
  std::vector<Rank> ranks_;
  bool telling_ = false;  // all ranks are connected
  TimePoint now_{};
  TimePoint next_wish_{};  // when the listener may have the state anew
};

}  // namespace portico
