// Libraries that are loaded when the program runs, so that one binary works with and without them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::media {

// A library of the system, kept until the process ends. Thread safe.
class SharedLibrary {
 public:
  // Loads `file` ("libmp3lame.so.0"). UNAVAILABLE, naming the Debian package that has it, if it is
  // not installed.
  static StatusOr<SharedLibrary> Load(std::string_view file, std::string_view package);

  // Sets the function pointer `*function` to the symbol. UNAVAILABLE if the library has none of
  // that name: another version of it.
  template <typename Function>
  Status Bind(const char* symbol, Function** function) const {
    void* found = nullptr;
    PORTICO_RETURN_IF_ERROR(Find(symbol, &found));
    *function = reinterpret_cast<Function*>(found);
    return OkStatus();
  }

 private:
  SharedLibrary(void* handle, std::string file) : handle_(handle), file_(std::move(file)) {}
  Status Find(const char* symbol, void** found) const;

  void* handle_;
  std::string file_;
};

}  // namespace portico::media
