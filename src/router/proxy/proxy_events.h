// What a profile is told of one request on its way through the gateway: its calls as hops to workers,
// whose name is "worker:" and their id. A call that goes on beside others has a copy.
#pragma once

#include <string>
#include <string_view>

#include "base/events/recorder.h"

namespace portico::router {

class ProxyEvents {
 public:
  // `request_id` goes on to the worker as X-Request-Id, by which its own events are found.
  void Begin(const std::string& request_id);
  void Sent(std::string_view worker);
  void Failed();     // the attempt
  void FirstByte();  // of the worker's answer
  void Ended(int status);
  // For what is answered in this process.
  events::Current current() const { return {key_, request_id_}; }

 private:
  events::Key key_ = events::kNoKey;
  events::Label worker_ = 0;
  std::string request_id_;  // while a profile runs
};

}  // namespace portico::router
