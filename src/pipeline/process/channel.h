// The pipeline's end of the way to a stage process: whole messages in both directions, in order. How
// they travel is the channel's own business.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "pipeline/blob.h"
#include "pipeline/process/message.h"

namespace portico::pipeline {

struct Received {
  bool ended = false;  // the other end is gone
  bool empty = false;  // nothing has come
  Datagram message;
};

// Nothing here waits. Send(), Flush() and keeps() are called one at a time, Receive() on one thread,
// maybe beside them.
class Channel {
 public:
  virtual ~Channel() = default;
  // Sends it, or keeps it where the other end takes no more now. Receive() tells that it is gone.
  virtual void Send(const Datagram& message) = 0;
  // Sends what is kept, as far as the other end takes it.
  virtual void Flush() = 0;
  // Something is kept: Flush() shall be called when fd() can be written.
  virtual bool keeps() const = 0;
  // INVALID_ARGUMENT: what came is no message. To be called until it is empty.
  virtual StatusOr<Received> Receive() = 0;
  // To wait for with poll().
  virtual int fd() const = 0;
  // Grows while the other end lives though no message has become whole. Any thread.
  virtual uint64_t progress() const { return 0; }
};

// The way to a new stage process, and the process itself if it is a child of this one.
struct StageLink {
  std::unique_ptr<Channel> channel;
  pid_t pid = -1;
  Fd exit;  // readable once the child has ended
};

// Starts or reaches the process with this number of its group. On a thread of that process's own;
// gives up soon after `stopping` becomes true.
using StageOpener =
    std::function<StatusOr<StageLink>(int index, const std::function<bool()>& stopping)>;

}  // namespace portico::pipeline
