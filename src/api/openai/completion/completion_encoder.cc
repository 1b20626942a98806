#include "api/openai/completion/completion_encoder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "text/json_writer.h"
#include "text/utf8.h"

namespace portico::api::openai {
namespace {

// Code points that begin in what a token adds to the text: the sum over a text's tokens is the text's length,
// also where a character is spread over several tokens.
int64_t CodePointsBegun(const TextPositionLogprobs& position) {
  if (position.hidden) return 0;
  return static_cast<int64_t>(CountCodePoints(position.chosen.bytes));
}

void Separate(std::string* list) {
  if (!list->empty()) list->push_back(',');
}

void AppendLogprobOrNull(const std::optional<float>& logprob, std::string* out) {
  if (logprob) {
    AppendLogprob(*logprob, out);
  } else {
    out->append("null");
  }
}

// `{" a":-0.5,…}`, best first and with the chosen token; of tokens with the same text the best.
void AppendAlternatives(const TextPositionLogprobs& position, std::string* out) {
  std::vector<std::string_view> seen;
  out->push_back('{');
  auto add = [&](const TextLogprob& token) {
    if (std::find(seen.begin(), seen.end(), token.text) != seen.end()) return;
    if (!seen.empty()) out->push_back(',');
    seen.push_back(token.text);
    AppendJsonString(token.text, out);
    out->push_back(':');
    AppendLogprobOrNull(token.logprob, out);
  };
  for (const TextLogprob& candidate : position.top) add(candidate);
  add(position.chosen);
  out->push_back('}');
}

// Appends a member of the object: the prompt's items, then the answer's.
void AppendItems(std::string_view name, std::string_view first, std::string_view then,
                 std::string* out) {
  out->append(name);
  out->push_back('[');
  out->append(first);
  if (!first.empty() && !then.empty()) out->push_back(',');
  out->append(then);
  out->push_back(']');
}

}  // namespace

void CompletionLogprobs::AddPrompt(const PromptEcho& prompt) {
  const int64_t length = static_cast<int64_t>(CountCodePoints(prompt.text));
  // Tokens that stand before the text (a begin token) are not in it: they count as before its
  // start.
  offset_ = length;
  for (const TextPositionLogprobs& position : prompt.logprobs) {
    offset_ -= CodePointsBegun(position);
  }
  // Where the stream has ended before its prompt was computed, there is its first token alone.
  if (prompt.logprobs.size() < prompt.tokens.size()) offset_ = 0;
  for (const TextPositionLogprobs& position : prompt.logprobs) Add(position);
  offset_ = length;
}

void CompletionLogprobs::Add(const TextPositionLogprobs& position) {
  Separate(&tokens_);
  AppendJsonString(position.chosen.text, &tokens_);
  Separate(&token_logprobs_);
  AppendLogprobOrNull(position.chosen.logprob, &token_logprobs_);
  Separate(&text_offset_);
  AppendJsonInt(std::max<int64_t>(offset_, 0), &text_offset_);
  offset_ += CodePointsBegun(position);
  if (!with_top_) return;
  Separate(&top_logprobs_);
  if (position.chosen.logprob) {
    AppendAlternatives(position, &top_logprobs_);
  } else {
    top_logprobs_.append("null");
  }
}

void CompletionLogprobs::Flush(std::string* out, const CompletionLogprobs* before) {
  const auto append = [&](std::string_view name, std::string CompletionLogprobs::* items) {
    AppendItems(name, before == nullptr ? std::string_view() : before->*items, this->*items, out);
  };
  append("{\"tokens\":", &CompletionLogprobs::tokens_);
  append(",\"token_logprobs\":", &CompletionLogprobs::token_logprobs_);
  if (with_top_) {
    append(",\"top_logprobs\":", &CompletionLogprobs::top_logprobs_);
  } else {
    out->append(",\"top_logprobs\":null");
  }
  append(",\"text_offset\":", &CompletionLogprobs::text_offset_);
  out->push_back('}');
  tokens_.clear();
  token_logprobs_.clear();
  top_logprobs_.clear();
  text_offset_.clear();
}

CompletionPrompts::Encoded CompletionPrompts::Form::operator()(PromptEcho prompt) const {
  Encoded encoded;
  encoded.prompt = prompt.prompt;
  encoded.reported = !prompt.tokens.empty();
  AppendJsonEscaped(prompt.text, &encoded.text);
  if (with_token_ids) AppendTokenIds(prompt.tokens, &encoded.token_ids);
  encoded.has_logprobs = !prompt.logprobs.empty();
  encoded.logprobs = CompletionLogprobs(with_top);
  if (encoded.has_logprobs) encoded.logprobs.AddPrompt(prompt);
  return encoded;
}

void CompletionPrompts::Take(Encoded prompt) {
  const auto index = static_cast<size_t>(prompt.prompt);
  if (prompts_.size() <= index) prompts_.resize(index + 1);
  prompts_[index] = std::move(prompt);
}

const CompletionPrompts::Encoded* CompletionPrompts::Of(size_t choice) const {
  const size_t prompt = choice / n_;
  return prompt < prompts_.size() && prompts_[prompt].reported ? &prompts_[prompt] : nullptr;
}

CompletionAnswer::CompletionAnswer(AnswerHead head, const GenerationOptions& options)
    : head_(std::move(head)),
      logprobs_(options.logprobs),
      with_top_(options.top_logprobs > 0),
      token_ids_(options.return_token_ids),
      prompts_(options),
      hidden_states_(options) {}

void CompletionAnswer::OnDelta(const TextDelta& delta) {
  if (delta.finish == FinishReason::kError) error_ = ErrorOf(delta);
  const size_t index = static_cast<size_t>(delta.index);
  if (choices_.size() <= index) choices_.resize(index + 1);
  Choice& choice = choices_[index];
  if (!choice.started) {
    choice.started = true;
    choice.logprobs = CompletionLogprobs(with_top_);
    if (const CompletionPrompts::Encoded* prompt = prompts_.Of(index)) {
      choice.logprobs.GoOnAfter(prompt->logprobs);
    }
  }
  hidden_states_.Note(delta);
  choice.text += delta.text;
  if (logprobs_) {
    for (const TextPositionLogprobs& position : delta.logprobs) choice.logprobs.Add(position);
  }
  if (token_ids_) choice.ids.insert(choice.ids.end(), delta.tokens.begin(), delta.tokens.end());
  if (delta.finish == FinishReason::kNone) return;
  choice.finish = delta.finish;
  choice.matched_stop = delta.matched_stop;
}

size_t CompletionAnswer::LogprobBytes() const {
  size_t bytes = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    bytes += choices_[i].logprobs.bytes();
    if (const CompletionPrompts::Encoded* prompt = prompts_.Of(i)) {
      bytes += prompt->logprobs.bytes();
    }
  }
  return bytes;
}

