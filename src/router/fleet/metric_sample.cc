#include "router/fleet/metric_sample.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace portico::router {

std::optional<MetricSample> ReadMetricSample(std::string_view line) {
  if (line.starts_with('#')) return std::nullopt;
  const size_t end = line.find_first_of("{ ");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  MetricSample sample{.name = line.substr(0, end), .labels = {}};
  line.remove_prefix(end);
  if (line.front() == '{') {
    const size_t close = line.rfind('}');
    if (close == std::string_view::npos) return std::nullopt;
    sample.labels = line.substr(1, close - 1);
    line.remove_prefix(close + 1);
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  line = line.substr(0, line.find_first_of(" \r"));
  const auto read = std::from_chars(line.data(), line.data() + line.size(), sample.value);
  if (read.ec != std::errc() || read.ptr != line.data() + line.size()) return std::nullopt;
  if (!std::isfinite(sample.value)) return std::nullopt;
  return sample;
}

}  // namespace portico::router
