#include "app/program_path.h"

#include <filesystem>
#include <utility>

namespace portico {
namespace {

std::string& NamedProgram() {
  static std::string path;
  return path;
}

}  // namespace

std::string ProgramPath() {
  if (!NamedProgram().empty()) return NamedProgram();
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

void SetProgramPath(std::string path) { NamedProgram() = std::move(path); }

}  // namespace portico
