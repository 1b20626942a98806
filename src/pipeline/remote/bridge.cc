#include "pipeline/remote/bridge.h"

#include <poll.h>

#include <cerrno>

#include "base/clock.h"
#include "message/msgpack/reader.h"
#include "pipeline/remote/frame.h"

namespace portico::pipeline {
namespace {

constexpr int kPeriodMs = 200;
constexpr int kMessages = 64;  // of one direction before the other is looked at
// A server reads always. One that takes nothing for so long is gone without a word.
constexpr Duration kTakesNothing = std::chrono::seconds(60);

// Of what a server sends once its stages are made; profiles name folders of the server's host.
bool MayCome(const Datagram& message) {
  if (message.bytes.empty()) return false;
  const bool behind = message.bytes.front() == kFlagFrameInFd;
  if (behind && message.blob == nullptr) return false;
  if (!behind && message.bytes.front() != 0)
    return false;  // several: only the first would be looked at
  msgpack::Reader reader(behind ? message.blob->bytes()
                                : std::string_view(message.bytes).substr(1));
  uint32_t size = 0;
  int64_t kind = 0;
  if (!reader.Array(&size) || !reader.Int(&kind)) return false;
  switch (static_cast<MessageKind>(kind)) {
    case MessageKind::kStart:
    case MessageKind::kReference:
    case MessageKind::kPart:
    case MessageKind::kInputEnd:
    case MessageKind::kSourceEnd:
    case MessageKind::kGathered:
    case MessageKind::kAbort:
    case MessageKind::kRoom:
    case MessageKind::kPing:
      return true;
    default:
      return false;
  }
}

struct Passed {
  std::string why;    // not empty: over
  bool more = false;  // may have more to pass at once
};

// What lies beside a message goes to a process in shared memory.
StatusOr<Datagram> ForProcess(Datagram message) {
  if (message.blob != nullptr && message.blob->fd() < 0) {
    PORTICO_ASSIGN_OR_RETURN(message.blob, Blob::Share(message.blob->bytes()));
  }
  return message;
}

Passed Pass(Channel& from, Channel& to, bool to_stage) {
  for (int i = 0; i < kMessages && !to.keeps(); ++i) {
    auto received = from.Receive();
    if (!received.ok()) return {std::string(MessageOf(received.status()))};
    if (received->empty) return {};
    if (received->ended)
      return {to_stage ? "the server has closed the connection" : "it has ended"};
    if (to_stage) {
      if (!MayCome(received->message)) return {"the server sent what is not for a stage"};
      auto message = ForProcess(std::move(received->message));
      if (!message.ok()) return {std::string(MessageOf(message.status()))};
      to.Send(*message);
    } else if (FitsFrame(received->message)) {
      to.Send(received->message);
    } else {
      return {"it sent a part that is too long for another host"};
    }
  }
  return {.why = {}, .more = !to.keeps()};
}

}  // namespace

std::string Bridge(Channel& server, Channel& stage, int exit,
                   const std::function<bool()>& stopping) {
  uint64_t progress = server.progress();
  TimePoint moved = Clock::now();
  bool more = false;
  while (true) {
    const auto events = [](const Channel& from, const Channel& to) {
      return static_cast<short>((to.keeps() ? 0 : POLLIN) | (from.keeps() ? POLLOUT : 0));
    };
    pollfd waits[3] = {{server.fd(), events(server, stage), 0},
                       {stage.fd(), events(stage, server), 0},
                       {exit, POLLIN, 0}};
    if (poll(waits, 3, more ? 0 : kPeriodMs) < 0 && errno != EINTR) return "poll failed";
    if (stopping()) return "this program ends";
    server.Flush();
    stage.Flush();
    const Passed in = Pass(server, stage, /*to_stage=*/true);
    if (!in.why.empty()) return in.why;
    const Passed out = Pass(stage, server, /*to_stage=*/false);
    if (!out.why.empty()) return out.why;
    if (waits[2].revents != 0) return "it has ended";
    more = in.more || out.more;
    if (!server.keeps() || server.progress() != progress) moved = Clock::now();
    progress = server.progress();
    if (Clock::now() - moved > kTakesNothing) return "the server takes nothing any more";
  }
}

}  // namespace portico::pipeline
