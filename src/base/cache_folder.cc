#include "base/cache_folder.h"

#include <cstdlib>

namespace portico {
namespace {

std::string AbsoluteFrom(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? std::string(value) : std::string();
}

}  // namespace

StatusOr<std::string> CacheFolder() {
  if (std::string own = AbsoluteFrom("PORTICO_CACHE_DIR"); !own.empty()) return own;
  if (std::string xdg = AbsoluteFrom("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/portico";
  if (std::string home = AbsoluteFrom("HOME"); !home.empty()) return home + "/.cache/portico";
  return Error(StatusCode::kFailedPrecondition,
               "a cache folder is needed: set PORTICO_CACHE_DIR, XDG_CACHE_HOME or HOME");
}

}  // namespace portico
