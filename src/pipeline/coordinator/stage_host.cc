#include <fmt/format.h>

#include <algorithm>

#include "pipeline/coordinator/request_run.h"

namespace portico::pipeline {
namespace {

// Within a process a hop takes microseconds; before a stage that is full, seconds.
std::vector<double> HopSecondsBounds() {
  return {1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};
}

Histogram& HopHistogram(std::string_view source, std::string_view target, Registry* registry) {
  return registry->AddHistogram(
      "portico_hop_seconds",
      "From the sending of a part to the time when the stage behind, or the client, takes it.",
      HopSecondsBounds(), {{"source", std::string(source)}, {"target", std::string(target)}});
}

}  // namespace

StageHost::StageHost(const StageConfig& config, std::unique_ptr<Stage> stage, CpuPool* shared,
                     Registry* registry)
    : config_(config),
      label_(events::LabelOf(config.name)),
      stage_(std::move(stage)),
      shared_(shared),
      parts_(registry->AddCounter("portico_stage_parts_total", "Parts that stages have taken.",
                                  {{"stage", config.name}})),
      seconds_(registry->AddHistogram("portico_stage_seconds",
                                      "From a request's first part in a stage to its end there.",
                                      RequestSecondsBounds(), {{"stage", config.name}})),
      admitted_gauge_(registry->AddGauge("portico_stage_requests",
                                         "Requests that use or will use a stage.",
                                         {{"stage", config.name}})) {
  if (config.terminal) hop_to_client_ = &HopHistogram(config.name, kClientName, registry);
  if (!stage_->own_threads()) return;
  const auto threads = static_cast<size_t>(std::max(1, stage_->max_running()));
  own_ = std::make_unique<CpuPool>(threads, threads * 64, config.name);
}

void StageHost::AddHop(std::string_view source, Registry* registry) {
  hops_.emplace_back(source, &HopHistogram(source, config_.name, registry));
}

Histogram* StageHost::HopFrom(std::string_view source) const {
  const auto hop = std::find_if(hops_.begin(), hops_.end(),
                                [source](const auto& one) { return one.first == source; });
  return hop->second;  // every edge of the graph has one
}

Status StageHost::Admit() {
  const MutexLock lock(&mutex_);
  const int most = stage_->max_running();
  if (most > 0 && admitted_ >= most + config_.max_queued) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("stage `{}` is full: {} requests wait for it", config_.name,
                             config_.max_queued));
  }
  ++admitted_;
  admitted_gauge_.Set(admitted_);
  return OkStatus();
}

void StageHost::Dismiss() {
  const MutexLock lock(&mutex_);
  --admitted_;
  admitted_gauge_.Set(admitted_);
}

bool StageHost::Enter(std::shared_ptr<RequestRun> run, size_t node) {
  const int most = stage_->max_running();
  if (most == 0) return true;
  const MutexLock lock(&mutex_);
  if (running_ < most) {
    ++running_;
    return true;
  }
  waiting_.emplace_back(std::move(run), node);
  return false;
}

void StageHost::Leave() {
  if (stage_->max_running() == 0) return;
  std::vector<std::shared_ptr<RequestRun>>
      asked;  // the last of a run goes without the lock: its end needs it
  const MutexLock lock(&mutex_);
  while (!waiting_.empty()) {
    auto [weak, node] = std::move(waiting_.front());
    waiting_.pop_front();
    std::shared_ptr<RequestRun> run = asked.emplace_back(weak.lock());
    if (run == nullptr || run->over()) continue;
    // The place is handed on. Not on this thread: its caller holds another request's lock.
    CpuPool::Task task = [run, at = node] { run->Entered(at); };
    if (shared_->Submit(std::move(task))) return;
  }
  --running_;
}

}  // namespace portico::pipeline
