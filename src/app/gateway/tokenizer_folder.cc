#include "app/gateway/tokenizer_folder.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "engine/grpc/tokenizer_files.h"

namespace portico {

StatusOr<OwnFolder> UnpackTokenizer(const std::string& archive) {
  PORTICO_ASSIGN_OR_RETURN(const std::vector<TokenizerFile> files, ReadTokenizerArchive(archive));
  std::error_code ignored;
  auto folder = OwnFolder::Make(
      (std::filesystem::temp_directory_path(ignored) / "portico-tokenizer-").string());
  if (!folder.ok()) {
    return Error(StatusCode::kInternal, "no folder can be made for a worker's tokenizer");
  }
  for (const TokenizerFile& file : files) {
    std::ofstream out(std::filesystem::path(folder->path()) / file.name, std::ios::binary);
    out.write(file.content.data(), static_cast<std::streamsize>(file.content.size()));
    if (!out.flush()) {
      return Error(StatusCode::kInternal, "a worker's tokenizer cannot be written");
    }
  }
  return folder;
}

}  // namespace portico
