#include "net/http/exchange_events.h"

#include <string>

namespace portico::net {
namespace {

// What can stand in a line of a log, too.
std::string Plain(std::string_view id) {
  constexpr size_t kMost = 128;
  std::string plain;
  for (const char c : id.substr(0, kMost)) {
    if (c > ' ' && c < 0x7f) plain.push_back(c);
  }
  return plain;
}

}  // namespace

events::Current BeginRequest(std::string_view id, size_t bytes) {
  if (!events::On()) return {};
  events::Current current{events::NextKey(), Plain(id)};
  events::Record(events::Event::kSocketReceived, current.key, events::Home(),
                 {.a = static_cast<int64_t>(bytes)});
  return current;
}

events::Current ExchangeEvents::Begin(const HttpRequest& request) {
  if (!events::On() || request.method != "POST") return {};
  events::Current current = BeginRequest(request.Header("x-request-id"), request.body.size());
  key_ = current.key;
  return current;
}

}  // namespace portico::net
