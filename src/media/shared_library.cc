#include "media/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace portico::media {

StatusOr<SharedLibrary> SharedLibrary::Load(std::string_view file, std::string_view package) {
  std::string name(file);
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("{} is not installed (Debian package {})", file, package));
  }
  return SharedLibrary(handle, std::move(name));
}

Status SharedLibrary::Find(const char* symbol, void** found) const {
  *found = dlsym(handle_, symbol);
  if (*found != nullptr) return OkStatus();
  return Error(StatusCode::kUnavailable,
               fmt::format("{} has no function {}: another version is needed", file_, symbol));
}

}  // namespace portico::media
