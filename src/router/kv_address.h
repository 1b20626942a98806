// Where a worker publishes the events of its KV cache over ZMQ, as users and servers name it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/json.h"

namespace portico::router {

struct KvAddress {
  std::string
      endpoint;  // "tcp://host:port", where host may be a wildcard: the worker's own; or "ipc://path"
  std::string topic;
  std::string replay;  // likewise; empty: lost events cannot be had
  int ranks = 1;       // data-parallel; rank r publishes and replays r ports higher

  bool empty() const { return endpoint.empty(); }
  bool operator==(const KvAddress&) const = default;
};

// An endpoint, or what SGLang and vLLM take as --kv-events-config, with `dp_size` beside: as a string, or as an object.
// INVALID_ARGUMENT names the member.
StatusOr<KvAddress> ReadKvAddress(const Json& value);
StatusOr<KvAddress> ParseKvAddress(std::string_view text);

// Of an answer to SGLang's /server_info; empty: it publishes none to which one could connect. The hosts are wildcards.
KvAddress KvAddressOfServer(const Json& info);

// The endpoint of a rank, of a worker at `host` (IPv6 without brackets).
std::string KvEndpointOf(const std::string& endpoint, const std::string& host, int rank);

}  // namespace portico::router
