#include "api/common/delta_parts.h"

#include <cmath>

#include "api/common/error_body.h"
#include "text/json_writer.h"

namespace portico::api {

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

Status ErrorOf(const TextDelta& delta) {
  return delta.error.ok() ? Error(StatusCode::kInternal, "the engine failed") : delta.error;
}

bool HasContent(const TextDelta& delta) {
  if (!delta.text.empty()) return true;
  if (delta.tokens.empty()) return false;
  return delta.tokens.size() > 1 || delta.tokens[0] != delta.matched_stop.token;
}

}  // namespace portico::api
