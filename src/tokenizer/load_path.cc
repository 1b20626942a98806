#include <filesystem>
#include <string>
#include <system_error>

#include "tokenizer/load.h"
#include "tokenizer/mapped_file.h"

namespace portico::tokenizer {
namespace {

namespace fs = std::filesystem;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The tokenizer file of a folder, in the order in which they are trusted.
StatusOr<std::string> FileInFolder(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "tiktoken.model", "tokenizer.model"}) {
    if (Exists(folder / name)) return (folder / name).string();
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    fs::path path = entry.path();
    if (path.extension() == ".tiktoken" || path.extension() == ".gguf") return path.string();
  }
  return Error(StatusCode::kNotFound,
               "there is no tokenizer.json (nor a tiktoken, SentencePiece or GGUF file) in " +
                   folder.string());
}

// A rank file has lines of base64, a space and a number; a SentencePiece model is protobuf.
bool LooksLikeRanks(std::string_view file) {
  std::string_view line = file.substr(0, file.find('\n'));
  size_t space = line.find(' ');
  if (space == std::string_view::npos || line.size() > 4096) return false;
  return line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos;
}

Status Named(const std::string& path, const Status& status) {
  return Error(status.code(), path + ": " + std::string(MessageOf(status)));
}

}  // namespace

StatusOr<PipelineParts> PartsFromPath(const std::string& path) {
  std::string file = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    PORTICO_ASSIGN_OR_RETURN(file, FileInFolder(path));
  }
  PORTICO_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(file));
  std::string_view bytes = mapped.text();
  StatusOr<PipelineParts> parts;
  if (bytes.starts_with("GGUF")) {
    parts = PartsFromGguf(bytes);
  } else if (LooksLikeRanks(bytes)) {
    parts = PartsFromTiktoken(bytes, file);
  } else if (file.ends_with(".model")) {
    parts = PartsFromSentencePiece(bytes);
  } else {
    parts = PartsFromJson(bytes);
  }
  if (!parts.ok()) return Named(file, parts.status());
  return parts;
}

}  // namespace portico::tokenizer
