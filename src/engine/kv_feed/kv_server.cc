#include "engine/kv_feed/kv_server.h"

#include <algorithm>
#include <utility>

#include "message/sglang/kv_events.h"

namespace portico {
namespace {

constexpr Duration kReplayPatience = std::chrono::seconds(2);
constexpr Duration kBetweenWishes = std::chrono::seconds(1);
constexpr size_t kMaxReplayed = 200'000;
// Of one rank in one turn, so that others have theirs.
constexpr int kMessagesOfTurn = 256;
constexpr size_t kNumberBytes = 8;

}  // namespace

StatusOr<std::unique_ptr<KvServer>> KvServer::Open(const net::ZmqContext& context,
                                                   const std::vector<KvPublisher>& ranks,
                                                   KvFeedListener* listener) {
  std::unique_ptr<KvServer> server(new KvServer(context, listener));
  for (const KvPublisher& where : ranks) {
    Rank& rank = server->ranks_.emplace_back();
    rank.where = where;
    PORTICO_ASSIGN_OR_RETURN(
        rank.events,
        net::ZmqSocket::ConnectSub(context, where.events, where.topic, {}, &rank.monitor));
  }
  return server;
}

void KvServer::AddSockets(std::vector<void*>* sockets) const {
  for (const Rank& rank : ranks_) {
    sockets->push_back(rank.monitor.get());
    // What is published during a replay waits.
    sockets->push_back(rank.replay.is_open() ? rank.replay.get() : rank.events.get());
  }
}

TimePoint KvServer::deadline() const {
  TimePoint first = TimePoint::max();
  for (const Rank& rank : ranks_) {
    if (rank.replay.is_open()) first = std::min(first, rank.replay_until);
  }
  return first;
}

void KvServer::Handle(TimePoint now) {
  now_ = now;
  for (Rank& rank : ranks_) {
    WatchConnection(&rank);
    if (rank.replay.is_open()) {
      TakeReplayed(&rank, now);
    } else {
      TakeLive(&rank);
    }
  }
}

bool KvServer::Message::ReadNumber(uint64_t* value) const {
  if (number.size() != kNumberBytes) return false;
  *value = 0;
  for (const char byte : number) *value = *value << 8 | static_cast<unsigned char>(byte);
  return true;
}

bool KvServer::Take(net::ZmqSocket* socket, Message* message) {
  *message = {};
  std::string_view part;
  while (socket->Receive(&part)) {
    ++message->parts;
    if (!socket->HasMore()) {
      message->payload = part;
      return true;
    }
    message->number.assign(part.substr(0, kNumberBytes + 1));
  }
  return false;
}

bool KvServer::AllConnected() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.connected; });
}

void KvServer::WatchConnection(Rank* rank) {
  while (const std::optional<bool> change = rank->monitor.NextChange()) {
    rank->sequence.Connect();
    rank->connected = *change;
    // Before a replay, which would miss what is published meanwhile.
    if (*change) rank->events.Settle();
    if (*change && AllConnected()) {
      telling_ = true;
      Reset(false, true);
    } else if (!*change && std::exchange(telling_, false)) {
      for (Rank& each : ranks_) each.replay.Close();
      listener_.OnKvLost();
    }
  }
}

void KvServer::Reset(bool restarted, bool ask) {
  KvEventBatch batch;
  if (restarted) batch.events.emplace_back().kind = KvEvent::Kind::kCleared;
  listener_.OnKvEvents(std::move(batch), true);
  if (!ask) return;
  for (Rank& rank : ranks_) {
    rank.sequence.Forget();
    Ask(&rank, 0);
  }
}

void KvServer::Ask(Rank* rank, uint64_t from) {
  if (rank->where.replay.empty()) return;
  auto socket = net::ZmqSocket::ConnectDealer(context_, rank->where.replay, {});
  if (!socket.ok()) return listener_.OnKvFault(MessageOf(socket.status()));
  std::string number(kNumberBytes, '\0');
  for (size_t i = kNumberBytes; i-- > 0; from >>= 8) number[i] = static_cast<char>(from & 0xff);
  socket->SendParts({"", number});
  rank->replay = *std::move(socket);
  rank->replay_until = now_ + kReplayPatience;
  rank->replayed = 0;
}

