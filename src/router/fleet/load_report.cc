#include "router/fleet/load_report.h"

#include <algorithm>
#include <string>

#include "router/fleet/metric_sample.h"
#include "text/json.h"

namespace portico::router {
namespace {

constexpr size_t kMaxRanks = 4096;
// The sum of all ranks is still a count of 64 bits.
constexpr double kMostOfAnything = 1e15;

bool IsFigure(double number) { return number >= 0 && number <= kMostOfAnything; }

// -1 for what is missing, no number, or no count.
double NumberOf(const Json& object, std::string_view key) {
  const Json* const value = object.Find(key);
  if (value == nullptr || !value->is_number()) return -1;
  const double number = value->as_double();
  return IsFigure(number) ? number : -1;
}

void Add(double more, double* sum) {
  if (more >= 0) *sum = std::max(*sum, 0.0) + more;
}

// The value of a sample if it is of that name, and a count.
std::optional<double> FigureOf(const std::optional<MetricSample>& sample, std::string_view name) {
  if (!sample.has_value() || sample->name != name || !IsFigure(sample->value)) return std::nullopt;
  return sample->value;
}

}  // namespace

std::optional<ReportedLoad> ReadLoads(std::string_view body, TimePoint at, int only) {
  const auto parsed = Json::Parse(body);
  if (!parsed.ok()) return std::nullopt;
  const Json* ranks = parsed->is_array() ? &*parsed : parsed->Find("loads");
  if (ranks == nullptr || !ranks->is_array()) return std::nullopt;
  ReportedLoad load;
  double usage = -1;
  double hits = -1;
  size_t count = 0;
  for (const Json& rank : ranks->as_array()) {
    if (!rank.is_object() || ++count > kMaxRanks) return std::nullopt;
    if (const double own = NumberOf(rank, "dp_rank"); only >= 0 && own >= 0 && own != only)
      continue;
    const double waiting = NumberOf(rank, "num_waiting_reqs");
    double running = NumberOf(rank, "num_running_reqs");
    if (const double all = NumberOf(rank, "num_reqs"); running < 0 && all >= 0) {
      running = std::max(all - std::max(waiting, 0.0), 0.0);
    }
    Add(running, &load.running_requests);
    Add(waiting, &load.waiting_requests);
    const double used = NumberOf(rank, "num_used_tokens");
    Add(used >= 0 ? used : NumberOf(rank, "num_tokens"), &load.used_tokens);
    Add(NumberOf(rank, "max_total_num_tokens"), &load.total_tokens);
    Add(NumberOf(rank, "gen_throughput"), &load.throughput);
    Add(NumberOf(rank, "token_usage"), &usage);
    Add(NumberOf(rank, "cache_hit_rate"), &hits);
  }
  if (count == 0 || (load.running_requests < 0 && load.waiting_requests < 0)) return std::nullopt;
  if (usage >= 0) load.token_usage = std::min(usage / static_cast<double>(count), 1.0);
  if (hits >= 0) load.hit_rate = std::min(hits / static_cast<double>(count), 1.0);
  load.at = at;
  return load;
}

std::optional<ReportedLoad> ReadLoadMetrics(std::string_view text, TimePoint at) {
  ReportedLoad load;
  double usage = -1;
  int engines = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with("vllm:")) continue;
    const auto sample = ReadMetricSample(line);
    if (const auto running = FigureOf(sample, "vllm:num_requests_running")) {
      Add(*running, &load.running_requests);
    } else if (const auto waiting = FigureOf(sample, "vllm:num_requests_waiting")) {
      Add(*waiting, &load.waiting_requests);
    } else if (const auto share = FigureOf(sample, "vllm:kv_cache_usage_perc")) {
      Add(*share, &usage);
      ++engines;
    }
  }
  if (load.running_requests < 0 && load.waiting_requests < 0) return std::nullopt;
  if (engines > 0) load.token_usage = std::min(usage / engines, 1.0);
  load.at = at;
  return load;
}

}  // namespace portico::router
