// Where memory lacks: the request whose work asked for too much ends with an error, and the process goes on. Only
// std::bad_alloc passes through handlers; nothing else throws there.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace portico::net {

inline constexpr std::string_view kOutOfMemory =
    "the server has not enough memory for this request now";

// Asked in a destructor: it is one of those that std::bad_alloc runs on its way.
inline bool IsOutOfMemory() { return std::uncaught_exceptions() > 0; }

// Runs `handle`, which owns an exchange or a call. Where memory lacks, what it has not handed on is destroyed, and with it
// the exchange or the call: that answers kOutOfMemory (503, UNAVAILABLE), or cuts a stream that has begun.
template <typename Handle>
void HandleInMemory(Handle&& handle) {
  try {
    std::forward<Handle>(handle)();
  } catch (const std::bad_alloc&) {
    LogError("not enough memory: a request has ended with an error");
  }
}

}  // namespace portico::net
