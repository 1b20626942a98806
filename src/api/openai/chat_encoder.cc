#include "api/openai/chat_encoder.h"

#include <utility>

#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

void AppendTokenMembers(const TextLogprob& token, std::string* out) {
  out->append("\"token\":");
  AppendJsonString(token.text, out);
  out->append(",\"logprob\":");
  if (token.logprob) {
    AppendLogprob(*token.logprob, out);
  } else {
    out->append("null");
  }
  out->append(",\"bytes\":[");
  bool first = true;
  for (char byte : token.bytes) {
    if (!first) out->push_back(',');
    first = false;
    AppendJsonInt(static_cast<unsigned char>(byte), out);
  }
  out->push_back(']');
}

void AppendPositions(const std::vector<TextPositionLogprobs>& positions, std::string* out) {
  for (const TextPositionLogprobs& position : positions) {
    if (!out->empty() && out->back() == '}') out->push_back(',');
    AppendChatLogprob(position, out);
  }
}

// `"logprobs":{"content":[…],"refusal":null}`, or null where they were not asked for.
void AppendLogprobsMember(bool wanted, std::string_view positions, std::string* out) {
  if (!wanted) {
    out->append("\"logprobs\":null");
    return;
  }
  out->append("\"logprobs\":{\"content\":[");
  out->append(positions);
  out->append("],\"refusal\":null}");
}

}  // namespace

void AppendChatLogprob(const TextPositionLogprobs& position, std::string* out) {
  out->push_back('{');
  AppendTokenMembers(position.chosen, out);
  out->append(",\"top_logprobs\":[");
  bool first = true;
  for (const TextLogprob& candidate : position.top) {
    out->append(first ? "{" : ",{");
    first = false;
    AppendTokenMembers(candidate, out);
    out->push_back('}');
  }
  out->append("]}");
}

ChatAnswer::ChatAnswer(AnswerHead head, const GenerationOptions& options)
    : head_(std::move(head)), logprobs_(options.logprobs), token_ids_(options.return_token_ids) {}

void ChatAnswer::OnDelta(const TextDelta& delta) {
  if (delta.finish == FinishReason::kError) error_ = ErrorOf(delta);
  const size_t index = static_cast<size_t>(delta.index);
  if (choices_.size() <= index) choices_.resize(index + 1);
  Choice& choice = choices_[index];
  choice.text += delta.text;
  if (logprobs_) AppendPositions(delta.logprobs, &choice.logprobs);
  if (token_ids_) choice.ids.insert(choice.ids.end(), delta.tokens.begin(), delta.tokens.end());
  if (delta.finish == FinishReason::kNone) return;
  choice.finish = delta.finish;
  choice.matched_stop = delta.matched_stop;
}

std::string ChatAnswer::Body(const TokenUsage& total) const {
  std::string body;
  AppendAnswerHead(head_, "chat.completion", &body);
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    body.append(i > 0 ? ",{\"index\":" : "{\"index\":");
    AppendJsonInt(static_cast<int64_t>(i), &body);
    body.append(",\"message\":{\"role\":\"assistant\",\"content\":");
    AppendJsonString(choice.text, &body);
    body.append(",\"refusal\":null},");
    AppendLogprobsMember(logprobs_, choice.logprobs, &body);
    body.append(",\"finish_reason\":\"");
    body.append(FinishReasonName(choice.finish));
    body.append("\",\"matched_stop\":");
    AppendMatchedStop(choice.matched_stop, &body);
    if (token_ids_) {
      body.append(",\"token_ids\":");
      AppendTokenIds(choice.ids, &body);
      body.append(",\"prompt_token_ids\":");
      AppendTokenIds(prompt_ids_, &body);
    }
    body.push_back('}');
  }
  body.append("],\"usage\":");
  AppendUsage(total, &body);
  body.push_back('}');
  return body;
}

ChatStreamEncoder::ChatStreamEncoder(const AnswerHead& head, const GenerationOptions& options)
    : AnswerStream(head, "chat.completion.chunk", options) {
  plain_tail_ = "\"},\"logprobs\":null,\"finish_reason\":null";
  EndEvent({}, &plain_tail_);
}

void ChatStreamEncoder::OnDelta(const TextDelta& delta, std::string* out) {
  const Events events = EventsOf(delta, out);
  if (!events.content && !events.finish) return;
  const size_t index = static_cast<size_t>(delta.index);
  if (started_.size() <= index) started_.resize(index + 1);
  if (!started_[index]) {
    started_[index] = true;
    AppendRole(delta, out);
  }
  if (events.content) AppendContent(delta, out);
  if (events.finish) AppendFinish(delta, !events.content, out);
}

void ChatStreamEncoder::AppendRole(const TextDelta& delta, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(
      ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
      "\"finish_reason\":null");
  if (token_ids_) {
    out->append(",\"prompt_token_ids\":");
    AppendTokenIds(prompt_ids_, out);
  }
  TokenUsage usage = delta.usage;
  usage.completion_tokens = 0;
  EndEvent(usage, out);
}

void ChatStreamEncoder::AppendContent(const TextDelta& delta, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"delta\":{\"content\":\"");
  AppendJsonEscaped(delta.text, out);
  if (plain_) {
    out->append(plain_tail_);
    return;
  }
  out->append("\"},");
  AppendTokens(delta, out);
  out->append(",\"finish_reason\":null");
  EndEvent(delta.usage, out);
}

void ChatStreamEncoder::AppendFinish(const TextDelta& delta, bool with_tokens, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"delta\":{},");
  if (with_tokens && !delta.tokens.empty()) {
    AppendTokens(delta, out);
  } else {
    out->append("\"logprobs\":null");
  }
  AppendFinishReason(delta, out);
  EndEvent(delta.usage, out);
}

void ChatStreamEncoder::AppendTokens(const TextDelta& delta, std::string* out) {
  std::string positions;
  if (logprobs_) AppendPositions(delta.logprobs, &positions);
  AppendLogprobsMember(logprobs_ && !delta.logprobs.empty(), positions, out);
  if (!token_ids_) return;
  out->append(",\"token_ids\":");
  AppendTokenIds(delta.tokens, out);
}

}  // namespace portico::api::openai
