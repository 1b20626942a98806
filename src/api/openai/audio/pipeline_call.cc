#include "api/openai/audio/pipeline_call.h"

#include <fmt/format.h>

#include <string>

#include "api/reply.h"

namespace portico::api::openai {

Status PipelineCall::Start(pipeline::Request request) {
  PORTICO_ASSIGN_OR_RETURN(pipeline::Pipeline * pipeline, ThePipeline(shard_.api));
  rid = request.id;
  auto wake = [address = address_, &shard = shard_] {
    shard.shard.Post([address, &shard] {
      Call* call = shard.calls.Find(*address);
      if (call != nullptr) static_cast<PipelineCall*>(call)->Pump();
    });
  };
  PORTICO_ASSIGN_OR_RETURN(call_, pipeline->Submit(std::move(request), std::move(wake)));
  return OkStatus();
}

void PipelineCall::Abort() {
  if (done_) return;
  done_ = true;
  call_.reset();
  exchange_->NoteAbort();
  OnDone(Error(StatusCode::kCancelled, "the request was aborted"));
  if (!cutting_) Leave();
}

void PipelineCall::CutWhenSent() {
  cutting_ = true;
  exchange_->CallWhenBelow(0, [this] {
    exchange_->Cut();
    Leave();
  });
}

void PipelineCall::Pump() {
  while (!done_) {
    if (exchange_->unsent_bytes() >= kUnsentBytes) {
      return exchange_->CallWhenBelow(kUnsentBytes / 2, [this] { Pump(); });
    }
    pipeline::Call::Taken taken = call_->Take(/*max_parts=*/16);
    for (pipeline::Part& part : taken.parts) {
      if (!done_) OnPart(std::move(part));
    }
    if (done_) return;
    if (taken.ended) {
      done_ = true;
      OnDone(taken.status);
      if (!cutting_) Leave();
      return;
    }
    if (taken.parts.empty()) return OnPause();
  }
}

void LaunchPipeline(std::unique_ptr<PipelineCall> call, pipeline::Request request,
                    ShardContext& shard) {
  const Status status = call->Start(std::move(request));
  if (!status.ok()) {
    const std::unique_ptr<net::Exchange> refused = call->TakeExchange();
    return ReplyError(*refused, shard.api, status);
  }
  const auto address = call->address_;
  *address = shard.calls.Add(std::move(call));
}

StatusOr<pipeline::Pipeline*> ThePipeline(const ApiContext& api) {
  if (!api.models->ready()) {
    return Error(StatusCode::kUnavailable, "the server is starting: try again in a moment");
  }
  if (api.pipeline != nullptr) return api.pipeline;
  return Error(StatusCode::kUnimplemented,
               "this server has no speech pipeline; start it as `portico omni serve`, or with "
               "--speech");
}

StatusOr<pipeline::Pipeline*> PipelineFor(const ApiContext& api, pipeline::Task task) {
  PORTICO_ASSIGN_OR_RETURN(pipeline::Pipeline * found, ThePipeline(api));
  PORTICO_RETURN_IF_ERROR(found->CheckServes(task));
  return found;
}

Status NoSuchModel(const ApiContext& api, std::string_view name, bool own) {
  std::string there;
  for (const ServingModel* model : api.models->models()) {
    there.append(there.empty() ? "" : ", ").append(model->id);
  }
  if (own) there.append(there.empty() ? "" : ", ").append(api.pipeline->config().name);
  return Error(StatusCode::kNotFound,
               fmt::format("The model `{:.128}` does not exist; this server has: {}; leave `model` "
                           "out, or start the server with --accept-any-model",
                           name, there),
               "model", "model_not_found");
}

}  // namespace portico::api::openai
