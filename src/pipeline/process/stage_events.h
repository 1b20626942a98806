// What a stage process tells a profile of one request in one of its stages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/events/recorder.h"
#include "pipeline/part.h"
#include "pipeline/request.h"

namespace portico::pipeline {

// A stage and those that it may send to; "coordinator" is the client's end.
struct StageLabels {
  StageLabels(std::string_view name, const std::vector<std::string>& targets);

  events::Label stage;
  std::vector<events::Label> next;
};

// Took() and Sent() on one thread each, or under a lock each.
class StageEvents {
 public:
  StageEvents(const StageLabels* labels, const Request& request);

  void Took(const std::string& source, const Part& part);
  void Sent(const Part& part);
  void Completed() const;

 private:
  const StageLabels& labels_;
  const events::Key key_;
  const std::string name_;
  std::map<std::string, int64_t> taken_;  // parts, by source
  int64_t sent_ = 0;
};

}  // namespace portico::pipeline