void KvServer::TakeLive(Rank* rank) {
  Message message;
  for (int i = 0; i < kMessagesOfTurn && !rank->replay.is_open(); ++i) {
    if (!Take(&rank->events, &message)) return;
    // A new connection is told before what comes of it.
    WatchConnection(rank);
    // A replay that has just begun brings it too.
    if (telling_ && !rank->replay.is_open()) OnLive(rank, message);
  }
}

void KvServer::OnLive(Rank* rank, const Message& message) {
  uint64_t number = 0;
  if (message.parts != 3 || !message.ReadNumber(&number)) {
    return listener_.OnKvFault("a message is not topic, number and batch");
  }
  const bool replays = !rank->where.replay.empty();
  switch (rank->sequence.OnLive(number)) {
    case KvSequence::Step::kKnown:
      return;
    case KvSequence::Step::kTake:
      return Tell(rank, message.payload);
    case KvSequence::Step::kGap:
      Ask(rank, rank->sequence.next());
      if (rank->replay.is_open()) return;
      Reset(false, false);
      break;
    case KvSequence::Step::kRestart:
      Reset(true, replays);
      if (rank->replay.is_open()) return;
      break;
  }
  rank->sequence.Adopt(number);
  Tell(rank, message.payload);
}

void KvServer::TakeReplayed(Rank* rank, TimePoint now) {
  Message message;
  for (int i = 0; i < kMessagesOfTurn && rank->replay.is_open(); ++i) {
    if (!Take(&rank->replay, &message)) break;
    rank->replay_until = now + kReplayPatience;
    if (!OnReplayed(rank, message)) return EndReplay(rank);
    WatchConnection(rank);
  }
  if (!rank->replay.is_open() || now < rank->replay_until) return;
  listener_.OnKvFault("a replay does not come");
  EndReplay(rank);
}

bool KvServer::OnReplayed(Rank* rank, const Message& message) {
  // (empty, topic, number, batch), in older releases without the topic.
  uint64_t number = 0;
  if (message.parts < 3 || message.parts > 4 || !message.ReadNumber(&number)) {
    listener_.OnKvFault("a message of a replay is not topic, number and batch");
    return false;
  }
  if (number == UINT64_MAX) return false;
  if (++rank->replayed > kMaxReplayed) {
    listener_.OnKvFault("a replay does not end");
    return false;
  }
  switch (rank->sequence.OnReplayed(number)) {
    case KvSequence::Step::kTake:
      break;
    case KvSequence::Step::kKnown:
    case KvSequence::Step::kRestart:
      return true;
    case KvSequence::Step::kGap:
      Reset(false, false);
      rank->sequence.Adopt(number);
      break;
  }
  Tell(rank, message.payload);
  return true;
}

void KvServer::EndReplay(Rank* rank) {
  rank->replay.Close();
  if (!rank->sequence.EndReplay()) Reset(false, false);
}

void KvServer::Tell(Rank* rank, std::string_view payload) {
  KvEventBatch batch;
  size_t unknown = 0;
  if (!sglang::ReadKvEvents(payload, &batch, &unknown)) {
    // What it would have changed is not known.
    listener_.OnKvFault("a batch of events cannot be read");
    return Reset(false, false);
  }
  if (unknown > 0) listener_.OnKvFault("an event is of no kind that is known");
  if (rank->where.rank >= 0) batch.rank = rank->where.rank;
  if (batch.events.empty()) return;
  if (listener_.OnKvEvents(std::move(batch), false) != KvWish::kState || now_ < next_wish_) return;
  next_wish_ = now_ + kBetweenWishes;
  Reset(false, true);
}

}  // namespace portico
