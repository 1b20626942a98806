// Checks of protobuf fields: INVALID_ARGUMENT naming the field as the proto spells it.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "message/sampling_ranges.h"

namespace portico::api::rpc {

Status CheckNumber(std::string_view field, double value, const NumberRange& range);
Status CheckInteger(std::string_view field, int64_t value, IntRange range);
// Of a list; `place` counts from 0.
Status CheckTokenId(std::string_view field, size_t place, int64_t id);
template <typename Repeated>
auto SpanOf(const Repeated& field) {
  return std::span(field.data(), static_cast<size_t>(field.size()));
}

// Every one of a list, within a vocabulary too.
Status CheckTokenIds(std::string_view field, std::span<const int32_t> ids, int32_t vocab_size);
// Stop strings.
Status CheckStops(std::string_view field,
                  const google::protobuf::RepeatedPtrField<std::string>& stops);
Status CheckRid(std::string_view field, const std::string& rid);
// The refusal of what this server cannot honour.
Status NotSupported(std::string_view field);
// Of what operators ask: INVALID_ARGUMENT, without a field, for one whose number the message does not define, for what it
// asks would be left undone.
Status CheckNumbersKnown(const google::protobuf::Message& message);

}  // namespace portico::api::rpc
