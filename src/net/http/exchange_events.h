// The events of one exchange: its request is there, its answer begins, its answer ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/events/recorder.h"
#include "net/http/exchange.h"

namespace portico::net {

// A request of so many bytes has come; `id` is what its client calls it, or empty. Nothing while
// nothing is recorded.
events::Current BeginRequest(std::string_view id, size_t bytes);

// Of POST requests; others are probes. One a exchange, on its shard.
class ExchangeEvents {
 public:
  // The request is whole. What the handler's thread works on, with its X-Request-Id; nothing while
  // nothing is recorded. Who answers it gives it its name.
  events::Current Begin(const HttpRequest& request);

  void OnHead(int status) {
    if (key_ != events::kNoKey) {
      events::Record(events::Event::kWriteStart, key_, events::Home(), {.a = status});
    }
  }
  void OnEnd(size_t bytes) {
    if (key_ != events::kNoKey) {
      events::Record(events::Event::kWriteEnd, key_, events::Home(),
                     {.a = static_cast<int64_t>(bytes)});
    }
  }

 private:
  events::Key key_ = events::kNoKey;
};

}  // namespace portico::net
