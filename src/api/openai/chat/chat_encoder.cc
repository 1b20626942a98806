#include "api/openai/chat/chat_encoder.h"

#include <utility>

#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

// Of what ends a content event, beside the reasoning's field.
constexpr size_t kTailBytes = 64;
// Of a whole answer, and of each of its choices, beside the names and texts in them.
constexpr size_t kBodyBytes = 320;
constexpr size_t kChoiceBytes = 256;

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

// Appends `{"name":…,"arguments":…}`.
void AppendFunction(std::string_view name, std::string_view arguments, std::string* out) {
  out->append("{\"name\":");
  AppendJsonString(name, out);
  out->append(",\"arguments\":");
  AppendJsonString(arguments, out);
  out->push_back('}');
}

// Clients ask every message and delta for its reasoning: SGLang's have null where there is none.
std::string NoReasoning(std::string_view field) {
  std::string member;
  member.reserve(field.size() + 7);
  member.append("\"").append(field).append("\":null");
  return member;
}

// Appends the member of a delta with what is new of a call.
void AppendCallMember(bool legacy, int32_t index, const std::string* id, const std::string* name,
                      std::string_view arguments, std::string* out) {
  if (legacy) {
    out->append("\"function_call\":");
  } else {
    out->append("\"tool_calls\":[{\"index\":");
    AppendJsonInt(index, out);
    if (id != nullptr) {
      out->append(",\"id\":");
      AppendJsonString(*id, out);
      out->append(",\"type\":\"function\"");
    }
    out->append(",\"function\":");
  }
  if (name != nullptr) {
    AppendFunction(*name, arguments, out);
  } else {
    out->append("{\"arguments\":");
    AppendJsonString(arguments, out);
    out->push_back('}');
  }
  if (!legacy) out->append("}]");
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
    : head_(std::move(head)),
      reasoning_field_(options.reasoning_field),
      calls_reason_(CallsReason(options)),
      legacy_functions_(options.legacy_functions),
      logprobs_(options.logprobs),
      token_ids_(options.return_token_ids),
      hidden_states_(options) {}

void ChatAnswer::OnDelta(const TextDelta& delta) {
  if (delta.finish == FinishReason::kError) error_ = ErrorOf(delta);
  const size_t index = static_cast<size_t>(delta.index);
  if (choices_.size() <= index) choices_.resize(index + 1);
  Choice& choice = choices_[index];
  hidden_states_.Note(delta);
  choice.text += delta.text;
  if (!delta.reasoning.empty()) choice.reasoning += delta.reasoning;
  for (const ToolCallPiece& piece : delta.calls) {
    const size_t call = static_cast<size_t>(piece.index);
    if (choice.calls.size() <= call) choice.calls.resize(call + 1);
    if (!piece.name.empty()) choice.calls[call] = {piece.id, piece.name, ""};
    choice.calls[call].arguments += piece.arguments;
  }
  if (logprobs_) AppendPositions(delta.logprobs, &choice.logprobs);
  if (token_ids_) choice.ids.insert(choice.ids.end(), delta.tokens.begin(), delta.tokens.end());
  if (delta.finish == FinishReason::kNone) return;
  choice.finish = delta.finish;
  choice.ends_in_calls = delta.ends_in_calls;
  choice.matched_stop = delta.matched_stop;
}

void ChatAnswer::AppendMessage(const Choice& choice, std::string* body) const {
  body->append(",\"message\":{\"role\":\"assistant\",\"content\":");
  if (choice.text.empty() && !choice.calls.empty()) {
    body->append("null");
  } else {
    AppendJsonString(choice.text, body);
  }
  body->append(",\"").append(reasoning_field_).append("\":");
  if (choice.reasoning.empty()) {
    body->append("null");
  } else {
    AppendJsonString(choice.reasoning, body);
  }
  body->append(",\"refusal\":null");
  if (legacy_functions_ && !choice.calls.empty()) {
    body->append(",\"function_call\":");
    AppendFunction(choice.calls[0].name, choice.calls[0].arguments, body);
  } else if (!choice.calls.empty()) {
    body->append(",\"tool_calls\":[");
    for (const Call& call : choice.calls) {
      if (body->back() != '[') body->push_back(',');
      body->append("{\"id\":");
      AppendJsonString(call.id, body);
      body->append(",\"type\":\"function\",\"function\":");
      AppendFunction(call.name, call.arguments, body);
      body->push_back('}');
    }
    body->push_back(']');
  }
  body->append("},");
}

std::string ChatAnswer::Body(const TokenUsage& total) const {
  std::string body;
  size_t expected = kBodyBytes + head_.id.size() + head_.model.size();
  for (const Choice& choice : choices_) {
    expected +=
        kChoiceBytes + choice.text.size() + choice.reasoning.size() + choice.logprobs.size();
  }
  body.reserve(expected);
  AppendAnswerHead(head_, "chat.completion", &body);
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    body.append(i > 0 ? ",{\"index\":" : "{\"index\":");
    AppendJsonInt(static_cast<int64_t>(i), &body);
    AppendMessage(choice, &body);
    AppendLogprobsMember(logprobs_, choice.logprobs, &body);
    body.append(",\"finish_reason\":\"");
    body.append(choice.ends_in_calls ? calls_reason_ : FinishReasonName(choice.finish));
    body.append("\",\"matched_stop\":");
    AppendMatchedStop(choice.matched_stop, &body);
    if (token_ids_) {
      body.append(",\"token_ids\":");
      AppendTokenIds(choice.ids, &body);
      body.append(",\"prompt_token_ids\":");
      AppendTokenIds(prompt_ids_, &body);
    }
    if (hidden_states_.Has(i)) {
      body.push_back(',');
      hidden_states_.AppendMember(i, &body);
    }
    body.push_back('}');
  }
  body.append("],\"usage\":");
  AppendUsage(total, &body);
  body.push_back('}');
  return body;
}

