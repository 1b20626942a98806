// Whole answers whose bytes take too long to put together on a shard.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "api/call.h"
#include "api/context.h"

namespace portico::api {

// So many bytes are copied in about half a millisecond, most of it for memory that is new.
inline constexpr size_t kLongAnswer = 512 << 10;
// So many numbers are spelled in half a millisecond.
inline constexpr size_t kFewNumbers = 1 << 14;

// Runs `encode` on the CPU pool and then `call.SendBody(body)` on its shard, unless the call has left the table meanwhile.
// `encode` touches nothing of the call. False: the pool is full, and `encode` is gone.
template <typename Started>
bool EncodeOnPool(Started& call, ShardContext& shard, absl::AnyInvocable<std::string()> encode) {
  return shard.api.pool->Submit(
      [encode = std::move(encode), serial = call.serial, &shard]() mutable {
        auto body = std::make_shared<std::string>(encode());
        encode = nullptr;  // what it holds takes long to free, too
        shard.shard.Post([body = std::move(body), serial, &shard] {
          Call* found = shard.calls.Find(serial);
          if (found != nullptr) static_cast<Started*>(found)->SendBody(std::move(*body));
        });
      });
}

}  // namespace portico::api
