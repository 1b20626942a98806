#include "app/options/key_variable.h"

#include <cstdlib>

namespace portico {

Status TakeKeyVariable(std::string* key) {
  const char* value = std::getenv("PORTICO_API_KEY");
  if (!key->empty() || value == nullptr) return OkStatus();
  if (*value == '\0') {
    return Error(StatusCode::kInvalidArgument,
                 "PORTICO_API_KEY: is set but empty; unset it to serve without a key");
  }
  *key = value;
  return OkStatus();
}

}  // namespace portico
