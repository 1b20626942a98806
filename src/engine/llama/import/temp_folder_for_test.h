// Test helper: a folder that lives as long as the object, and can stand for an environment
// variable's folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace portico::llama {

class TempFolder {
 public:
  // `variable`, if given, names the folder until the object is gone.
  explicit TempFolder(const char* variable = nullptr) {
    std::string pattern = (std::filesystem::temp_directory_path() / "portico-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot make " << pattern;
    path_ = pattern;
    if (variable != nullptr) {
      variable_ = variable;
      if (const char* old = std::getenv(variable)) before_ = old;
      ::setenv(variable, path_.c_str(), 1);
    }
  }
  ~TempFolder() {
    if (before_) ::setenv(variable_.c_str(), before_->c_str(), 1);
    if (!before_ && !variable_.empty()) ::unsetenv(variable_.c_str());
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::string variable_;
  std::optional<std::string> before_;
};

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace portico::llama
