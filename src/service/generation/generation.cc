#include "service/generation/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/counted.h"
#include "base/events/recorder.h"
#include "base/log.h"
#include "service/generation/generation_choice.h"
#include "service/generation/generation_pool_link.h"
#include "service/plan/capability_checks.h"

namespace portico {
namespace {

// Engines that stop by themselves must know the stop strings.
std::shared_ptr<const RequestExtras> WithStops(std::shared_ptr<const RequestExtras> extras,
                                               const StopStrings* stops) {
  if (stops == nullptr) return extras;
  auto more = extras == nullptr ? std::make_shared<RequestExtras>()
                                : std::make_shared<RequestExtras>(*extras);
  more->stop = stops->texts();
  return more;
}

// No two answers meet in the same room: one for each prompt, and the rooms of a further choice of each come behind
// those of all prompts.
std::shared_ptr<const RequestExtras> OfPrompt(const std::shared_ptr<const RequestExtras>& extras,
                                              int32_t prompt, int32_t prompts) {
  if (prompts == 1 || extras == nullptr || !extras->bootstrap_room) return extras;
  auto own = std::make_shared<RequestExtras>(*extras);
  *own->bootstrap_room += prompt;
  own->bootstrap_room_step = prompts;
  return own;
}

// What a profile calls the request and its stream; kNoKey while none runs.
events::Key BeginEvents(StreamId stream, std::string_view rid, events::Key* request) {
  if (!events::On()) return events::kNoKey;
  if (*request == events::kNoKey) {
    const events::Current& current = events::OnThread();
    *request = current.key != events::kNoKey ? current.key : events::NextKey();
    events::Name(*request, current.request_id.empty() ? rid : current.request_id);
  }
  events::Join(events::StreamKey(stream), *request);
  events::Record(events::Event::kStageHopSent, *request, events::kFrontend,
                 {.peer = events::kEngine});
  return *request;
}

std::string_view LogName(const GenerationPlan& plan) {
  if (!plan.options.rid.empty()) return plan.options.rid;
  return plan.log_name.empty() ? "-" : std::string_view(plan.log_name);
}

size_t PromptTokens(const GenerationPlan& plan) {
  size_t tokens = 0;
  for (const GenerationPlan::Prompt& prompt : plan.prompts) tokens += prompt.ids->size();
  return tokens;
}

}  // namespace

Status TakeRids(ActiveRids& rids, GenerationPlan* plan) {
  PORTICO_ASSIGN_OR_RETURN(plan->rid_lease, rids.Take(plan->options.rid));
  return OkStatus();
}

StatusOr<std::unique_ptr<Generation>> Generation::Start(const ServingModel& model, StreamHub& hub,
                                                        ServiceMetrics& metrics,
                                                        GenerationPlan&& plan, TextSink* sink,
                                                        CpuPool* pool) {
  const EngineInfo& engine = model.engine->info();
  PORTICO_RETURN_IF_ERROR(
      CheckCapabilities(engine, plan.constraint.get(), plan.extras.get(), plan.priority));
  if (plan.options.logprobs) {
    PORTICO_RETURN_IF_ERROR(CheckLogprobs(engine, "logprobs", plan.prompt_logprobs_start >= 0));
  }
  std::unique_ptr<Generation> generation(
      new Generation(model, hub, metrics.Of(model), std::move(plan), sink, pool));
  generation->LogParameters();
  const Status status = generation->SubmitAll();
  if (!status.ok()) {
    generation->metrics_.refused.Add();
    generation->LogOutcome(MessageOf(status));
    generation->running_ = 0;
    return status;
  }
  return generation;
}

Generation::Generation(const ServingModel& model, StreamHub& hub, ModelMetrics& metrics,
                       GenerationPlan&& plan, TextSink* sink, CpuPool* pool)
    : model_(model),
      hub_(hub),
      metrics_(metrics),
      plan_(std::move(plan)),
      sink_(sink),
      pool_(pool),
      reports_(plan_.prompts.size()) {}

Generation::~Generation() {
  LeavePool();
  if (running_ > 0) LogOutcome("the client left");
  for (auto& choice : choices_) {
    if (choice->finished) continue;
    hub_.Remove(choice->stream);
    model_.engine->Abort(choice->stream, hub_.shard());
    metrics_.aborted.Add(1);
  }
}

void Generation::Abort() {
  for (auto& choice : choices_) {
    if (!choice->finished) model_.engine->Abort(choice->stream, hub_.shard());
  }
  aborted_ = true;
  for (size_t p = 0; p < reports_.size(); ++p) {
    if (reports_[p].state == PromptReport::State::kEncoding) GiveUpReport(static_cast<int32_t>(p));
  }
}

Status Generation::SubmitAll() {
  plan_.extras = WithStops(std::move(plan_.extras), plan_.stops.get());
  const int32_t n = plan_.options.n;
  events::Key profiled = events::kNoKey;
  const auto prompts = static_cast<int32_t>(plan_.prompts.size());
  for (int32_t p = 0; p < prompts; ++p) {
    const std::shared_ptr<const RequestExtras> extras = OfPrompt(plan_.extras, p, prompts);
    StreamId first_choice = 0;
    for (int32_t i = 0; i < n; ++i) {
      GenerateRequest request;
      request.stream = NextStreamId();
      if (n > 1 && i == 0) first_choice = request.stream;
      request.first_choice = first_choice;
      request.rid = plan_.options.rid;
      request.prompt = plan_.prompts[p].ids;
      request.sampling = plan_.sampling;
      request.max_new_tokens = plan_.prompts[p].max_new_tokens;
      request.choice = i;
      request.return_logprobs = plan_.options.logprobs;
      request.top_logprobs = plan_.options.top_logprobs;
      request.prompt_logprobs_start = plan_.prompt_logprobs_start;
      request.logprob_ids = plan_.logprob_ids;
      request.constraint = plan_.constraint;
      request.extras = extras;
      request.deadline = plan_.deadline;
      request.priority = plan_.priority;
      request.trace = plan_.trace;

      auto choice = std::make_unique<Choice>(*this, p, p * n + i);
      choice->stream = request.stream;
      hub_.Add(request.stream, choice.get());
      choice->profiled = BeginEvents(request.stream, plan_.options.rid, &profiled);
      Status status = model_.engine->Submit(std::move(request), &hub_);
      if (!status.ok()) {
        hub_.Remove(choice->stream);
        return status;
      }
      choices_.push_back(std::move(choice));
      ++running_;
    }
  }
  plan_.extras = nullptr;  // media are large, and the engine needs them only until it has read them
  return OkStatus();
}

void Generation::ChoiceEnded(const Choice& choice) {
  if (choice.index % plan_.options.n == 0) {
    total_.prompt_tokens += choice.usage.prompt_tokens;
    total_.cached_tokens += choice.usage.cached_tokens;
    for (size_t i = 0; i < kMediaKinds; ++i) {
      total_.media_tokens[i] += choice.usage.media_tokens[i];
    }
  }
  total_.completion_tokens += choice.usage.completion_tokens;
  if (choice.usage.reasoning_tokens >= 0) {
    total_.reasoning_tokens = std::max(total_.reasoning_tokens, 0) + choice.usage.reasoning_tokens;
  }
  if (--running_ > 0) return;
  LogOutcome("ended");
  // Before the client can know that its request has ended and use the rid again.
  plan_.rid_lease.Release();
  sink_->OnEnd(total_);
}

void Generation::LogParameters() const {
  if (!model_.log_requests) return;
  LogInfo("request {}: model {}, {}, {}, n {}, max_tokens {}, temperature {:.2f}", LogName(plan_),
          model_.id, Counted(static_cast<int64_t>(plan_.prompts.size()), "prompt"),
          Counted(static_cast<int64_t>(PromptTokens(plan_)), "prompt token"), plan_.options.n,
          plan_.prompts.front().max_new_tokens, plan_.sampling->temperature);
}

void Generation::LogOutcome(std::string_view end) const {
  if (!model_.log_requests) return;
  int64_t tokens = 0;
  std::map<std::string_view, int> finishes;
  for (const auto& choice : choices_) {
    tokens += choice->usage.completion_tokens;
    ++finishes[choice->finished ? FinishReasonName(choice->reason) : "unfinished"];
  }
  std::string reasons;
  for (const auto& [name, count] : finishes) {
    if (!reasons.empty()) reasons += ", ";
    reasons += count == 1 ? std::string(name) : fmt::format("{} {}", count, name);
  }
  LogInfo("request {}: {} after {:.1f} ms: {}; {} prompt tokens ({} cached), {} new tokens{}",
          LogName(plan_), end, Seconds(Clock::now() - plan_.arrival) * 1e3,
          reasons.empty() ? "no stream" : reasons, PromptTokens(plan_), total_.cached_tokens,
          tokens, plan_.trace.valid() ? " trace " + FormatTraceparent(plan_.trace) : "");
}

}  // namespace portico
