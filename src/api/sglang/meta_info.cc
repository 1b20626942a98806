#include "api/sglang/meta_info.h"

#include "api/openai/answer.h"
#include "text/json_writer.h"

namespace portico::api::sglang {
namespace {

void Separate(std::string* list) {
  if (!list->empty()) list->push_back(',');
}

void AppendEntry(const TextLogprob& token, bool with_text, std::string* out) {
  out->push_back('[');
  if (token.logprob) {
    openai::AppendLogprob(*token.logprob, out);
  } else {
    out->append("null");
  }
  out->push_back(',');
  AppendJsonInt(token.token, out);
  out->push_back(',');
  if (with_text) {
    AppendJsonString(token.text, out);
  } else {
    out->append("null");
  }
  out->push_back(']');
}

}  // namespace

void AppendFinishReason(FinishReason finish, const MatchedStop& stop, int32_t length,
                        std::string* out) {
  switch (finish) {
    case FinishReason::kNone:
      out->append("null");
      return;
    case FinishReason::kStop:
      out->append("{\"type\":\"stop\",\"matched\":");
      openai::AppendMatchedStop(stop, out);
      break;
    case FinishReason::kLength:
      out->append("{\"type\":\"length\",\"length\":");
      AppendJsonInt(length, out);
      break;
    case FinishReason::kAbort:
    case FinishReason::kError:
      out->append(
          "{\"type\":\"abort\",\"message\":\"Aborted\",\"status_code\":null,\"err_type\":null");
      break;
  }
  out->push_back('}');
}

void LogprobLists::Add(const TextPositionLogprobs& position, bool with_top, bool with_text) {
  ++count;
  Separate(&tokens);
  AppendEntry(position.chosen, with_text, &tokens);
  if (!with_top) return;
  Separate(&top);
  if (!position.chosen.logprob) {
    top.append("null");
    return;
  }
  top.push_back('[');
  for (const TextLogprob& candidate : position.top) {
    if (&candidate != &position.top.front()) top.push_back(',');
    AppendEntry(candidate, with_text, &top);
  }
  top.push_back(']');
}

}  // namespace portico::api::sglang
