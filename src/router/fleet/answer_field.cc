#include "router/fleet/answer_field.h"

#include <utility>

#include "base/status.h"

namespace portico::router {

std::optional<Json> FieldOfAnswer(std::string_view answer, std::string_view name) {
  StatusOr<Json> json = Json::Parse(answer);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  Json* const field = json->Find(name);
  return field == nullptr ? std::nullopt : std::optional(std::move(*field));
}

}  // namespace portico::router
