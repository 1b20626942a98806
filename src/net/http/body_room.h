// Room for a request's body as it comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <string>

#include "net/http/body_budget.h"

namespace portico::net {

// simdjson reads up to 64 bytes behind the end of a body.
inline constexpr size_t kBodyPadding = 64;
// A string that grows beyond its room is moved, and to move many megabytes takes a shard ten milliseconds. A body that has
// outgrown this gets room for all that may follow instead, at most kMostRoom at once. It takes no memory before it is written
// to, and the budget counts no more than twice what has come.
inline constexpr size_t kMostMoved = size_t{2} << 20;
inline constexpr size_t kMostRoom = size_t{256} << 20;

// As body->reserve(room), or with `needed` where memory is short. False: there is not enough for that either.
inline bool TakeRoom(std::string* body, size_t room, size_t needed) {
  try {
    body->reserve(room);
    return true;
  } catch (const std::bad_alloc&) {
    // Room that is not written to takes no memory, but a system that does not overcommit has none to promise.
    return room > needed && TakeRoom(body, needed, needed);
  }
}

// Makes room for `more` bytes behind `body`, and the padding. `whole`: the declared length, or the limit where none is declared.
// False: the budget, which may be null, has not got them, or the system. The body is as it was then.
inline bool MakeBodyRoom(std::string* body, size_t more, size_t whole,
                         const std::shared_ptr<BodyBudget>& budget, BodyLease* lease) {
  const size_t needed = body->size() + more + kBodyPadding;
  const size_t most = std::max(needed, whole + kBodyPadding);
  const size_t counted = std::max(lease->taken(), BodyBudget::kSmallBody);
  if (needed > counted && budget != nullptr) {
    if (!lease->Hold(budget, std::min(most, std::max(needed, 2 * counted)))) return false;
  }
  if (needed <= body->capacity()) return true;
  size_t room = std::max(needed, 2 * body->capacity());
  if (room > kMostMoved) room = std::max(room, kMostRoom);
  return TakeRoom(body, std::min(room, most), needed);
}

}  // namespace portico::net
