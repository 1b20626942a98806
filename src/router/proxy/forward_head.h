// Heads that pass through the gateway: what belongs to a connection and not to the message stays
// behind (RFC 9110, 7.6.1), and so does what names a worker.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/http/exchange.h"
#include "net/http/response_parser.h"
#include "router/worker.h"

namespace portico::router {

// Names in lower case.
bool IsHopByHop(std::string_view name);

// Whether a header shows one of the keys: `authorization` as a bearer's, or `x-api-key`. The name in lower case.
bool ShowsKey(std::string_view name, std::string_view value, std::span<const std::string> keys);

// The head of the request to `worker`: request line, headers and the empty line.
struct ForwardedHead {
  const net::HttpRequest& request;
  const Worker& worker;
  std::string_view key = {};  // for workers without a key of their own; may be empty
  std::span<const std::string> kept_keys = {};  // a header that shows one is left out
  std::string_view request_id =
      {};  // sent as x-request-id where the request has none; may be empty
  bool has_body = false;
  int64_t body_bytes = 0;  // -1: not known, it comes in chunks
};
std::string MakeRequestHead(const ForwardedHead& forwarded);

// The answer's status, type and headers as the client gets them, without a body.
net::HttpResponse MakeResponseHead(net::ResponseHead& head, const Worker& worker);

// The path as it is written in a request line: what a client may send unescaped stays, the rest is
// escaped. `path` as that of a net::HttpRequest: unescaped but for slashes.
void AppendPath(std::string_view path, std::string* out);

// Whether a segment of such a path is `.` or `..`, which a worker, or a proxy before it, may resolve to
// another path than the one that was judged here. Slashes may be escaped, and backslashes are taken for them.
bool HasDotSegment(std::string_view path);

}  // namespace portico::router
