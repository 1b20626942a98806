// Compiled tokenizers on disk: the folder "tokenizers" of the user's cache (base/cache_folder.h), one file for each
// content. A file's name and header are the hash of the source's bytes, so a changed source never meets an old entry;
// what is damaged, of another version or unreadable counts as not there. A cache that cannot be written is no error.
// The least recently used files go when all of them together pass a bound.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/compiled_image.h"
#include "tokenizer/decode/decode_table.h"
#include "tokenizer/fused/fused_encoder.h"
#include "tokenizer/merge/piece_merger.h"
#include "tokenizer/model/model.h"

namespace portico::tokenizer {

struct CompiledTokenizer {
  std::shared_ptr<const CompiledImage> image;  // what all else refers to
  std::string frame;  // for PartsFromFrame(); empty for sources that keep it elsewhere
  std::unique_ptr<const Model> model;
  std::unique_ptr<const PieceMerger> merger;  // of a byte-level model
  std::string_view fused;                     // for FusedEncoder::Make()
  std::string_view decode_table;              // for DecodeTable::Restore()
};

// Safe to use from several threads and processes at once.
class CompiledCache {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

  // The user's, or a cache that holds nothing: where PORTICO_TOKENIZER_CACHE is 0 or off, or there is no place for it.
  static CompiledCache OfUser();
  // `folder` is made when something is stored; "" holds nothing.
  explicit CompiledCache(std::string folder, uint64_t max_bytes = kMaxBytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // `kind` tells sources apart that read the same bytes in different ways. Nothing without a usable folder.
  std::optional<ContentKey> KeyOf(std::string_view kind, std::string_view source) const;
  std::optional<CompiledTokenizer> Find(const ContentKey& key) const;
  // What Store() goes on with. Nothing for a model that has no compiled form.
  static std::optional<CompiledWriter> Begin(std::string_view frame, const Model& model);
  // Writes it under a temporary name and renames; does nothing where that fails.
  void Store(const ContentKey& key, CompiledWriter begun, const PieceMerger* merger = nullptr,
             const FusedEncoder* fused = nullptr, const DecodeTable* decode = nullptr) const;

  std::string PathOf(const ContentKey& key) const;

 private:
  void Trim() const;

  std::string folder_;
  uint64_t max_bytes_;
};

}  // namespace portico::tokenizer
