// Checks of protobuf fields: INVALID_ARGUMENT naming the field as the proto spells it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "message/sampling_ranges.h"

namespace portico::api::rpc {

Status CheckNumber(std::string_view field, double value, const NumberRange& range);
Status CheckInteger(std::string_view field, int64_t value, IntRange range);
// Of a list; `place` counts from 0.
Status CheckTokenId(std::string_view field, size_t place, int64_t id);
Status CheckRid(std::string_view field, const std::string& rid);
// The refusal of what this server cannot honour.
Status NotSupported(std::string_view field);

}  // namespace portico::api::rpc
