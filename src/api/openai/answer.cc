#include "api/openai/answer.h"

#include <algorithm>

#include "api/reply.h"
#include "api/sglang/meta_info.h"
#include "base/clock.h"
#include "text/json_writer.h"

namespace portico::api::openai {

AnswerHead MakeAnswerHead(std::string_view prefix, const std::string& rid,
                          const std::string& model) {
  return {rid.empty() ? NewRequestId(prefix) : rid, UnixSeconds(), model};
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
  sglang::AppendMediaTokens(usage, out);
  out->push_back('}');
  const int32_t reasoning = std::max(usage.reasoning_tokens, 0);
  if (reasoning > 0) {
    // OpenAI's place.
    out->append(",\"completion_tokens_details\":{\"reasoning_tokens\":");
    AppendJsonInt(reasoning, out);
    out->push_back('}');
  }
  // SGLang's, which is always there.
  out->append(",\"reasoning_tokens\":");
  AppendJsonInt(reasoning, out);
  out->push_back('}');
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

std::string_view CallsReason(const GenerationOptions& options) {
  return options.legacy_functions ? "function_call" : "tool_calls";
}

}  // namespace portico::api::openai
