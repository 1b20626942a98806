// The log in files beside standard error.
#pragma once

#include <string>

#include "base/status.h"

namespace portico {

// From now on lines also go to portico.log in the folder, which is made; ten files of 64 MiB are kept.
// Once, before there are other threads.
Status LogToFolder(const std::string& folder);

}  // namespace portico
