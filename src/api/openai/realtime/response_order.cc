#include <fmt/format.h>

#include <utility>

#include "api/openai/realtime/response.h"

namespace portico::api::openai {
namespace {

constexpr size_t kMaxMetadata = 16;

// Items, or the names of items that are in the conversation.
StatusOr<Conversation> ReadInput(const Json& input, const Conversation& conversation) {
  constexpr std::string_view kField = "response.input";
  if (!input.is_array()) return InvalidArgument(kField, "response.input must be a list of items");
  if (input.as_array().size() > Conversation::kMaxItems) {
    return InvalidArgument(kField,
                           fmt::format("response.input has {} items; at most {} are allowed",
                                       input.as_array().size(), Conversation::kMaxItems));
  }
  Conversation read;
  // The same item may be named again and again.
  const auto fits = [&read](const RealtimeItem& item) {
    return read.bytes() + item.bytes() <= Conversation::kMaxBytes;
  };
  const auto too_long = [kField] {
    return InvalidArgument(kField, fmt::format("response.input has more than {} MB of text",
                                               Conversation::kMaxBytes >> 20));
  };
  for (const Json& given : input.as_array()) {
    if (given.GetString("type") == "item_reference") {
      const RealtimeItem* item = conversation.Find(given.GetString("id"));
      if (item == nullptr) {
        return InvalidArgument(kField, "response.input refers to an item that does not exist");
      }
      if (!fits(*item)) return too_long();
      read.Append(*item);
      continue;
    }
    std::string sound;
    auto item = ReadItem(given, &sound);
    if (!item.ok()) return InvalidArgument(kField, std::string(MessageOf(item.status())));
    if (item->unheard) {
      return InvalidArgument(kField,
                             "response.input: create an item of sound first, and refer to it");
    }
    if (!fits(*item)) return too_long();
    read.Append(*std::move(item));
  }
  return read;
}

Status ReadMetadata(const Json& metadata) {
  bool fits = metadata.is_object() && metadata.as_object().size() <= kMaxMetadata;
  for (size_t i = 0; fits && i < metadata.as_object().size(); ++i) {
    const Json& value = metadata.as_object()[i].second;
    fits = value.is_string() && value.as_string().size() <= 512;
  }
  if (fits) return OkStatus();
  return InvalidArgument(
      "response.metadata",
      fmt::format("response.metadata must be at most {} short texts by name", kMaxMetadata));
}

}  // namespace

StatusOr<ResponseOrder> ResponseOrder::Read(const Json& event, const RealtimeConfig& session,
                                            const pipeline::Pipeline& pipeline,
                                            Conversation& conversation) {
  ResponseOrder order;
  order.config = session;
  const Json* given = event.Find("response");
  if (given == nullptr || given->is_null()) return order;
  if (!given->is_object()) return InvalidArgument("response", "response must be an object");
  Json rest(JsonObject{});
  for (const auto& [name, value] : given->as_object()) {
    if (value.is_null()) continue;
    if (name == "conversation") {
      if (value != Json("auto") && value != Json("none")) {
        return InvalidArgument("response.conversation",
                               "response.conversation must be auto or none");
      }
      order.outside = value == Json("none");
    } else if (name == "input") {
      PORTICO_ASSIGN_OR_RETURN(order.input, ReadInput(value, conversation));
    } else if (name == "metadata") {
      PORTICO_RETURN_IF_ERROR(ReadMetadata(value));
      order.metadata = value;
    } else {
      rest.Set(name, value);
    }
  }
  PORTICO_RETURN_IF_ERROR(order.config.Update(rest, pipeline, "response"));
  return order;
}

}  // namespace portico::api::openai
