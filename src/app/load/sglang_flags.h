// SGLang's own server arguments for what Portico's say.
#pragma once

#include <string>
#include <vector>

#include "app/options/options.h"

namespace portico {

// `path`: the model's. What stands behind -- comes last, and so wins.
std::vector<std::string> SglangFlags(const ModelOptions& options, const std::string& path);

}  // namespace portico
