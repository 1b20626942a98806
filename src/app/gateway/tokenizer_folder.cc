#include "app/gateway/tokenizer_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "engine/grpc/tokenizer_files.h"

namespace portico {

StatusOr<TempFolder> TempFolder::Make() {
  std::error_code ignored;
  std::string path =
      (std::filesystem::temp_directory_path(ignored) / "portico-tokenizer-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return Error(StatusCode::kInternal, "no folder can be made for a worker's tokenizer");
  }
  return TempFolder(std::move(path));
}

StatusOr<TempFolder> UnpackTokenizer(const std::string& archive) {
  PORTICO_ASSIGN_OR_RETURN(const std::vector<TokenizerFile> files, ReadTokenizerArchive(archive));
  PORTICO_ASSIGN_OR_RETURN(TempFolder folder, TempFolder::Make());
  for (const TokenizerFile& file : files) {
    std::ofstream out(std::filesystem::path(folder.path()) / file.name, std::ios::binary);
    out.write(file.content.data(), static_cast<std::streamsize>(file.content.size()));
    if (!out.flush()) {
      return Error(StatusCode::kInternal, "a worker's tokenizer cannot be written");
    }
  }
  return folder;
}

}  // namespace portico
