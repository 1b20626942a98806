#include "service/generation/generation_choice.h"

#include <algorithm>
#include <utility>

#include "base/touched_objects.h"
#include "service/generation/spelled_logprobs.h"

namespace portico {
namespace {

// Of the sink: a call with its encoder.
constexpr size_t kSinkBytes = 320;

// For the next token: of what a token's delta may have, its sink has taken some or nothing.
void Clear(TextDelta* delta) {
  delta->text.clear();
  delta->reasoning.clear();
  delta->calls.clear();
  delta->parsed = false;
  delta->tokens.clear();
  delta->logprobs.clear();
  delta->more_at_once = false;
  if (!delta->error.ok()) delta->error = OkStatus();
  if (delta->extras != nullptr) delta->extras = nullptr;
}

}  // namespace

Generation::Choice::Choice(Generation& owner, int32_t prompt_index, int32_t choice_index)
    : prompt(prompt_index),
      index(choice_index),
      sink_(owner.sink_),
      gaps_(owner.metrics_.inter_token_latency),
      keeps_stop_token_(owner.plan_.options.no_stop_trim),
      spells_logprobs_(owner.plan_.spell_logprobs),
      decoder_(*owner.model_.tokenizer, owner.plan_.options.skip_special_tokens,
               owner.plan_.output == nullptr ? nullptr : owner.plan_.output->markers),
      owner_(owner) {
  const GenerationOptions& options = owner.plan_.options;
  if (owner.plan_.stops) {
    stops_ = std::make_unique<StopMatcher>(owner.plan_.stops, options.no_stop_trim);
  }
  if (owner.plan_.output != nullptr) {
    parsed_ = std::make_unique<ParsedOutput>(owner.plan_.output);
    if (owner.plan_.output->format.reasoning != nullptr) usage.reasoning_tokens = 0;
  }
  const std::vector<TokenId>& ids = *owner.plan_.prompts[prompt].ids;
  if (owner.plan_.continues_prompt) decoder_.Continue(ids);
  usage.prompt_tokens = static_cast<int32_t>(ids.size());
}

void Generation::Choice::OnTokens(TokenDelta& delta, TimePoint now) {
  Observe(delta.tokens.size(), now);
  if (!prompt_reported_) {
    if (!begun_) RecordFirst(delta.tokens.size());
    begun_ = true;
    if (!owner_.PassPrompt(this, &delta, now)) return;
    prompt_reported_ = true;
  }
  Take(delta, now, /*replayed=*/false);
}

void Generation::Choice::Take(TokenDelta& delta, TimePoint now, bool replayed) {
  NoteTouched(sink_, kSinkBytes);
  // More than were sent where the request continues a session.
  usage.prompt_tokens = std::max(usage.prompt_tokens, delta.usage.prompt_tokens);
  usage.cached_tokens = std::max(usage.cached_tokens, delta.usage.cached_tokens);
  usage.retractions = std::max(usage.retractions, delta.usage.retractions);
  for (size_t i = 0; i < kMediaKinds; ++i) {
    usage.media_tokens[i] = std::max(usage.media_tokens[i], delta.usage.media_tokens[i]);
  }
  // Where the output is read, it is counted here.
  if (!parsed_) usage.reasoning_tokens = delta.usage.reasoning_tokens;

  const bool ends = delta.finish != FinishReason::kNone;
  std::unique_ptr<DeltaExtras> extras = std::move(delta.extras);
  TextDelta text;
  for (size_t i = 0; i < delta.tokens.size(); ++i) {
    ++usage.completion_tokens;
    if (extras != nullptr) text.extras = std::move(extras);
    if (Decode(delta, i, &text)) {
      text.matched_stop.text = stops_->matched();
      owner_.model_.engine->Abort(stream, owner_.hub_.shard());
      return Finish(std::move(text), FinishReason::kStop, now);
    }
    if (ends && i + 1 == delta.tokens.size()) {
      if (delta.finish == FinishReason::kStop) text.matched_stop.token = delta.matched_token;
      text.error = std::move(delta.error);
      return Finish(std::move(text), delta.finish, now);
    }
    text.usage = usage;
    text.more_at_once = replayed && (held > 0 || i + 1 < delta.tokens.size());
    if (profiled != events::kNoKey && usage.completion_tokens == 1) {
      events::Record(events::Event::kDetokenizeEnd, profiled, events::kFrontend);
    }
    sink_->OnDelta(std::move(text));
    Clear(&text);
  }
  if (!ends) return;
  text.index = index;
  text.extras = std::move(extras);
  text.error = std::move(delta.error);
  Finish(std::move(text), delta.finish, now);
}

void Generation::Choice::Fail(const Status& error, TimePoint now) {
  owner_.model_.engine->Abort(stream, owner_.hub_.shard());
  TextDelta text;
  text.index = index;
  text.error = error;
  Finish(std::move(text), FinishReason::kError, now);
}

void Generation::Choice::RecordFirst(size_t tokens) const {
  if (profiled == events::kNoKey) return;
  events::Record(events::EventGroup::kFrontendReceived, profiled, events::kFrontend,
                 {.peer = events::kEngine, .a = static_cast<int64_t>(tokens)});
}

bool Generation::Choice::Decode(const TokenDelta& delta, size_t i, TextDelta* out) {
  out->index = index;
  TokenId token = delta.tokens[i];
  out->tokens.push_back(token);

  // The token that completes a stop string which the engine found is text like any other.
  const bool is_stop_token = delta.finish == FinishReason::kStop && delta.matched_token >= 0 &&
                             i + 1 == delta.tokens.size();
  // A stop token may be the marker that ends a call.
  const bool left_out =
      is_stop_token && !keeps_stop_token_ && !(parsed_ && parsed_->IsMarker(token));
  if (i < delta.logprobs.size()) {
    out->logprobs.push_back(
        SpellPosition(delta.logprobs[i], spells_logprobs_ ? &decoder_ : nullptr));
    out->logprobs.back().hidden = left_out || decoder_.Hides(token);
  }
  if (left_out) return false;
  if (parsed_) return DecodeParsed(token, is_stop_token, out);
  if (stops_) return LookForStops(token, is_stop_token, &out->text);
  decoder_.Push(token, &out->text);
  return false;
}

bool Generation::Choice::DecodeParsed(TokenId token, bool ends_stream, TextDelta* out) {
  out->parsed = true;
  bool stopped = false;
  if (stops_) {
    std::string text;
    stopped = LookForStops(token, ends_stream, &text);
    parsed_->Feed(text, out);
  } else {
    decoder_.Push(token, &out->text);
    if (parsed_->IsPlain(out->text)) return false;
    scratch_.clear();
    scratch_.swap(out->text);
    if (parsed_->marked_by_tokens()) {
      parsed_->FeedToken(token, scratch_, owner_.model_.tokenizer->IdToToken(token), out);
    } else {
      parsed_->Feed(scratch_, out);
    }
  }
  if (parsed_->in_reasoning() && usage.reasoning_tokens >= 0) ++usage.reasoning_tokens;
  return stopped;
}

bool Generation::Choice::LookForStops(TokenId token, bool ends_stream, std::string* text) {
  const TokenViews views = decoder_.PushBoth(token, &scratch_);
  if (!ends_stream) return stops_->Push(views, text);
  stops_->Flush(text);
  text->append(views.shown);
  return false;
}

void Generation::Choice::Finish(TextDelta last, FinishReason why, TimePoint now) {
  bool stop_string = !last.matched_stop.text.empty();
  if (!stop_string) {
    std::string parsed_text;
    std::string* text = parsed_ ? &parsed_text : &last.text;
    if (!stops_) {
      decoder_.Flush(text);
    } else if (stops_->Push(decoder_.FlushBoth(&scratch_), text)) {
      last.matched_stop.text = stops_->matched();
      why = FinishReason::kStop;
    } else {
      stops_->Flush(text);
    }
    if (parsed_) parsed_->Feed(parsed_text, &last);
  }
  if (parsed_) {
    last.parsed = true;
    parsed_->Finish(&last);
    last.ends_in_calls = why == FinishReason::kStop && parsed_->ends_in_calls();
    owner_.metrics_.parser_fallbacks.Add(parsed_->rejected());
  }
  // A pattern, which only the engine looks for. Its match stays in the text, as SGLang leaves it.
  if (why == FinishReason::kStop && !last.matched_stop.any() && last.extras != nullptr) {
    last.matched_stop.text = last.extras->matched_text;
  }
  // Whatever ended it, it is not what was asked for.
  if (owner_.reports_[static_cast<size_t>(prompt)].given_up && why != FinishReason::kError) {
    why = FinishReason::kAbort;
    last.matched_stop = {};
    last.ends_in_calls = false;
  }
  finished = true;
  reason = why;
  if (profiled != events::kNoKey) {
    events::Record(events::Event::kTerminalResponse, profiled, events::kFrontend,
                   {.peer = events::kEngine, .a = why != FinishReason::kError});
  }
  owner_.hub_.Remove(stream);
  last.finish = why;
  last.usage = usage;
  owner_.metrics_.OnFinished(why, now - owner_.plan_.arrival);

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
