// Test helpers: command lines of serve, and a file with options.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "app/options/options.h"

namespace portico {

inline StatusOr<ParsedOptions> ParseServe(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv = {"serve"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return ParseServeOptions(static_cast<int>(argv.size()), argv.data());
}

// "OK", or what is wrong with them.
inline std::string ErrorOf(std::initializer_list<const char*> arguments) {
  const auto parsed = ParseServe(arguments);
  return parsed.ok() ? "OK" : std::string(MessageOf(parsed.status()));
}

// A file that is gone at the end of the test.
class TempFile {
 public:
  explicit TempFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() /
               ("portico-options-" + std::to_string(getpid()) + ".yaml"))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace portico
