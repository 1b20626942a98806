#include "api/sglang/meta_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/common/delta_parts.h"
#include "text/json_writer.h"

namespace portico::api::sglang {
namespace {

void Separate(std::string* list) {
  if (!list->empty()) list->push_back(',');
}

void AppendEntry(const TextLogprob& token, bool with_text, std::string* out) {
  out->push_back('[');
  if (token.logprob) {
    AppendLogprob(*token.logprob, out);
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
      AppendMatchedStop(stop, out);
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

void AppendMediaTokens(const TokenUsage& usage, std::string* out) {
  for (const MediaKind kind : kEachMediaKind) {
    if (usage.Of(kind) == 0) continue;
    out->append(",\"").append(NameOf(kind)).append("_tokens\":");
    AppendJsonInt(usage.Of(kind), out);
  }
}

void AppendCachedDetails(const DeltaExtras* extras, std::string* out) {
  if (extras == nullptr || extras->cached_on_device < 0) {
    out->append("null");
    return;
  }
  out->append("{\"device\":");
  AppendJsonInt(extras->cached_on_device, out);
  out->append(",\"host\":");
  AppendJsonInt(std::max(extras->cached_on_host, 0), out);
  if (extras->cached_in_storage >= 0) {
    out->append(",\"storage\":");
    AppendJsonInt(extras->cached_in_storage, out);
  }
  if (!extras->storage_backend.empty()) {
    out->append(",\"storage_backend\":");
    AppendJsonString(extras->storage_backend, out);
  }
  out->push_back('}');
}

void AppendRank(const DeltaExtras* extras, std::string* out) {
  if (extras != nullptr && extras->data_parallel_rank >= 0) {
    AppendJsonInt(extras->data_parallel_rank, out);
  } else {
    out->append("null");
  }
}

void AppendWeightVersions(const DeltaExtras* extras, std::string_view version,
                          int32_t completion_tokens, std::string* out) {
  const auto append = [out](int32_t begin, int32_t end) {
    out->append(",\"start\":");
    AppendJsonInt(begin, out);
    out->append(",\"end\":");
    AppendJsonInt(end, out);
    out->push_back('}');
  };
  out->push_back('[');
  if (extras == nullptr || extras->weight_versions.empty()) {
    out->append("{\"version\":").append(version);
    append(0, completion_tokens);
  } else {
    for (const WeightVersionSpan& span : extras->weight_versions) {
      if (&span != &extras->weight_versions.front()) out->push_back(',');
      out->append("{\"version\":");
      AppendJsonString(span.version, out);
      append(span.begin, span.end);
    }
  }
  out->push_back(']');
}

std::vector<std::pair<std::string_view, std::string>> SpeculationMeta(
    const SpeculationCounts& counts, int32_t completion_tokens) {
  std::vector<std::pair<std::string_view, std::string>> meta;
  const auto add = [&](std::string_view name, double value) {
    AppendJsonDouble(value, &meta.emplace_back(name, "").second);
  };
  const auto count = [&](std::string_view name, int64_t value) {
    meta.emplace_back(name, std::to_string(value));
  };
  const auto list = [&](std::string_view name, const std::vector<int64_t>& values) {
    if (!values.empty()) meta.emplace_back(name, fmt::format("[{}]", fmt::join(values, ",")));
  };
  const auto verifications = static_cast<double>(counts.verifications);
  if (counts.proposed > 0) {
    add("spec_accept_rate",
        static_cast<double>(counts.correct) / static_cast<double>(counts.proposed));
    add("spec_accept_length", completion_tokens / verifications);
    count("spec_num_correct_drafts", counts.correct);
    count("spec_num_proposed_drafts", counts.proposed);
    count("spec_verify_ct", counts.verifications);
    if (counts.capped > 0) {
      add("spec_cap_length", static_cast<double>(counts.capped) / verifications);
    }
  }
  list("spec_correct_drafts_histogram", counts.correct_histogram);
  list("spec_cap_lens_histogram", counts.cap_histogram);
  return meta;
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
