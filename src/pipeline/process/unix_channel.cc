#include "pipeline/process/unix_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

namespace portico::pipeline {
namespace {

class UnixChannel final : public Channel {
 public:
  explicit UnixChannel(Fd socket) : socket_(std::move(socket)) {}

  void Send(const Datagram& message) override {
    if (kept_.empty() && SendDatagram(fd(), message, /*wait=*/false) != Sent::kFull) return;
    kept_.push_back(message);
  }
  void Flush() override {
    while (!kept_.empty() && SendDatagram(fd(), kept_.front(), /*wait=*/false) != Sent::kFull) {
      kept_.pop_front();
    }
  }
  bool keeps() const override { return !kept_.empty(); }
  StatusOr<Received> Receive() override { return ReceiveDatagram(fd(), /*wait=*/false); }
  int fd() const override { return socket_.get(); }

 private:
  const Fd socket_;
  std::deque<Datagram> kept_;  // what the socket had no room for
};

}  // namespace

std::unique_ptr<Channel> MakeUnixChannel(Fd socket) {
  return std::make_unique<UnixChannel>(std::move(socket));
}

Sent SendDatagram(int socket, const Datagram& datagram, bool wait) {
  iovec piece{const_cast<char*>(datagram.bytes.data()), datagram.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (datagram.blob != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = datagram.blob->fd();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  while (true) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) >= 0) return Sent::kYes;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS) {
      if (!wait) return Sent::kFull;
      pollfd room{socket, POLLOUT, 0};
      poll(&room, 1, 10);
      continue;
    }
    return Sent::kGone;
  }
}

StatusOr<Received> ReceiveDatagram(int socket, bool wait) {
  Received received;
  static thread_local char buffer[kMaxDatagram];
  iovec piece{buffer, sizeof buffer};
  // The padding would hold a second descriptor, so room for two is what there is.
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size = 0;
  do {
    size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) {
    received.empty = true;
    return received;
  }
  if (size <= 0) {
    received.ended = true;
    return received;
  }
  int descriptors = 0;
  Fd last;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = header->cmsg_len - CMSG_LEN(0);
    for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
      last = Fd(fd);
      ++descriptors;
    }
  }
  if (descriptors > 1 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Error(StatusCode::kInvalidArgument, "a datagram that is too long");
  }
  received.message.bytes.assign(buffer, static_cast<size_t>(size));
  if (last.valid()) {
    PORTICO_ASSIGN_OR_RETURN(received.message.blob, Blob::Map(std::move(last)));
  }
  return received;
}

}  // namespace portico::pipeline