void CompletionAnswer::AppendChoice(size_t index, std::string* body) {
  Choice& choice = choices_[index];
  const CompletionPrompts::Encoded* prompt = prompts_.Of(index);
  body->append(index > 0 ? ",{\"index\":" : "{\"index\":");
  AppendJsonInt(static_cast<int64_t>(index), body);
  body->append(",\"text\":\"");
  if (prompt != nullptr) body->append(prompt->text);
  AppendJsonEscaped(choice.text, body);
  body->append("\",\"logprobs\":");
  if (logprobs_) {
    choice.logprobs.Flush(body, prompt == nullptr ? nullptr : &prompt->logprobs);
  } else {
    body->append("null");
  }
  body->append(",\"finish_reason\":\"");
  body->append(FinishReasonName(choice.finish));
  body->append("\",\"matched_stop\":");
  AppendMatchedStop(choice.matched_stop, body);
  if (token_ids_) {
    body->append(",\"token_ids\":");
    AppendTokenIds(choice.ids, body);
    body->append(",\"prompt_token_ids\":");
    body->append(prompt == nullptr ? std::string_view("[]") : std::string_view(prompt->token_ids));
  }
  if (hidden_states_.Has(index)) {
    body->push_back(',');
    hidden_states_.AppendMember(index, body);
  }
  body->push_back('}');
}

