// Reading a stage's `factory` mapping: what it does not know is refused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pipeline/config/config.h"

namespace portico::pipeline {

// INVALID_ARGUMENT for a key that is not in `known`.
Status CheckArguments(const StageConfig& config, std::span<const std::string_view> known);
// Absent ones leave `out` as it is.
Status ReadArgument(const StageConfig& config, std::string_view key, std::string* out);
Status ReadArgument(const StageConfig& config, std::string_view key, double min, double max,
                    double* out);
Status ReadArgument(const StageConfig& config, std::string_view key, bool* out);
// A list of texts.
Status ReadArgument(const StageConfig& config, std::string_view key, std::vector<std::string>* out);

}  // namespace portico::pipeline
