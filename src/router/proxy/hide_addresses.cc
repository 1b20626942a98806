// Forms that occur in what SGLang, vLLM and their libraries say:
//   aiohttp    Cannot connect to host a.b:30000 ssl:default [Connect call failed ('10.0.0.1', 30000)]
//   urllib3    HTTPConnectionPool(host='10.0.0.1', port=30000): Max retries exceeded with url: /x
//   gRPC       ipv4:10.0.0.1:50051: Failed to connect · ipv6:%5B::1%5D:50051 · unix:/tmp/x.sock
//   ZMQ        tcp://10.0.0.1:5557 · ipc:///tmp/x
// within JSON strings, whose escapes stand before an address without a space: \n10.0.0.1:80.
#include "router/proxy/hide_addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"

namespace portico::router {
namespace {

constexpr std::string_view kInstead = "worker";
constexpr size_t kMaxHostName = 253;

bool IsHostByte(char c) { return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_'; }

std::string LowerCase(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

// `lower`: three bytes.
bool IsEscape(std::string_view text, std::string_view lower) {
  return text.starts_with('%') && LowerCase(text.substr(0, 3)) == lower;
}

bool IsIp(int family, std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN) return false;
  char copy[INET6_ADDRSTRLEN] = {};
  text.copy(copy, text.size());
  in6_addr ignored;
  return inet_pton(family, copy, &ignored) == 1;
}

class AddressHider {
 public:
  AddressHider(std::string_view text, const WorkerSet& set) : text_(text), set_(set) {}

  // False: there is nothing to hide, and `out` is unchanged.
  bool Run(std::string* out) {
    while (at_ < text_.size()) {
      if (const size_t end = Ipv6End(); end > at_) {
        Replace(at_, end);
      } else if (IsHostByte(text_[at_])) {
        Word();
      } else {
        ++at_;
      }
    }
    if (copied_ == 0) return false;
    made_.append(text_.substr(copied_));
    *out = std::move(made_);
    return true;
  }

 private:
  std::string_view Rest(size_t from) const { return text_.substr(std::min(from, text_.size())); }

  void Replace(size_t begin, size_t end) {
    made_.append(text_.substr(copied_, begin - copied_)).append(kInstead);
    at_ = copied_ = end;
  }

  // Behind ":port" at `from`, or `from`.
  size_t PortEnd(size_t from) const {
    const std::string_view rest = Rest(from);
    size_t end = rest.starts_with(':') ? 1 : IsEscape(rest, "%3a") ? 3 : 0;
    if (end == 0 || end == rest.size() || !absl::ascii_isdigit(rest[end])) return from;
    while (end < rest.size() && absl::ascii_isdigit(rest[end])) ++end;
    return from + end;
  }

  // 'host', 80 · "host", 80 · host='host', port=80
  bool HasPortBeside(size_t from) const {
    std::string_view rest = Rest(from);
    if (rest.starts_with('\\')) rest.remove_prefix(1);
    if (!rest.starts_with('\'') && !rest.starts_with('"')) return false;
    rest.remove_prefix(1);
    if (!rest.starts_with(',')) return false;
    rest.remove_prefix(1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.starts_with("port=")) rest.remove_prefix(5);
    return !rest.empty() && absl::ascii_isdigit(rest.front());
  }

  // Behind an IPv6 address that begins here and is to be hidden, or at_.
  size_t Ipv6End() const {
    const std::string_view rest = Rest(at_);
    const bool escaped = IsEscape(rest, "%5b");
    const size_t open = rest.starts_with('[') ? 1 : escaped ? 3 : 0;
    const bool within = at_ != begin_ && (IsHostByte(text_[at_ - 1]) || text_[at_ - 1] == ':');
    if (open == 0 && (within || (!absl::ascii_isxdigit(rest.front()) && rest.front() != ':'))) {
      return at_;
    }
    size_t end = open;
    while (end < rest.size() && end < open + INET6_ADDRSTRLEN &&
           (absl::ascii_isxdigit(rest[end]) || rest[end] == ':' || rest[end] == '.')) {
      ++end;
    }
    // The end of a sentence, or of what an error is of.
    while (end > open + 1 &&
           (rest[end - 1] == '.' || (rest[end - 1] == ':' && rest[end - 2] != ':'))) {
      --end;
    }
    const std::string_view address = rest.substr(open, end - open);
    if (address.find(':') == std::string_view::npos || !IsIp(AF_INET6, address)) return at_;
    const bool known = set_.HasHost(LowerCase(address));
    end += at_;
    if (open == 0) return known || HasPortBeside(end) ? end : at_;
    const std::string_view close = Rest(end);
    const size_t bytes = close.starts_with(']') ? 1 : IsEscape(close, "%5d") ? 3 : 0;
    if (bytes == 0) return at_;
    const size_t port = PortEnd(end + bytes);
    return known || port > end + bytes ? port : at_;
  }

  // How much of the word at at_ is the end of an escape: \n, \u0022, %2F.
  size_t EscapeBytes(std::string_view word) const {
    const char before = text_[at_ - 1];
    const auto hex = [&](size_t from, size_t count) {
      if (word.size() < from + count) return false;
      for (size_t i = from; i < from + count; ++i) {
        if (!absl::ascii_isxdigit(word[i])) return false;
      }
      return true;
    };
    if (before == '%') return hex(0, 2) ? 2 : 0;
    if (before != '\\') return 0;
    if (word.front() == 'u') return hex(1, 4) ? 5 : 0;
    return std::string_view("nrtbf").find(word.front()) != std::string_view::npos ? 1 : 0;
  }

  // Behind the path of a socket that follows the scheme at_..`from`, or `from`.
  size_t PathEnd(std::string_view scheme, size_t from) const {
    if (scheme != "unix" && scheme != "ipc") return from;
    if (!Rest(from).starts_with(":/")) return from;
    size_t end = std::min(text_.find_first_of(" \t\r\n\"'\\,;)]}<>", from), text_.size());
    while (text_[end - 1] == ':' || text_[end - 1] == '.') --end;
    return end;
  }

  void Word() {
    size_t end = at_;
    while (end < text_.size() && IsHostByte(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    const size_t escape = at_ == begin_ ? 0 : EscapeBytes(word);
    if (escape == 0) return Named(word, at_, end);
    at_ = begin_ = at_ + escape;
  }

  void Named(std::string_view word, size_t begin, size_t end) {
    if (const size_t path = PathEnd(word, end); path > end) return Replace(begin, path);
    std::string_view host = word;
    while (host.ends_with('.') || host.ends_with('-')) host.remove_suffix(1);
    const size_t host_end = begin + host.size();
    const size_t port = host_end == end ? PortEnd(end) : host_end;
    at_ = end;
    if (host.empty() || host.size() > kMaxHostName) return;
    const bool has_port = port > host_end || HasPortBeside(host_end);
    const bool dotted = host.find('.') != std::string_view::npos;
    const bool in_url = begin >= 2 && text_.substr(begin - 2, 2) == "//";
    if (!has_port && !dotted && !in_url) return;
    const std::string lower = LowerCase(host);
    const bool known = set_.HasHost(lower);
    const bool hides =
        IsIp(AF_INET, host) ? known || has_port : known || (lower == "localhost" && has_port);
    if (hides) Replace(begin, port);
  }

  const std::string_view text_;
  const WorkerSet& set_;
  size_t at_ = 0;
  size_t begin_ = 0;   // a word begins here, whatever stands before
  size_t copied_ = 0;  // of text_, into made_
  std::string made_;
};

}  // namespace

std::string HideAddresses(std::string text, const WorkerSet& set) {
  std::string hidden;
  return AddressHider(text, set).Run(&hidden) ? hidden : text;
}

}  // namespace portico::router
