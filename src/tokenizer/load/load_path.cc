#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/folder_entries.h"
#include "tokenizer/compiled/compiled_cache.h"
#include "tokenizer/compiled/compiled_model.h"
#include "tokenizer/load/folder_tokens.h"
#include "tokenizer/load/load.h"
#include "tokenizer/load/mapped_file.h"
#include "tokenizer/load/run_beside.h"

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
  for (const fs::directory_entry& entry : FolderEntries(folder, &error)) {
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

// Smaller files load about as fast from their source.
constexpr size_t kWorthCompiling = size_t{256} << 10;

std::unique_ptr<const FusedEncoder> FusedOf(const PipelineParts& parts, std::string_view stored) {
  if (parts.byte_level.kind != ByteLevelPlan::Kind::kNone) return nullptr;
  return FusedEncoder::Make(parts.normalizer.get(), parts.pre_tokenizer.get(), *parts.model,
                            stored);
}

// `from_source(frame)` loads, and says in `*frame` what CompiledTokenizer::frame keeps; `from_compiled` takes what it
// has kept.
template <typename FromSource, typename FromCompiled>
StatusOr<PipelineParts> ThroughCache(std::string_view kind, std::string_view bytes,
                                     FromSource from_source, FromCompiled from_compiled) {
  std::string frame;
  if (bytes.size() < kWorthCompiling) return from_source(&frame);
  CompiledCache cache = CompiledCache::OfUser();
  std::optional<ContentKey> key = cache.KeyOf(kind, bytes);
  if (!key) return from_source(&frame);
  if (std::optional<CompiledTokenizer> found = cache.Find(*key)) {
    TokenId size = found->model->vocabulary().max_id() + 1;
    std::string_view table = found->decode_table;
    std::string_view fused = found->fused;
    std::unique_ptr<const PieceMerger> merger = std::move(found->merger);
    std::shared_ptr<const CompiledImage> image = found->image;
    StatusOr<PipelineParts> parts = from_compiled(*std::move(found));
    if (parts.ok() && (parts->decode = DecodeTable::Restore(table, size))) {
      parts->fused = FusedOf(*parts, fused);
      parts->merger = std::move(merger);
      parts->image = std::move(image);
      return parts;
    }
  }
  StatusOr<PipelineParts> parts = from_source(&frame);
  if (!parts.ok()) return parts;
  const auto* bpe = dynamic_cast<const Bpe*>(parts->model.get());
  bool byte_level = bpe != nullptr && parts->byte_level.kind != ByteLevelPlan::Kind::kNone;
  std::optional<CompiledWriter> compiled;
  RunBeside(
      byte_level,
      [&] {
        parts->decode.emplace(parts->decode_plan, parts->model->vocabulary());
        compiled = CompiledCache::Begin(frame, *parts->model);
      },
      [&] {
        if (byte_level) parts->merger = PieceMerger::Make(*bpe);
      });
  parts->fused = FusedOf(*parts, {});
  if (compiled) {
    cache.Store(*key, *std::move(compiled), parts->merger.get(), parts->fused.get(),
                &*parts->decode);
  }
  return parts;
}

enum class FileKind { kGguf, kRanks, kSentencePiece, kJson };

FileKind KindOf(std::string_view bytes, const std::string& file) {
  if (bytes.starts_with("GGUF")) return FileKind::kGguf;
  if (LooksLikeRanks(bytes)) return FileKind::kRanks;
  return file.ends_with(".model") ? FileKind::kSentencePiece : FileKind::kJson;
}

StatusOr<PipelineParts> PartsFromGgufBytes(std::string_view bytes) {
  PORTICO_ASSIGN_OR_RETURN(GgufMetadata metadata, GgufMetadata::Parse(bytes));
  return ThroughCache(
      "gguf", bytes.substr(0, metadata.size()),
      [&](std::string*) { return PartsFromGguf(metadata); },
      [&](CompiledTokenizer compiled) {
        return PartsFromGguf(metadata, std::move(compiled.model));
      });
}

// `bytes`: as PartsFromPaddedJson() wants them.
StatusOr<PipelineParts> PartsFromJsonBytes(std::string_view bytes) {
  return ThroughCache(
      "json", bytes, [&](std::string* frame) { return PartsFromPaddedJson(bytes, frame); },
      [&](CompiledTokenizer compiled) {
        return PartsFromFrame(compiled.frame, std::move(compiled.model));
      });
}

StatusOr<PipelineParts> PartsFromBytes(std::string_view bytes, const std::string& file,
                                       bool lower_case) {
  const FileKind kind = KindOf(bytes, file);
  if (lower_case && kind != FileKind::kJson) {
    return Error(StatusCode::kUnimplemented,
                 "only a tokenizer.json can be told here to make texts lower case");
  }
  switch (kind) {
    case FileKind::kGguf:
      return PartsFromGgufBytes(bytes);
    case FileKind::kRanks:
      return ThroughCache(
          "ranks", bytes, [&](std::string*) { return PartsFromTiktoken(bytes, file); },
          [&](CompiledTokenizer compiled) {
            return PartsFromTiktoken(bytes, file, std::move(compiled.model));
          });
    case FileKind::kSentencePiece:
      return ThroughCache(
          "sentencepiece", bytes, [&](std::string*) { return PartsFromSentencePiece(bytes); },
          [&](CompiledTokenizer compiled) {
            return PartsFromSentencePiece(bytes, std::move(compiled.model));
          });
    case FileKind::kJson:
      break;
  }
  if (!lower_case) return PartsFromJsonBytes(bytes);
  PORTICO_ASSIGN_OR_RETURN(std::string lowering, WithLowercase(bytes));
  const size_t size = lowering.size();
  lowering.append(MappedFile::kPadding, '\0');
  return PartsFromJsonBytes(std::string_view(lowering).substr(0, size));
}

}  // namespace

StatusOr<PipelineParts> PartsFromPath(const std::string& path,
                                      const TokenizerLoadOptions& options) {
  std::string file = path;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (is_folder) {
    PORTICO_ASSIGN_OR_RETURN(file, FileInFolder(path));
  }
  PORTICO_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(file));
  StatusOr<PipelineParts> parts = PartsFromBytes(mapped.text(), file, options.lower_case);
  if (!parts.ok()) return Named(file, parts.status());
  const FileKind kind = KindOf(mapped.text(), file);
  if (is_folder && kind != FileKind::kGguf) {
    const bool is_json = kind == FileKind::kJson;
    AddFolderTokens(path, is_json ? mapped.text() : std::string_view(), options.added_tokens,
                    &*parts);
  }
  return parts;
}

}  // namespace portico::tokenizer
