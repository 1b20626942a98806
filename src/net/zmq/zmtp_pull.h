// A PULL socket at a Unix address, without libzmq: PUSH sockets connect to it, those of any libzmq, and send messages. It has
// no thread; its owner polls its descriptors beside others and reads what has come. docs/architecture.md has the
// figures that were the reason.
//
// As libzmq's: any number of peers, one after another and at once; a peer that ends is forgotten, with the message that it
// had not sent completely; one that breaks the protocol is disconnected, and the first of these is logged. Not thread safe.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/zmq/zmtp_reader.h"

namespace portico::net {

class ZmtpPull {
 public:
  static constexpr size_t kMaxPeers = 4096;

  // `path`: of the socket; a file that is there is replaced. The folder decides who can connect. UNAVAILABLE: it cannot be
  // bound.
  static StatusOr<std::unique_ptr<ZmtpPull>> Bind(const std::string& path,
                                                  size_t max_message_bytes);
  // Removes the file, unless another socket has been bound to the path since.
  ~ZmtpPull();
  ZmtpPull(const ZmtpPull&) = delete;
  ZmtpPull& operator=(const ZmtpPull&) = delete;

  // Appends what poll() is to wait for. After it, and before anything else, SetReady() gets the same of them.
  void AddWaits(std::vector<pollfd>* waits) const;
  void SetReady(std::span<const pollfd> waits);
  size_t waits() const { return 1 + peers_.size(); }

  // The next part of a message, without waiting; it is valid until the next call. False: everything that had come at the
  // last SetReady() has been given, or what a turn takes of one peer; poll() tells of the rest. Until then IsReady().
  bool Receive(std::string_view* part);
  bool IsReady() const { return next_ < ready_.size(); }
  // Whether more parts of the message follow the one that Receive() gave.
  bool HasMore() const { return IsReady() && ready_[next_]->reader.HasMore(); }

  size_t peers() const { return peers_.size(); }
  // Peers that have been disconnected because they broke the protocol.
  uint64_t refused() const { return refused_; }

 private:
  struct Peer {
    Peer(int connection, size_t max_message_bytes)
        : descriptor(connection), reader(max_message_bytes) {}
    ~Peer();
    const int descriptor;
    ZmtpReader reader;
    bool readable = false;
    int reads_left = 0;  // of this turn
    bool gone = false;
  };

  ZmtpPull() = default;
  void Accept();
  // A peer that has not said that it is ready gives way to another one.
  bool MakeRoom();
  bool ReceiveFrom(Peer* peer, std::string_view* part);
  static void Read(Peer* peer);
  static void Write(Peer* peer);
  void Drop(Peer* peer, std::string_view why);

  std::string path_;
  uint64_t device_ = 0;  // of the file
  uint64_t inode_ = 0;
  size_t max_message_bytes_ = 0;
  int listener_ = -1;
  int spare_ = -1;  // is closed to accept, and refuse, a peer where no descriptor is left
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> ready_;
  size_t next_ = 0;  // of ready_
  uint64_t refused_ = 0;
  bool told_ = false;
};

}  // namespace portico::net
