#include "api/openai/answer.h"

#include <cmath>

#include "api/openai/errors.h"
#include "api/reply.h"
#include "base/clock.h"
#include "text/json_writer.h"

namespace portico::api::openai {

AnswerHead MakeAnswerHead(std::string_view prefix, const std::string& rid,
                          const std::string& model) {
  return {rid.empty() ? std::string(prefix) + NewRequestId() : rid, UnixSeconds(), model};
}

void AppendUsage(const TokenUsage& usage, std::string* out) {
  out->append("{\"prompt_tokens\":");
  AppendJsonInt(usage.prompt_tokens, out);
  out->append(",\"completion_tokens\":");
  AppendJsonInt(usage.completion_tokens, out);
  out->append(",\"total_tokens\":");
  AppendJsonInt(int64_t{usage.prompt_tokens} + usage.completion_tokens, out);
  out->append(",\"prompt_tokens_details\":{\"cached_tokens\":");
  AppendJsonInt(usage.cached_tokens, out);
  out->append("}}");
}

void AppendMatchedStop(const MatchedStop& stop, std::string* out) {
  if (!stop.text.empty()) {
    AppendJsonString(stop.text, out);
  } else if (stop.token >= 0) {
    AppendJsonInt(stop.token, out);
  } else {
    out->append("null");
  }
}

void AppendTokenIds(std::span<const TokenId> ids, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJsonInt(ids[i], out);
  }
  out->push_back(']');
}

void AppendLogprob(float logprob, std::string* out) {
  if (!std::isfinite(logprob)) {
    out->append("-9999.0");
    return;
  }
  AppendJsonFloat(logprob, out);
}

void AppendErrorEvents(const Status& error, std::string* out) {
  out->append("data: ");
  out->append(ErrorBody(error));
  out->append("\n\n");
  out->append(kDoneEvent);
}

void AppendAnswerHead(const AnswerHead& head, std::string_view object, std::string* out) {
  out->append("{\"id\":");
  AppendJsonString(head.id, out);
  out->append(",\"object\":\"");
  out->append(object);
  out->append("\",\"created\":");
  AppendJsonInt(head.created, out);
  out->append(",\"model\":");
  AppendJsonString(head.model, out);
  out->append(",\"choices\":[");
}

Status ErrorOf(const TextDelta& delta) {
  return delta.error.ok() ? Error(StatusCode::kInternal, "the engine failed") : delta.error;
}

bool HasContent(const TextDelta& delta) {
  if (!delta.text.empty()) return true;
  if (delta.tokens.empty()) return false;
  return delta.tokens.size() > 1 || delta.tokens[0] != delta.matched_stop.token;
}

}  // namespace portico::api::openai
