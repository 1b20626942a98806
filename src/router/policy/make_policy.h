// Policies by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

// The names that MakePolicy() takes, in the order in which help lists them.
std::span<const std::string_view> PolicyNames();

// INVALID_ARGUMENT for a name that is none.
StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options);

}  // namespace portico::router
