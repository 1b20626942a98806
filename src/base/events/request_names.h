// What requests are called, and what must wait until that is known.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/events/line_writer.h"
#include "base/events/recorder.h"

namespace portico::events {

using TakeLine = absl::FunctionRef<void(const Line& line, std::string_view request_id)>;

// Of one thread. Names of the latest 131,072 requests are kept, over the end of a run: a request
// may last longer.
class RequestNames {
 public:
  // Of the process that made the keys.
  explicit RequestNames(int64_t pid) : pid_(pid) {}

  void Name(Key key, std::string request_id);
  void LeaveOut(Key key);
  void Join(Key stream, Key request);

  static bool IsLeftOut(const std::string& name) { return name == kLeftOut; }
  // Null: not known yet.
  const std::string* Find(Key key) const;
  // The name of a request that nobody has named.
  std::string Made(Key key) const;
  // It looks like one.
  bool IsMade(std::string_view name) const;

 private:
  static constexpr size_t kKept = 65536;              // twice
  static constexpr std::string_view kLeftOut = "\n";  // no name can be that

  struct Generation {
    absl::flat_hash_map<Key, std::string> names;
    absl::flat_hash_map<Key, Key> joined;
  };
  template <typename Map>
  static const typename Map::mapped_type* FindIn(const Map& newer, const Map& older, Key key);
  void Age();
  // That of a stream, as far as it is known.
  Key RequestOf(Key key) const;

  const int64_t pid_;
  Generation newer_;
  Generation older_;
};

// Lines of requests that have no name yet, in their order.
class WaitingLines {
 public:
  static constexpr size_t kMost = 16384;
  static constexpr int64_t kPatience = 2'000'000'000;  // nanoseconds

  void Add(Key key, const Line& line) { lines_.push_back({key, line}); }
  // Gives those whose name is known now, and those that have waited too long or are too many; all
  // of them with `all`.
  void Release(const RequestNames& names, int64_t now, bool all, const TakeLine& take);

 private:
  struct Waiting {
    Key key;
    Line line;
  };
  std::deque<Waiting> lines_;
};

}  // namespace portico::events
