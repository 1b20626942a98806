#include "app/options/key_variable.h"

#include <cstdlib>

#include "router/worker.h"

namespace portico {

Status TakeKeyVariable(std::string* key) {
  const char* value = std::getenv("PORTICO_API_KEY");
  if (!key->empty() || value == nullptr) return OkStatus();
  if (*value == '\0') {
    return Error(StatusCode::kInvalidArgument,
                 "PORTICO_API_KEY: is set but empty; unset it to serve without a key");
  }
  // A secret that was made from a file often ends with a line break.
  if (!router::IsHeaderKey(value)) {
    return Error(
        StatusCode::kInvalidArgument,
        "PORTICO_API_KEY: has other than printable ASCII, such as a line break at its end");
  }
  *key = value;
  return OkStatus();
}

}  // namespace portico
