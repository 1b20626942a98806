#include "service/generation_choice.h"

#include <algorithm>
#include <utility>

#include "base/prefetch.h"

namespace portico {
namespace {

// Of the sink: a call with its encoder.
constexpr size_t kSinkBytes = 320;

}  // namespace

Generation::Choice::Choice(Generation& owner, int32_t prompt_index, int32_t choice_index)
    : prompt(prompt_index),
      index(choice_index),
      sink_(owner.sink_),
      gaps_(owner.metrics_.inter_token_latency),
      keeps_stop_token_(owner.plan_.options.no_stop_trim),
      decoder_(*owner.model_.tokenizer, owner.plan_.options.skip_special_tokens),
      owner_(owner) {
  const GenerationOptions& options = owner.plan_.options;
  if (!options.stop.empty()) stops_.emplace(options.stop, options.no_stop_trim);
  usage.prompt_tokens = static_cast<int32_t>(owner.plan_.prompts[prompt].ids->size());
}

void Generation::Choice::Prefetch(int steps) const {
  if (steps == 1) {
    PrefetchObject(sink_, kSinkBytes);
  } else {
    sink_->Prefetch(steps - 1);
  }
}

void Generation::Choice::OnTokens(TokenDelta& delta, TimePoint now) {
  Observe(delta.tokens.size(), now);
  usage.cached_tokens = std::max(usage.cached_tokens, delta.usage.cached_tokens);
  if (!prompt_reported_) {
    prompt_reported_ = true;
    owner_.ReportPrompt(prompt, delta.prompt_logprobs);
  }

  const bool ends = delta.finish != FinishReason::kNone;
  for (size_t i = 0; i < delta.tokens.size(); ++i) {
    ++usage.completion_tokens;
    TextDelta text;
    if (Decode(delta, i, &text)) {
      text.matched_stop.text = stops_->matched();
      owner_.model_.engine->Abort(stream);
      return Finish(std::move(text), FinishReason::kStop, now);
    }
    if (ends && i + 1 == delta.tokens.size()) {
      if (delta.finish == FinishReason::kStop) text.matched_stop.token = delta.matched_token;
      text.error = std::move(delta.error);
      return Finish(std::move(text), delta.finish, now);
    }
    text.usage = usage;
    sink_->OnDelta(std::move(text));
  }
  if (!ends) return;
  TextDelta text;
  text.index = index;
  text.error = std::move(delta.error);
  Finish(std::move(text), delta.finish, now);
}

bool Generation::Choice::Decode(const TokenDelta& delta, size_t i, TextDelta* out) {
  out->index = index;
  TokenId token = delta.tokens[i];
  out->tokens.push_back(token);
  if (i < delta.logprobs.size()) out->logprobs.push_back(owner_.Spell(delta.logprobs[i]));

  bool is_stop_token = delta.finish == FinishReason::kStop && i + 1 == delta.tokens.size();
  if (is_stop_token && !keeps_stop_token_) return false;
  if (!stops_) {
    decoder_.Push(token, &out->text);
    return false;
  }
  scratch_.clear();
  decoder_.Push(token, &scratch_);
  return stops_->Push(scratch_, &out->text);
}

void Generation::Choice::Finish(TextDelta last, FinishReason reason, TimePoint now) {
  bool stop_string = !last.matched_stop.text.empty();
  if (!stop_string) {
    scratch_.clear();
    decoder_.Flush(&scratch_);
    if (stops_) {
      if (stops_->Push(scratch_, &last.text)) {
        last.matched_stop.text = stops_->matched();
        reason = FinishReason::kStop;
      } else {
        stops_->Flush(&last.text);
      }
    } else {
      last.text += scratch_;
    }
  }
  finished = true;
  owner_.hub_.Remove(stream);
  last.finish = reason;
  last.usage = usage;
  owner_.metrics_.OnFinished(reason, now - owner_.plan_.arrival);

  sink_->OnDelta(std::move(last));
  owner_.ChoiceEnded(*this);
}

void Generation::Choice::Observe(size_t tokens, TimePoint now) {
  if (tokens == 0) return;
  if (last_token_ == TimePoint{}) {
    owner_.metrics_.time_to_first_token.Observe(Seconds(now - owner_.plan_.arrival));
    --tokens;
  } else {
    gaps_.Observe(Seconds(now - last_token_) / static_cast<double>(tokens));
  }
  last_token_ = now;
}

}  // namespace portico
