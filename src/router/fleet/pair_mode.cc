#include "router/fleet/pair_mode.h"

#include <fmt/format.h>

#include <optional>

#include "router/fleet/answer_field.h"
#include "text/json.h"

namespace portico::router {

std::string PairModeOf(std::string_view server_info) {
  constexpr std::string_view kMode = "disaggregation_mode";
  const std::optional<Json> mode = FieldOfAnswer(server_info, kMode);
  if (mode && mode->is_string()) return mode->as_string();
  // Some releases have their options in an object of their own.
  const std::optional<Json> inner = FieldOfAnswer(server_info, "server_args");
  return inner && inner->is_object() ? inner->GetString(kMode) : std::string();
}

Status CheckPairMode(Role role, std::string_view mode) {
  if (mode.empty() || mode == RoleName(role)) return OkStatus();
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("it is configured as {} worker, but runs with --disaggregation-mode "
                           "{:.32}",
                           RoleName(role), mode));
}

}  // namespace portico::router
