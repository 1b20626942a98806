#include "net/zmq/zmtp_pull.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace portico::net {
namespace {

constexpr int kPullBacklog = 128;
// Of those that wait to be accepted; further ones are accepted in the next turn.
constexpr int kAcceptsATurn = 64;
// Of one peer. Else one that sends faster than it is read, and never a whole message, would keep the thread for itself.
constexpr int kReadsATurn = 4;

Status CannotBind(const std::string& path, std::string_view why) {
  return Error(StatusCode::kUnavailable, fmt::format("cannot bind ipc://{}: {}", path, why));
}

int OpenSpareDescriptor() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool PullTriesLater() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

ZmtpPull::Peer::~Peer() { close(descriptor); }

StatusOr<std::unique_ptr<ZmtpPull>> ZmtpPull::Bind(const std::string& path,
                                                   size_t max_message_bytes) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.sun_path)) {
    return CannotBind(path, "a path of 1 to 107 bytes is wanted");
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  std::unique_ptr<ZmtpPull> socket(new ZmtpPull);
  socket->max_message_bytes_ = max_message_bytes;
  socket->spare_ = OpenSpareDescriptor();
  socket->listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket->listener_ < 0) return CannotBind(path, std::strerror(errno));
  unlink(path.c_str());  // what a former process left
  if (bind(socket->listener_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return CannotBind(path, std::strerror(errno));
  }
  struct stat made{};
  if (stat(path.c_str(), &made) == 0) {
    socket->path_ = path;
    socket->device_ = made.st_dev;
    socket->inode_ = made.st_ino;
  }
  if (listen(socket->listener_, kPullBacklog) != 0) return CannotBind(path, std::strerror(errno));
  return socket;
}

ZmtpPull::~ZmtpPull() {
  struct stat found{};
  if (!path_.empty() && stat(path_.c_str(), &found) == 0 && found.st_dev == device_ &&
      found.st_ino == inode_) {
    unlink(path_.c_str());
  }
  if (listener_ >= 0) close(listener_);
  if (spare_ >= 0) close(spare_);
}

void ZmtpPull::AddWaits(std::vector<pollfd>* waits) const {
  waits->push_back({listener_, POLLIN, 0});
  for (const auto& peer : peers_) {
    const int writes = peer->reader.output().empty() ? 0 : POLLOUT;
    waits->push_back({peer->descriptor, static_cast<short>(POLLIN | writes), 0});
  }
}

void ZmtpPull::SetReady(std::span<const pollfd> waits) {
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(next_));
  next_ = 0;
  for (size_t i = 1; i < waits.size(); ++i) {
    Peer* peer = peers_[i - 1].get();
    if ((waits[i].revents & POLLOUT) != 0) Write(peer);
    if ((waits[i].revents & ~POLLOUT) == 0) continue;
    peer->readable = true;
    peer->reads_left = kReadsATurn;
    if (std::find(ready_.begin(), ready_.end(), peer) == ready_.end()) ready_.push_back(peer);
  }
  if (waits[0].revents != 0) Accept();
}

void ZmtpPull::Accept() {
  if (spare_ < 0) spare_ = OpenSpareDescriptor();
  for (int i = 0; i < kAcceptsATurn; ++i) {
    int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && spare_ >= 0) {
      // Else the listener would stay readable, and its owner would not sleep. The peer tries again.
      close(spare_);
      descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (descriptor >= 0) close(descriptor);
      spare_ = OpenSpareDescriptor();
      return;
    }
    if (descriptor < 0) return;
    if (!MakeRoom()) {
      close(descriptor);
      continue;
    }
    peers_.push_back(std::make_unique<Peer>(descriptor, max_message_bytes_));
    Write(peers_.back().get());
  }
}

bool ZmtpPull::MakeRoom() {
  if (peers_.size() < kMaxPeers) return true;
  const auto idle = std::find_if(peers_.begin(), peers_.end(), [](const auto& peer) {
    return !peer->reader.is_ready() && !peer->readable;
  });
  if (idle == peers_.end()) return false;
  peers_.erase(idle);
  return true;
}

bool ZmtpPull::Receive(std::string_view* part) {
  while (next_ < ready_.size()) {
    if (ReceiveFrom(ready_[next_], part)) return true;
    Peer* done = ready_[next_++];
    if (!done->gone) continue;
    std::erase_if(peers_, [&](const auto& peer) { return peer.get() == done; });
  }
  return false;
}

bool ZmtpPull::ReceiveFrom(Peer* peer, std::string_view* part) {
  while (!peer->gone) {
    const ZmtpReader::Step step = peer->reader.Next(part);
    if (!peer->reader.output().empty()) Write(peer);
    if (step == ZmtpReader::Step::kPart) return true;
    if (step == ZmtpReader::Step::kFailed) Drop(peer, peer->reader.why());
    if (!peer->readable) break;
    Read(peer);
  }
  return false;
}

void ZmtpPull::Read(Peer* peer) {
  const std::span<char> space = peer->reader.Space();
  const ssize_t size = recv(peer->descriptor, space.data(), space.size(), 0);
  if (size > 0) {
    peer->reader.Added(static_cast<size_t>(size));
    // Where there is more, poll() says so again.
    peer->readable = static_cast<size_t>(size) == space.size() && --peer->reads_left > 0;
    return;
  }
  if (size < 0 && PullTriesLater()) {
    peer->readable = false;
    return;
  }
  peer->gone = true;
}

void ZmtpPull::Write(Peer* peer) {
  std::string& output = peer->reader.output();
  while (!output.empty()) {
    const ssize_t size = send(peer->descriptor, output.data(), output.size(), MSG_NOSIGNAL);
    if (size < 0 && PullTriesLater()) return;
    if (size < 0) output.clear();  // nobody reads there any more; one that has gone is read as such
    if (size <= 0) return;
    output.erase(0, static_cast<size_t>(size));
  }
}

void ZmtpPull::Drop(Peer* peer, std::string_view why) {
  peer->gone = true;
  ++refused_;
  if (std::exchange(told_, true)) return;
  LogWarning("a peer of ipc://{} is disconnected: {}", path_, why);
}

}  // namespace portico::net
