// Where the tree stands that a test was built from.
#pragma once

#include <string>

namespace portico {

// Absolute, without a slash at the end. For tests alone: they read models/demo, docs and tests.
std::string SourceDir();

}  // namespace portico
