#include "net/socket/transport.h"

#include <sys/socket.h>

#include <cerrno>

namespace portico::net {
namespace {

// In buffers.
constexpr int kReadsATurn = 8;

bool WouldBlock(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS;
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(int fd) : fd_(fd) {}

  IoResult Read(char* to, size_t size) override {
    ssize_t got = recv(fd_, to, size, MSG_DONTWAIT);
    if (got > 0) {
      size_t bytes = static_cast<size_t>(got);
      return {.kind = IoResult::kDone, .bytes = bytes, .more = bytes == size};
    }
    if (got == 0) return {.kind = IoResult::kEnd};
    return {.kind = WouldBlock(errno) ? IoResult::kBlocked : IoResult::kFailed};
  }

  IoResult Write(const iovec* parts, int count) override {
    ssize_t sent;
    if (count == 1) {
      sent = send(fd_, parts->iov_base, parts->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      msghdr message = {};
      message.msg_iov = const_cast<iovec*>(parts);
      message.msg_iovlen = static_cast<size_t>(count);
      sent = sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (sent >= 0) return {.kind = IoResult::kDone, .bytes = static_cast<size_t>(sent)};
    return {.kind = WouldBlock(errno) ? IoResult::kBlocked : IoResult::kFailed};
  }

  void EndOutput() override { shutdown(fd_, SHUT_WR); }

 private:
  int fd_;
};

}  // namespace

IoResult ReadTurn(Transport& transport, std::span<char> buffer,
                  absl::FunctionRef<bool(std::string_view)> take) {
  for (int i = 0; i < kReadsATurn; ++i) {
    const IoResult result = transport.Read(buffer.data(), buffer.size());
    if (result.kind != IoResult::kDone) return result;
    if (!take({buffer.data(), result.bytes}) || !result.more) break;
  }
  return {.kind = IoResult::kDone};
}

std::unique_ptr<Transport> MakePlainTransport(int fd) {
  return std::make_unique<PlainTransport>(fd);
}

}  // namespace portico::net
