// A line of a page of metrics in Prometheus' text form: `name{labels} value [time]`.
#pragma once

#include <optional>
#include <string_view>

namespace portico::router {

struct MetricSample {
  std::string_view name;
  std::string_view labels;  // as they stand between the braces
  double value = 0;
};

// Parts of `line`. Nothing for a comment, and for what is no sample or has no finite value.
std::optional<MetricSample> ReadMetricSample(std::string_view line);

}  // namespace portico::router
