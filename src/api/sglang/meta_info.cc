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

void AppendEntries(const std::vector<TextLogprob>& entries, bool none, bool with_text,
                   std::string* out) {
  Separate(out);
  if (none) {
    out->append("null");
    return;
  }
  out->push_back('[');
  for (const TextLogprob& entry : entries) {
    if (&entry != &entries.front()) out->push_back(',');
    AppendEntry(entry, with_text, out);
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

void LogprobLists::Add(const TextPositionLogprobs& position, bool with_top, bool with_text,
                       bool with_ids) {
  ++count;
  Separate(&tokens);
  AppendEntry(position.chosen, with_text, &tokens);
  // The first prompt token has no log-probability, nor have others in its place.
  const bool none = !position.chosen.logprob;
  if (with_top) AppendEntries(position.top, none, with_text, &top);
  if (with_ids) AppendEntries(position.of_ids, none, with_text, &of_ids);
}

}  // namespace portico::api::sglang