std::string CompletionAnswer::Body(const TokenUsage& total) {
  std::string body;
  AppendAnswerHead(head_, "text_completion", &body);
  for (size_t i = 0; i < choices_.size(); ++i) AppendChoice(i, &body);
  body.append("],\"usage\":");
  AppendUsage(total, &body);
  body.push_back('}');
  return body;
}

CompletionStreamEncoder::CompletionStreamEncoder(const AnswerHead& head,
                                                 const GenerationOptions& options)
    : AnswerStream(head, "text_completion", options),
      with_top_(options.top_logprobs > 0),
      prompts_(options),
      hidden_states_(options) {
  plain_tail_ = "\",\"logprobs\":null,\"finish_reason\":null";
  EndEvent({}, &plain_tail_);
}

void CompletionStreamEncoder::OnDelta(const TextDelta& delta, std::string* out) {
  hidden_states_.Note(delta);
  const Events events = EventsOf(delta, out);
  if (!events.content && !events.finish) return;
  const size_t index = static_cast<size_t>(delta.index);
  if (choices_.size() <= index) choices_.resize(index + 1);
  Choice& choice = choices_[index];
  if (!choice.started) {
    choice.started = true;
    choice.logprobs = CompletionLogprobs(with_top_);
    if (const CompletionPrompts::Encoded* prompt = prompts_.Of(index)) {
      choice.logprobs.GoOnAfter(prompt->logprobs);
      AppendPrompt(*prompt, delta, out);
    }
  }
  if (events.content) AppendContent(delta, out);
  if (!events.finish) return;
  AppendFinish(delta, !events.content, out);
  if (hidden_states_.Has(index)) AppendHiddenStates(delta, out);
}

void CompletionStreamEncoder::AppendPrompt(const CompletionPrompts::Encoded& prompt,
                                           const TextDelta& delta, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"text\":\"");
  out->append(prompt.text);
  out->append("\",\"logprobs\":");
  if (prompt.has_logprobs) {
    CompletionLogprobs(with_top_).Flush(out, &prompt.logprobs);
  } else {
    out->append("null");
  }
  out->append(",\"finish_reason\":null");
  if (token_ids_) {
    out->append(",\"prompt_token_ids\":");
    out->append(prompt.token_ids);
  }
  TokenUsage usage = delta.usage;
  usage.completion_tokens = 0;
  EndEvent(usage, out);
}

void CompletionStreamEncoder::AppendContent(const TextDelta& delta, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"text\":\"");
  AppendJsonEscaped(delta.text, out);
  if (plain_) {
    out->append(plain_tail_);
    return;
  }
  out->append("\",");
  AppendTokens(delta, out);
  out->append(",\"finish_reason\":null");
  EndEvent(delta.usage, out);
}

void CompletionStreamEncoder::AppendFinish(const TextDelta& delta, bool with_tokens,
                                           std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"text\":\"\",");
  if (with_tokens && !delta.tokens.empty()) {
    AppendTokens(delta, out);
  } else {
    out->append("\"logprobs\":null");
  }
  AppendFinishReason(delta, out);
  EndEvent(delta.usage, out);
}

void CompletionStreamEncoder::AppendHiddenStates(const TextDelta& delta, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"text\":\"\",\"logprobs\":null,\"finish_reason\":null,");
  hidden_states_.AppendMember(static_cast<size_t>(delta.index), out);
  EndEvent(delta.usage, out);
}

void CompletionStreamEncoder::AppendTokens(const TextDelta& delta, std::string* out) {
  out->append("\"logprobs\":");
  if (!logprobs_ || delta.logprobs.empty()) {
    out->append("null");
  } else {
    CompletionLogprobs& logprobs = choices_[static_cast<size_t>(delta.index)].logprobs;
    for (const TextPositionLogprobs& position : delta.logprobs) logprobs.Add(position);
    logprobs.Flush(out);
  }
  if (!token_ids_) return;
  out->append(",\"token_ids\":");
  AppendTokenIds(delta.tokens, out);
}

}  // namespace portico::api::openai
