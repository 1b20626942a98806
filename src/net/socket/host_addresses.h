// Where a name leads, for those who must know before they connect.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/loop/shard.h"

namespace portico::net {

// An address that the public internet routes (IANA's registries of special addresses, RFC 6890): not one
// of this machine, of a private network or a link, of a cloud's metadata, and none that stands for an
// address of IPv4 inside one of IPv6. False for what is no address.
bool IsPublicAddress(std::string_view address);

// On a shard. Destroying it drops the question.
class HostLookup {
 public:
  // The addresses of a host, which may be an address itself (IPv6 without brackets), in the system's
  // order; UNAVAILABLE if there is none. Never calls from within this; `done` may destroy this.
  static std::unique_ptr<HostLookup> Start(
      Shard& shard, const std::string& host,
      std::function<void(StatusOr<std::vector<std::string>>)> done);
  virtual ~HostLookup() = default;
};

}  // namespace portico::net
