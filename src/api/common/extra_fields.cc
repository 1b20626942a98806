#include "api/common/extra_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace portico::api {
namespace {

constexpr size_t kMaxProcessorBytes = size_t{1} << 20;  // a pickled class, in hexadecimal
constexpr size_t kMaxKeyBytes = 4096;
constexpr size_t kMaxStopPatterns = 32;  // SGLang's own bounds
constexpr size_t kMaxPatternBytes = 256;
constexpr size_t kMaxCustomParamsBytes = size_t{64} << 10;
constexpr int64_t kMaxPort = 65535;

Status ReadBounded(std::string_view name, Element value, size_t most, std::string* out) {
  PORTICO_RETURN_IF_ERROR(ReadString(name, value, out));
  if (out->size() <= most) return OkStatus();
  return InvalidArgument(
      name, fmt::format("{} must have at most {} bytes, got {}", name, most, out->size()));
}

template <std::string RequestExtras::* kMember, size_t kMost>
Status ReadText(std::string_view name, Element value, RequestExtras* extras) {
  return ReadBounded(name, value, kMost, &(extras->*kMember));
}

Status ReadPort(std::string_view name, Element value, RequestExtras* extras) {
  return ReadInt32(name, value, {1, kMaxPort}, &extras->bootstrap_port);
}

Status ReadRoom(std::string_view name, Element value, RequestExtras* extras) {
  int64_t room = 0;
  PORTICO_RETURN_IF_ERROR(ReadInt64(name, value, {0, INT64_MAX}, &room));
  extras->bootstrap_room = room;
  return OkStatus();
}

Status ReadRank(std::string_view name, Element value, RequestExtras* extras) {
  extras->rank_field = name;
  return ReadInt32(name, value, {0, kMaxInt32}, &extras->data_parallel_rank);
}

Status ReadHiddenStates(std::string_view name, Element value, RequestExtras* extras) {
  std::string_view word;
  if (!value.get(word) && word == "last") {
    extras->return_hidden_states = true;
    extras->only_last_hidden_state = true;
    return OkStatus();
  }
  if (!value.is_bool()) return WrongValue(name, "true, false or \"last\"", value);
  return ReadBool(name, value, &extras->return_hidden_states);
}

Status ReadRoutedExperts(std::string_view name, Element value, RequestExtras* extras) {
  return ReadBool(name, value, &extras->return_routed_experts);
}

Status ReadStopRegex(std::string_view name, Element value, RequestExtras* extras) {
  const auto add = [&](Element item) -> Status {
    std::string pattern;
    PORTICO_RETURN_IF_ERROR(ReadBounded(name, item, kMaxPatternBytes, &pattern));
    if (pattern.empty()) return InvalidArgument(name, fmt::format("{} must not be empty", name));
    if (extras->stop_regex.size() == kMaxStopPatterns) {
      return InvalidArgument(name, fmt::format("at most {} patterns", kMaxStopPatterns));
    }
    extras->stop_regex.push_back(std::move(pattern));
    return OkStatus();
  };
  simdjson::dom::array list;
  if (value.get(list)) return add(value);
  for (Element item : list) PORTICO_RETURN_IF_ERROR(add(item));
  return OkStatus();
}

Status ReadCustomParams(std::string_view name, Element value, RequestExtras* extras) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  extras->custom_params = simdjson::minify(value);
  if (extras->custom_params.size() <= kMaxCustomParamsBytes) return OkStatus();
  return InvalidArgument(
      name, fmt::format("{} must have at most {} bytes of JSON", name, kMaxCustomParamsBytes));
}

Status ReadSession(std::string_view name, Element value, RequestExtras* extras) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  SessionParams session;
  for (auto [key, item] : simdjson::dom::object(value)) {
    if (item.is_null()) continue;
    Status status;
    if (key == "id") {
      status = ReadBounded(name, item, kMaxKeyBytes, &session.id);
    } else if (key == "rid") {
      status = ReadRequestName(name, item, &session.rid);
    } else if (key == "offset") {
      status = ReadInt32(name, item, {-kMaxInt32, kMaxInt32}, &session.offset);
    } else if (key == "replace") {
      status = ReadBool(name, item, &session.replace);
    } else if (key == "drop_previous_output") {
      status = ReadBool(name, item, &session.drop_previous_output);
    } else {
      status = InvalidArgument(name, fmt::format("session_params has no {:.64}", key));
    }
    PORTICO_RETURN_IF_ERROR(status);
  }
  if (session.id.empty()) return InvalidArgument(name, "session_params.id is required");
  extras->session = std::move(session);
  return OkStatus();
}

