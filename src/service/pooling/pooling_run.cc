#include "service/pooling/pooling_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace portico {

Status TakeRids(ActiveRids& rids, PoolingPlan* plan) {
  std::vector<RidLease> leases;
  leases.reserve(plan->rids.size());
  for (const std::string& rid : plan->rids) {
    PORTICO_ASSIGN_OR_RETURN(leases.emplace_back(), rids.Take(rid));
  }
  plan->rid_leases = std::move(leases);
  return OkStatus();
}

StatusOr<std::unique_ptr<PoolingRun>> PoolingRun::Start(const ServingModel& model, PoolingHub& hub,
                                                        ServiceMetrics& metrics, PoolingPlan plan,
                                                        PoolingRunSink* sink) {
  std::unique_ptr<PoolingRun> run(
      new PoolingRun(model, hub, metrics.Of(model), std::move(plan), sink));
  const Status status = run->Submit();
  if (!status.ok()) {
    run->metrics_.refused.Add();
    run->LogOutcome(MessageOf(status));
    return status;
  }
  return run;
}

PoolingRun::PoolingRun(const ServingModel& model, PoolingHub& hub, ModelMetrics& metrics,
                       PoolingPlan plan, PoolingRunSink* sink)
    : model_(model),
      hub_(hub),
      metrics_(metrics),
      sink_(sink),
      rids_(std::move(plan.rids)),
      rid_leases_(std::move(plan.rid_leases)),
      arrival_(plan.arrival),
      takes_sparse_(plan.takes_sparse),
      least_values_(plan.least_values),
      texts_(std::move(plan.texts)) {}

PoolingRun::~PoolingRun() {
  if (running_ == 0) return;
  LogOutcome("the client left");
  hub_.Remove(first_);
  Abort();
  metrics_.aborted.Add(running_);
}

void PoolingRun::Abort() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].stream == 0) model_.engine->Abort(first_ + i, hub_.shard());
  }
}

bool PoolingRun::HasRid(std::string_view rid) const {
  return std::find(rids_.begin(), rids_.end(), rid) != rids_.end();
}

Status PoolingRun::Submit() {
  const size_t count = texts_.size();
  first_ = NextStreamIds(count);
  std::vector<PoolingRequest> requests(count);
  for (size_t i = 0; i < count; ++i) {
    PoolingRequest& request = requests[i];
    request.stream = first_ + i;
    if (!rids_.empty()) request.rid = rids_[std::min(i, rids_.size() - 1)];
    request.tokens = std::move(texts_[i].tokens);
    request.token_types = std::move(texts_[i].token_types);
    request.lora_path = std::move(texts_[i].lora_path);
    request.data_parallel_rank = texts_[i].data_parallel_rank;
  }
  texts_ = {};
  hub_.Add(first_, count, this);
  Status status = model_.engine->SubmitPooling(std::move(requests), &hub_);
  if (!status.ok()) {
    hub_.Remove(first_);
    return status;
  }
  outputs_.resize(count);
  running_ = count;
  return OkStatus();
}

void PoolingRun::OnOutput(PoolingOutput& output, TimePoint now) {
  if (output.sparse && !takes_sparse_ && output.finish == FinishReason::kStop) {
    output.finish = FinishReason::kError;
    output.error =
        Error(StatusCode::kFailedPrecondition,
              "this model gives sparse vectors, which can only be asked for as they are, "
              "from /v1/embeddings and /encode");
  }
  if (output.finish == FinishReason::kStop && output.values.size() < least_values_) {
    output.finish = FinishReason::kError;
    output.error =
        Error(StatusCode::kInternal, fmt::format("the engine gave {} values of a text that has {}",
                                                 output.values.size(), least_values_));
  }
  metrics_.OnFinished(output.finish, now - arrival_);
  const bool first_to_fail = status_.ok() && output.finish != FinishReason::kStop;
  if (first_to_fail && output.finish == FinishReason::kAbort) {
    status_ = Error(StatusCode::kAborted, "the request was aborted");
  } else if (first_to_fail) {
    status_ = output.error.ok() ? Error(StatusCode::kInternal, "the engine failed") : output.error;
  }
  const auto index = static_cast<size_t>(output.stream - first_);
  outputs_[index] = std::move(output);
  if (--running_ == 0) return Report(now);
  if (first_to_fail) Abort();
}

void PoolingRun::Report(TimePoint now) {
  hub_.Remove(first_);
  LogOutcome(status_.ok() ? "ended" : MessageOf(status_));
  // Before the client can know that its request has ended and use the rids again.
  rid_leases_.clear();
  if (!status_.ok()) return sink_->OnPooled(status_);
  PoolingResult result;
  for (const PoolingOutput& output : outputs_) result.prompt_tokens += output.prompt_tokens;
  result.outputs = std::move(outputs_);
  result.rids = std::move(rids_);
  result.took = now - arrival_;
  sink_->OnPooled(std::move(result));
}

void PoolingRun::LogOutcome(std::string_view end) const {
  if (!model_.log_requests) return;
  LogInfo("request {}: {} after {:.1f} ms: {} texts", rids_.empty() ? "-" : rids_.front(), end,
          Seconds(Clock::now() - arrival_) * 1e3, outputs_.size());
}

}  // namespace portico
