#include "load_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

constexpr std::string_view kEnd = "\r\n0\r\n\r\n";
constexpr std::string_view kEvent = "data: ";
char buffer[256 << 10];

uint64_t Count(std::string_view text, std::string_view what) {
  uint64_t count = 0;
  const char* at = text.data();
  const char* end = at + text.size();
  while ((at = static_cast<const char*>(
              memmem(at, static_cast<size_t>(end - at), what.data(), what.size()))) != nullptr) {
    ++count;
    at += what.size();
  }
  return count;
}

}  // namespace

bool LoadClient::Open(int port) {
  std::vector<uint64_t>* const gaps = gaps_;
  *this = LoadClient();
  gaps_ = gaps;
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int result = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  return fd_ >= 0 && (result == 0 || errno == EINPROGRESS);
}

void LoadClient::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void LoadClient::Begin(std::string request, uint64_t now) {
  out_ = std::move(request);
  sent_ = 0;
  head_.clear();
  tail_.clear();
  busy_ = in_head_ = true;
  status_ = 0;
  began_ = now;
  first_ = last_ = gap_ = events_ = body_bytes_ = 0;
}

bool LoadClient::Flush() {
  if (sent_ == out_.size()) return false;
  ssize_t sent = send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
  if (sent > 0) sent_ += static_cast<size_t>(sent);
  return sent_ < out_.size();
}

LoadClient::Event LoadClient::Read(uint64_t now) {
  ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Event::kWaiting;
  if (got <= 0 || !busy_) return Event::kFailed;
  std::string_view bytes(buffer, static_cast<size_t>(got));
  uint64_t before = events_;
  bool done;
  if (in_head_) {
    head_.append(bytes);
    if (!ReadHead()) return Event::kWaiting;
    std::string rest = std::move(head_);
    head_.clear();
    done = ReadBody(rest);
  } else {
    done = ReadBody(bytes);
  }
  if (events_ > before) {
    if (first_ == 0) {
      first_ = now;
    } else {
      gap_ = std::max(gap_, now - last_);
      if (gaps_ != nullptr) gaps_->push_back(now - last_);
    }
    last_ = now;
  }
  if (!done) return Event::kWaiting;
  busy_ = false;
  return Event::kDone;
}

// Leaves in head_ what follows the head.
bool LoadClient::ReadHead() {
  size_t end = head_.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  in_head_ = false;
  std::transform(head_.begin(), head_.begin() + static_cast<ptrdiff_t>(end), head_.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  closing_ = head_.find("connection: close") < end;
  status_ = std::atoi(head_.c_str() + 9);
  chunked_ = head_.find("transfer-encoding: chunked") < end;
  size_t length = head_.find("content-length: ");
  left_ = length < end ? std::strtoul(head_.c_str() + length + 16, nullptr, 10) : 0;
  // The first chunk may be the last; its size line follows a line end of the head.
  tail_ = "\r\n";
  head_.erase(0, end + 4);
  return true;
}

bool LoadClient::ReadBody(std::string_view bytes) {
  body_bytes_ += bytes.size();
  if (!chunked_) {
    left_ -= std::min(left_, bytes.size());
    return left_ == 0;
  }
  // An event may be split between two reads only by an unlucky server; it is then not counted.
  events_ += Count(bytes, kEvent);
  tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kEnd.size())));
  if (tail_.size() > kEnd.size()) tail_.erase(0, tail_.size() - kEnd.size());
  return tail_ == kEnd;
}