ChatStreamEncoder::ChatStreamEncoder(const AnswerHead& head, const GenerationOptions& options)
    : AnswerStream(head, "chat.completion.chunk", options),
      reasoning_field_(options.reasoning_field),
      no_reasoning_(NoReasoning(options.reasoning_field)),
      legacy_functions_(options.legacy_functions),
      hidden_states_(options) {
  plain_tail_.reserve(kTailBytes + no_reasoning_.size());
  plain_tail_.append("\",").append(no_reasoning_);
  plain_tail_.append("},\"logprobs\":null,\"finish_reason\":null");
  EndEvent({}, &plain_tail_);
  BeginContent(0, &plain_head_);
}

void ChatStreamEncoder::BeginContent(int32_t index, std::string* out) const {
  BeginEvent(index, out);
  out->append(",\"delta\":{\"content\":\"");
}

void ChatStreamEncoder::OnDelta(const TextDelta& delta, std::string* out) {
  hidden_states_.Note(delta);
  const Events events = EventsOf(delta, out);
  if (!events.content && !events.finish) return;
  const size_t index = static_cast<size_t>(delta.index);
  if (started_.size() <= index) started_.resize(index + 1);
  if (!started_[index]) {
    started_[index] = true;
    AppendRole(delta, out);
  }
  if (events.content) AppendContent(delta, out);
  if (!events.finish) return;
  AppendFinish(delta, !events.content, out);
  if (hidden_states_.Has(index)) AppendHiddenStates(delta, out);
}

void ChatStreamEncoder::AppendRole(const TextDelta& delta, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"delta\":{\"role\":\"assistant\",\"content\":\"\",").append(no_reasoning_);
  out->append("},\"logprobs\":null,\"finish_reason\":null");
  if (token_ids_) {
    out->append(",\"prompt_token_ids\":");
    AppendTokenIds(prompt_ids_, out);
  }
  TokenUsage usage = delta.usage;
  usage.completion_tokens = 0;
  EndEvent(usage, out);
}

// An event for each piece, in their order; the tokens are with the first.
void ChatStreamEncoder::AppendParsed(const TextDelta& delta, std::string* out) {
  bool first = true;
  // `members` of a delta, with commas between.
  auto event = [&](const std::string& members) {
    BeginEvent(delta.index, out);
    out->append(",\"delta\":{").append(members).append("},");
    if (first) {
      AppendTokens(delta, out);
    } else {
      out->append("\"logprobs\":null");
    }
    first = false;
    out->append(",\"finish_reason\":null");
    EndEvent(delta.usage, out);
  };
  std::string member;
  auto with_null = [&] { event(member.append(",").append(no_reasoning_)); };
  auto text = [&](std::string_view value) {
    member.assign("\"content\":");
    AppendJsonString(value, &member);
    with_null();
  };
  if (!delta.reasoning.empty()) {
    member.assign("\"").append(reasoning_field_).append("\":");
    AppendJsonString(delta.reasoning, &member);
    event(member);
  }
  const std::string_view content = delta.text;
  size_t told = 0;
  for (const ToolCallPiece& piece : delta.calls) {
    if (piece.text_before > told) {
      text(content.substr(told, piece.text_before - told));
      told = piece.text_before;
    }
    if (legacy_functions_ && piece.index > 0) continue;
    if (!piece.name.empty()) {
      member.clear();
      AppendCallMember(legacy_functions_, piece.index, &piece.id, &piece.name, "", &member);
      with_null();
    }
    if (!piece.arguments.empty()) {
      member.clear();
      AppendCallMember(legacy_functions_, piece.index, nullptr, nullptr, piece.arguments, &member);
      with_null();
    }
  }
  if (told < content.size()) text(content.substr(told));
  // The token that ends a call says nothing, but it has a log-probability and an id.
  if (first && (logprobs_ || token_ids_)) event(no_reasoning_);
}

void ChatStreamEncoder::AppendContent(const TextDelta& delta, std::string* out) {
  if (!delta.reasoning.empty() || !delta.calls.empty()) return AppendParsed(delta, out);
  if (plain_ && delta.index == 0) {
    out->append(plain_head_);
  } else {
    BeginContent(delta.index, out);
  }
  AppendJsonEscaped(delta.text, out);
  if (plain_) {
    out->append(plain_tail_);
    return;
  }
  out->append("\",").append(no_reasoning_).append("},");
  AppendTokens(delta, out);
  out->append(",\"finish_reason\":null");
  EndEvent(delta.usage, out);
}

void ChatStreamEncoder::AppendFinish(const TextDelta& delta, bool with_tokens, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"delta\":{").append(no_reasoning_).append("},");
  if (with_tokens && !delta.tokens.empty()) {
    AppendTokens(delta, out);
  } else {
    out->append("\"logprobs\":null");
  }
  AppendFinishReason(delta, out);
  EndEvent(delta.usage, out);
}

void ChatStreamEncoder::AppendHiddenStates(const TextDelta& delta, std::string* out) {
  BeginEvent(delta.index, out);
  out->append(",\"delta\":{");
  hidden_states_.AppendMember(static_cast<size_t>(delta.index), out);
  out->append(",").append(no_reasoning_).append("},\"logprobs\":null,\"finish_reason\":null");
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
