// A socket on which the scheduler sends: at Unix addresses Portico's own, which the link's thread reads without a thread in
// between; at TCP addresses, whose peers are to be admitted first, libzmq's.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/zmq/zmq_socket.h"
#include "net/zmq/zmtp_pull.h"

namespace portico::sglang {

class LinkInput {
 public:
  LinkInput() = default;  // closed
  // UNAVAILABLE names the address that cannot be bound. `context` outlives it.
  static StatusOr<LinkInput> Bind(const net::ZmqContext& context, const std::string& address,
                                  net::ZmqBinding binding);

  // Appends what poll() is to wait for, at least one. After it, and before anything else, SetReady() gets what
  // it has found for all of these, at their places.
  void AddWaits(std::vector<pollfd>* waits);
  void SetReady(std::span<const pollfd> waits);
  // Whether Receive() may give something without another poll().
  bool IsReady() const { return own_ != nullptr ? own_->IsReady() : zmq_ready_; }
  // The next frame, without waiting; false if there is none. The bytes are valid until the next call. Parts of a message of
  // several come as frames.
  bool Receive(std::string_view* frame);
  // Peers that were disconnected since the last call because they broke the protocol.
  uint64_t TakeRefused();

 private:
  std::unique_ptr<net::ZmtpPull> own_;  // null: zmq_
  net::ZmqSocket zmq_;
  int zmq_descriptor_ = -1;
  bool zmq_ready_ = true;  // libzmq does not report what was there before the first poll()
  size_t first_ = 0;       // of the waits: its own
  size_t count_ = 0;
  uint64_t refused_ = 0;  // of own_, as told
};

}  // namespace portico::sglang
