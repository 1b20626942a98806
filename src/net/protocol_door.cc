#include "net/protocol_door.h"

#include <memory>
#include <utility>

#include "net/http1_session.h"

namespace portico::net {
namespace {

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// No HTTP/1 request begins like this, so there is no need to wait for the rest.
constexpr size_t kEnoughOfPreface = 14;

}  // namespace

Protocol RecognizeProtocol(std::string_view first_bytes) {
  std::string_view seen = first_bytes.substr(0, kEnoughOfPreface);
  if (seen != kHttp2Preface.substr(0, seen.size())) return Protocol::kHttp1;
  return seen.size() == kEnoughOfPreface ? Protocol::kHttp2 : Protocol::kUndecided;
}

void ProtocolDoor::OnBytes(std::string_view bytes) {
  if (!first_bytes_.empty()) {
    first_bytes_.append(bytes);
    bytes = first_bytes_;
  }
  switch (RecognizeProtocol(bytes)) {
    case Protocol::kUndecided:
      if (first_bytes_.empty()) first_bytes_ = bytes;
      connection_.SetWait(Wait::kHead);
      return;
    case Protocol::kHttp2:
      connection_.CloseWhenSent();
      return;
    case Protocol::kHttp1: {
      connection_.SetWait(Wait::kIdle);
      auto session = std::make_unique<Http1Session>(connection_);
      Http1Session& http1 = *session;
      connection_.BecomeSession(std::move(session));
      http1.OnBytes(bytes);
      return;
    }
  }
}

}  // namespace portico::net
