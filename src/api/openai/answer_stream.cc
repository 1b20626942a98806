#include "api/openai/answer_stream.h"

#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

// Of an event's head, beside the names in it.
constexpr size_t kHeadBytes = 128;

}  // namespace

AnswerStream::AnswerStream(const AnswerHead& head, std::string_view object,
                           const GenerationOptions& options)
    : logprobs_(options.logprobs),
      token_ids_(options.return_token_ids),
      calls_reason_(CallsReason(options)),
      plain_(!options.logprobs && !options.return_token_ids && !options.continuous_usage_stats),
      include_usage_(options.include_usage),
      continuous_usage_(options.continuous_usage_stats) {
  head_.reserve(kHeadBytes + head.id.size() + head.model.size());
  head_.append("data: ");
  AppendAnswerHead(head, object, &head_);
  choices_ = head_.size();
  head_.append("{\"index\":");
}

AnswerStream::Events AnswerStream::EventsOf(const TextDelta& delta, std::string* out) {
  if (ended_) return {};
  if (delta.finish == FinishReason::kError) {
    OnError(ErrorOf(delta), out);
    return {};
  }
  const bool finish = delta.finish != FinishReason::kNone;
  if (delta.parsed) {
    return {!delta.text.empty() || !delta.reasoning.empty() || !delta.calls.empty() ||
                ((logprobs_ || token_ids_) && HasContent(delta)),
            finish};
  }
  return {finish ? HasContent(delta) : !delta.text.empty() || !delta.tokens.empty(), finish};
}

void AnswerStream::OnEnd(const TokenUsage& total, std::string* out) {
  if (ended_) return;
  ended_ = true;
  if (include_usage_) {
    out->append(head_, 0, choices_).append("],\"usage\":");
    AppendUsage(total, out);
    out->append("}\n\n");
  }
  out->append(kDoneEvent);
}

void AnswerStream::OnError(const Status& error, std::string* out) {
  if (ended_) return;
  ended_ = true;
  AppendErrorEvents(error, out);
}

void AnswerStream::BeginEvent(int32_t index, std::string* out) const {
  out->append(head_);
  AppendJsonInt(index, out);
}

void AnswerStream::EndEvent(const TokenUsage& usage, std::string* out) const {
  out->append("}]");
  if (continuous_usage_) {
    out->append(",\"usage\":");
    AppendUsage(usage, out);
  } else if (include_usage_) {
    out->append(",\"usage\":null");
  }
  out->append("}\n\n");
}

void AnswerStream::AppendFinishReason(const TextDelta& delta, std::string* out) const {
  out->append(",\"finish_reason\":\"");
  out->append(delta.ends_in_calls ? calls_reason_ : FinishReasonName(delta.finish));
  out->append("\",\"matched_stop\":");
  AppendMatchedStop(delta.matched_stop, out);
}

}  // namespace portico::api::openai
