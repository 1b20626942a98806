#include "service/generation.h"

#include <algorithm>
#include <utility>

#include "service/generation_choice.h"

namespace portico {

Status TakeRids(ActiveRids& rids, GenerationPlan* plan) {
  PORTICO_ASSIGN_OR_RETURN(plan->rid_lease, rids.Take(plan->options.rid));
  return OkStatus();
}

StatusOr<std::unique_ptr<Generation>> Generation::Start(const ServingModel& model, StreamHub& hub,
                                                        ServiceMetrics& metrics,
                                                        GenerationPlan plan, TextSink* sink) {
  std::unique_ptr<Generation> generation(
      new Generation(model, hub, metrics.Of(model), std::move(plan), sink));
  PORTICO_RETURN_IF_ERROR(generation->SubmitAll());
  return generation;
}

Generation::Generation(const ServingModel& model, StreamHub& hub, ModelMetrics& metrics,
                       GenerationPlan plan, TextSink* sink)
    : model_(model), hub_(hub), metrics_(metrics), plan_(std::move(plan)), sink_(sink) {
  prompt_reported_.resize(plan_.prompts.size());
}

Generation::~Generation() {
  for (auto& choice : choices_) {
    if (choice->finished) continue;
    hub_.Remove(choice->stream);
    model_.engine->Abort(choice->stream);
    metrics_.aborted.Add(1);
  }
}

void Generation::Abort() {
  for (auto& choice : choices_) {
    if (!choice->finished) model_.engine->Abort(choice->stream);
  }
}

Status Generation::SubmitAll() {
  const int32_t n = plan_.options.n;
  for (int32_t p = 0; p < static_cast<int32_t>(plan_.prompts.size()); ++p) {
    for (int32_t i = 0; i < n; ++i) {
      GenerateRequest request;
      request.stream = NextStreamId();
      request.rid = plan_.options.rid;
      request.prompt = plan_.prompts[p].ids;
      request.sampling = plan_.sampling;
      request.sampling.max_new_tokens = plan_.prompts[p].max_new_tokens;
      request.choice = i;
      request.return_logprobs = plan_.options.logprobs;
      request.top_logprobs = plan_.options.top_logprobs;
      request.prompt_logprobs_start = plan_.prompt_logprobs_start;
      request.logprob_ids = plan_.logprob_ids;

      auto choice = std::make_unique<Choice>(*this, p, p * n + i);
      choice->stream = request.stream;
      hub_.Add(request.stream, choice.get());
      Status status = model_.engine->Submit(std::move(request), &hub_);
      if (!status.ok()) {
        hub_.Remove(choice->stream);
        return status;
      }
      choices_.push_back(std::move(choice));
      ++running_;
    }
  }
  return OkStatus();
}

void Generation::ReportPrompt(int32_t prompt, std::span<const PositionLogprobs> logprobs) {
  if (prompt_reported_[prompt]) return;
  prompt_reported_[prompt] = true;
  const int32_t start = plan_.prompt_logprobs_start;
  if (!plan_.echo && !plan_.options.return_token_ids && start < 0) return;
  PromptEcho echo;
  echo.prompt = prompt;
  echo.tokens = *plan_.prompts[prompt].ids;
  if (plan_.echo) echo.text = plan_.prompts[prompt].text;
  if (start >= 0) {
    TextPositionLogprobs first;
    first.chosen = SpellToken(echo.tokens[static_cast<size_t>(start)]);
    echo.logprobs.push_back(std::move(first));
    // The engine begins at position 1 or at the start; the start's own is left out, as SGLang does.
    for (const PositionLogprobs& position : logprobs.subspan(start > 0 ? 1 : 0)) {
      echo.logprobs.push_back(Spell(position));
    }
  }
  sink_->OnPrompt(std::move(echo));
}

TextLogprob Generation::SpellToken(TokenId token) const {
  TextLogprob spelled;
  spelled.token = token;
  spelled.bytes = model_.tokenizer->TokenBytes(token);
  spelled.text = model_.tokenizer->Decode(std::span<const TokenId>(&token, 1), false);
  return spelled;
}

TextPositionLogprobs Generation::Spell(const PositionLogprobs& position) const {
  auto spell = [this](const TokenLogprob& from) {
    TextLogprob spelled = SpellToken(from.token);
    spelled.logprob = from.logprob;
    return spelled;
  };
  TextPositionLogprobs out;
  out.chosen = spell(position.chosen);
  out.top.reserve(position.top.size());
  for (const TokenLogprob& candidate : position.top) out.top.push_back(spell(candidate));
  out.of_ids.reserve(position.of_ids.size());
  for (const TokenLogprob& asked : position.of_ids) out.of_ids.push_back(spell(asked));
  return out;
}

void Generation::ChoiceEnded(const Choice& choice) {
  if (choice.index % plan_.options.n == 0) {
    total_.prompt_tokens += choice.usage.prompt_tokens;
    total_.cached_tokens += choice.usage.cached_tokens;
  }
  total_.completion_tokens += choice.usage.completion_tokens;
  if (--running_ > 0) return;
  // Before the client can know that its request has ended and use the rid again.
  plan_.rid_lease.Release();
  sink_->OnEnd(total_);
}

}  // namespace portico
