#include "router/fleet/engine_steps.h"

#include <algorithm>
#include <iterator>

#include "absl/hash/hash.h"
#include "router/fleet/metric_sample.h"

namespace portico::router {
namespace {

constexpr std::string_view kStepPrefix = "vllm:";
constexpr std::string_view kTokenCounters[] = {"vllm:generation_tokens_total",
                                               "vllm:prompt_tokens_total"};
constexpr std::string_view kStepFigures[] = {
    "vllm:iteration_tokens_total_count", "vllm:iteration_tokens_total_sum",
    "vllm:prefix_cache_queries_total",   "vllm:num_preemptions_total",
    "vllm:num_requests_running",         "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",          "vllm:gpu_cache_usage_perc"};

constexpr std::string_view kRequestGauges[] = {"vllm:num_requests_running",
                                               "vllm:num_requests_waiting"};

template <size_t N>
bool IsFigureOf(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

void EngineSteps::Add(std::string_view part) {
  while (!part.empty()) {
    const size_t end = part.find('\n');
    const std::string_view piece = part.substr(0, end);
    if (end != std::string_view::npos && line_.empty() && !skips_) {
      if (piece.size() <= kMaxLine) Line(piece);
    } else {
      skips_ = skips_ || line_.size() + piece.size() > kMaxLine;
      if (!skips_) line_ += piece;
      if (end != std::string_view::npos) EndLine();
    }
    part.remove_prefix(end == std::string_view::npos ? part.size() : end + 1);
  }
}

void EngineSteps::EndLine() {
  if (!skips_) Line(line_);
  skips_ = false;
  line_.clear();
}

bool EngineSteps::known() {
  EndLine();
  return known_;
}

std::optional<uint64_t> EngineSteps::mark() {
  EndLine();
  return stepped_ && busy_ ? std::optional(mark_) : std::nullopt;
}

void EngineSteps::Line(std::string_view line) {
  if (!line.starts_with(kStepPrefix)) return;
  const auto sample = ReadMetricSample(line);
  if (!sample.has_value()) return;
  const bool counts_tokens = IsFigureOf(sample->name, kTokenCounters);
  if (!counts_tokens && !IsFigureOf(sample->name, kStepFigures)) return;
  known_ = known_ || counts_tokens;
  stepped_ = stepped_ || (counts_tokens && sample->value > 0);
  busy_ = busy_ || (sample->value > 0 && IsFigureOf(sample->name, kRequestGauges));
  mark_ += absl::HashOf(sample->name, sample->labels, sample->value);
}

}  // namespace portico::router