struct ExtraField {
  std::string_view name;  // what `read` is given
  Status (*read)(std::string_view name, Element value, RequestExtras* extras);
  bool per_prompt;
};

constexpr ExtraField kExtraFields[] = {
    {"bootstrap_host", ReadText<&RequestExtras::bootstrap_host, 255>, true},
    {"bootstrap_port", ReadPort, true},
    {"bootstrap_room", ReadRoom, true},
    {"cache_salt", ReadText<&RequestExtras::cache_salt, kMaxKeyBytes>, true},
    {"custom_logit_processor", ReadText<&RequestExtras::custom_logit_processor, kMaxProcessorBytes>,
     true},
    {"custom_params", ReadCustomParams, false},
    {"data_parallel_rank", ReadRank, false},
    {"extra_key", ReadText<&RequestExtras::extra_key, kMaxKeyBytes>, true},
    {"lora_path", ReadText<&RequestExtras::lora_path, kMaxKeyBytes>, true},
    {"return_hidden_states", ReadHiddenStates, true},
    {"return_routed_experts", ReadRoutedExperts, false},
    {"routed_dp_rank", ReadRank, false},
    {"session_params", ReadSession, false},
    {"stop_regex", ReadStopRegex, false},
};
static_assert(IsSortedByName(kExtraFields));

const ExtraField* FindField(std::string_view name) {
  for (const ExtraField& field : kExtraFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

// What asks for nothing, however it is spelled: many clients write every field of their tables.
bool AsksForNothing(std::string_view name, Element value) {
  if (value.is_null()) return true;
  bool flag = false;
  if (!value.get(flag)) return !flag && name.starts_with("return_");
  std::string_view text;
  if (!value.get(text)) return text.empty() && name != "stop_regex";
  simdjson::dom::object members;
  if (!value.get(members)) return members.size() == 0 && name.ends_with("_params");
  simdjson::dom::array list;
  return !value.get(list) && std::all_of(list.begin(), list.end(), [name](Element item) {
    return AsksForNothing(name, item);
  });
}

}  // namespace

bool IsExtraField(std::string_view name) { return FindField(name) != nullptr; }

bool IsPerPromptExtra(std::string_view name) {
  const ExtraField* field = FindField(name);
  return field != nullptr && field->per_prompt;
}

Status ReadExtraField(std::string_view name, Element value,
                      std::shared_ptr<const RequestExtras>* extras) {
  if (AsksForNothing(name, value)) return OkStatus();
  const ExtraField* field = FindField(name);
  simdjson::dom::array list;
  if (field->per_prompt && !value.get(list)) {
    const Element first = *list.begin();
    const std::string text = simdjson::minify(first);
    for (Element item : list) {
      if (simdjson::minify(item) != text) {
        return InvalidArgument(name, fmt::format("{} must be the same for all prompts", name));
      }
    }
    value = first;
  }
  auto own = *extras == nullptr ? std::make_shared<RequestExtras>()
                                : std::make_shared<RequestExtras>(**extras);
  PORTICO_RETURN_IF_ERROR(field->read(field->name, value, own.get()));
  *extras = std::move(own);
  return OkStatus();
}

Status ReadEmbeddingRows(std::string_view name, Element rows, RequestExtras* extras) {
  simdjson::dom::array list;
  if (rows.get(list) || list.size() == 0) {
    return WrongValue(name, "a list of rows of numbers", rows);
  }
  size_t width = 0;
  for (Element row : list) {
    simdjson::dom::array numbers;
    if (row.get(numbers) || numbers.size() == 0) return WrongValue(name, "rows of numbers", row);
    if (width == 0) width = numbers.size();
    if (numbers.size() != width) {
      return InvalidArgument(name, fmt::format("{} must have rows of one length", name));
    }
    for (Element number : numbers) {
      double value = 0;
      if (number.get(value) || !std::isfinite(static_cast<float>(value))) {
        return WrongValue(name, "rows of numbers", number);
      }
      extras->input_embeddings.push_back(static_cast<float>(value));
    }
  }
  extras->embedding_size = static_cast<int32_t>(width);
  return OkStatus();
}

}  // namespace portico::api
