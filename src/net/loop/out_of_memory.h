// When memory runs out, the request whose allocation failed ends with an error, and the process continues. Only
// std::bad_alloc passes through handlers; nothing else throws there.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace portico::net {

inline constexpr std::string_view kOutOfMemory =
    "the server does not have enough memory for this request at present";

// For destructors: whether this one runs because std::bad_alloc unwinds the stack.
inline bool IsOutOfMemory() { return std::uncaught_exceptions() > 0; }

// Of a handler that std::bad_alloc has ended.
inline void LogOutOfMemory() { LogError("out of memory: a request has ended with an error"); }

// Runs `handle`, which owns an exchange or a call. If memory runs out, what it still owns is destroyed, and so is the
// exchange or the call: that answers kOutOfMemory (503, UNAVAILABLE), or cuts off a stream that has started.
template <typename Handle>
void HandleInMemory(Handle&& handle) {
  try {
    std::forward<Handle>(handle)();
  } catch (const std::bad_alloc&) {
    LogOutOfMemory();
  }
}

}  // namespace portico::net
