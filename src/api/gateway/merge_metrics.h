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
  static constexpr size_t kMaxLine = 64 << 10;  // longer ones are left out

  // Adds the answer of one worker. Lines that break the format are left out. A label "worker" of its own is called
  // "exported_worker".
  void Add(std::string_view worker, std::string_view text);
  // The same in parts: takes whole lines from the front of `text`, as many as begin within `bytes`. Each part but the
  // first of an answer follows the one before it.
  void AddPart(std::string_view worker, std::string_view* text, size_t bytes);
  void EndAnswer() { family_ = {}; }
  std::string Text() const;

 private:
  struct Family {
    std::string help;  // its line, of the worker that gave one first
    std::string type;  // likewise
    std::string samples;
  };
  Family& Of(std::string_view name);
  void AddLine(std::string_view worker, std::string_view line);

  std::string family_;              // that the lines of this answer are of
  std::vector<std::string> names_;  // in order
  absl::flat_hash_map<std::string, Family> families_;
};

}  // namespace portico::api
