#include "api/grpc/field_checks.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

namespace portico::api::rpc {

Status CheckNumber(std::string_view field, double value, const NumberRange& range) {
  if (range.Holds(value)) return OkStatus();
  return InvalidArgument(
      field, fmt::format("{} must be {}, got {}", field, range.text, static_cast<float>(value)));
}

Status CheckInteger(std::string_view field, int64_t value, IntRange range) {
  if (value >= range.min && value <= range.max) return OkStatus();
  if (range.max == INT64_MAX) {
    return InvalidArgument(field, fmt::format("{} must be an integer of at least {}, got {}", field,
                                              range.min, value));
  }
  return InvalidArgument(field, fmt::format("{} must be an integer from {} to {}, got {}", field,
                                            range.min, range.max, value));
}

Status CheckTokenId(std::string_view field, size_t place, int64_t id) {
  if (id >= 0 && id <= kMaxInt32) return OkStatus();
  return InvalidArgument(field,
                         fmt::format("{}[{}] must be {}, got {}", field, place, kTokenIdText, id));
}

Status CheckTokenIds(std::string_view field, std::span<const int32_t> ids, int32_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(CheckTokenId(field, i, ids[i]));
    if (ids[i] < vocab_size) continue;
    return InvalidArgument(field, fmt::format("{}[{}]: token id {} is not in the vocabulary (0 to "
                                              "{})",
                                              field, i, ids[i], vocab_size - 1));
  }
  return OkStatus();
}

Status CheckStops(std::string_view field,
                  const google::protobuf::RepeatedPtrField<std::string>& stops) {
  if (static_cast<size_t>(stops.size()) > kMaxStops) {
    return InvalidArgument(field, fmt::format("{} must hold at most {} strings, got {}", field,
                                              kMaxStops, stops.size()));
  }
  for (const std::string& stop : stops) {
    if (stop.empty()) return InvalidArgument(field, "stop strings must not be empty");
  }
  return OkStatus();
}

Status CheckRid(std::string_view field, const std::string& rid) {
  if (rid.size() <= kMaxRidBytes) return OkStatus();
  return InvalidArgument(field,
                         fmt::format("{} must be at most {} bytes long", field, kMaxRidBytes));
}

Status CheckNumbersKnown(const google::protobuf::Message& message) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return OkStatus();
  return InvalidArgument(
      "", fmt::format("{} has no field {}: nothing was done", message.GetDescriptor()->name(),
                      unknown.field(0).number()));
}

Status NotSupported(std::string_view field) {
  return InvalidArgument(field,
                         fmt::format("{} is not supported by this server: leave it out", field));
}

}  // namespace portico::api::rpc
