// What Kubernetes says of pods (API core/v1), as far as workers need it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace portico::router {

struct Pod {
  std::string uid;
  std::string name;
  std::string space;  // its namespace
  std::string ip;     // empty: it has none yet
  bool ready = false;
  bool leaving = false;    // it is being deleted, and may still finish what it does
  int bootstrap_port = 0;  // of the annotation sglang.ai/bootstrap-port; 0: none
};

// One page of GET …/pods.
struct PodPage {
  std::vector<Pod> pods;
  std::string version;  // from which a watch goes on
  std::string more;     // the token of the next page; empty: this is the last
};
StatusOr<PodPage> ReadPodPage(std::string_view body);

// One line of GET …/pods?watch=true.
struct PodEvent {
  enum class Kind { kThere, kGone, kBookmark, kExpired, kError };
  Kind kind = Kind::kError;
  Pod pod;
  std::string version;
  std::string message;  // of an error
};
StatusOr<PodEvent> ReadPodEvent(std::string_view line);

}  // namespace portico::router
