// Prometheus text of many workers as one: each sample gets the worker's id as a label, and the samples of a metric
// stand together under one HELP and TYPE, as the text format (version 0.0.4) asks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace portico::api {

class MergedMetrics {
 public:
  // Adds the answer of one worker. Lines that break the format are left out. A label "worker" of its own is called
  // "exported_worker".
  void Add(std::string_view worker, std::string_view text);
  std::string Text() const;

 private:
  struct Family {
    std::string help;  // its line, of the worker that gave one first
    std::string type;  // likewise
    std::string samples;
  };
  Family& Of(std::string_view name);

  std::vector<std::string> names_;  // in order
  absl::flat_hash_map<std::string, Family> families_;
};

}  // namespace portico::api
