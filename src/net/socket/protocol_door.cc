#include "net/socket/protocol_door.h"

#include <memory>
#include <utility>

#include "net/http/http1_session.h"
#include "net/http2/http2_session.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// No HTTP/1 request begins like this, so there is no need to wait for the rest.
constexpr size_t kEnoughOfPreface = 14;

bool IsLetter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

Protocol RecognizeHttp1(std::string_view bytes) {
  // Empty lines before a request are allowed (RFC 9112, 2.2).
  while (bytes.substr(0, 2) == "\r\n") bytes.remove_prefix(2);
  if (bytes.empty() || bytes == "\r") return Protocol::kUndecided;
  if (!IsLetter(bytes.front())) return Protocol::kUnknown;
  size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return Protocol::kUndecided;
  std::string_view line = bytes.substr(0, end);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  size_t space = line.find_last_of(' ');
  if (space == std::string_view::npos) return Protocol::kUnknown;
  return line.substr(space + 1, 5) == "HTTP/" ? Protocol::kHttp1 : Protocol::kUnknown;
}

}  // namespace

Protocol RecognizeProtocol(std::string_view first_bytes) {
  std::string_view seen = first_bytes.substr(0, kEnoughOfPreface);
  if (seen != kHttp2Preface.substr(0, seen.size())) return RecognizeHttp1(first_bytes);
  return seen.size() == kEnoughOfPreface ? Protocol::kHttp2 : Protocol::kUndecided;
}

void ProtocolDoor::OnBytes(std::string_view bytes) {
  if (!first_bytes_.empty()) {
    first_bytes_.append(bytes);
    bytes = first_bytes_;
  }
  const ServerOptions& options = connection_.shard().options;
  Protocol protocol = RecognizeProtocol(bytes);
  // A request line beyond all bounds is HTTP/1's to refuse.
  if (protocol == Protocol::kUndecided && bytes.size() > options.max_head_bytes) {
    protocol = Protocol::kHttp1;
  }
  switch (protocol) {
    case Protocol::kUndecided:
      if (first_bytes_.empty()) first_bytes_ = bytes;
      connection_.SetWait(Wait::kHead);
      return;
    case Protocol::kUnknown:
      connection_.CloseWhenSent();
      return;
    case Protocol::kHttp2:
      if (options.http2.enabled) {
        Enter(std::make_unique<Http2Session>(connection_), bytes);
      } else {
        connection_.CloseWhenSent();
      }
      return;
    case Protocol::kHttp1:
      connection_.SetWait(Wait::kIdle);
      Enter(std::make_unique<Http1Session>(connection_), bytes);
      return;
  }
}

void ProtocolDoor::Enter(std::unique_ptr<Session> session, std::string_view bytes) {
  Session& entered = *session;
  connection_.BecomeSession(std::move(session));
  entered.OnBytes(bytes);
}

}  // namespace portico::net
