// Many texts, or a long one, over several threads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_pool.h"
#include "base/status.h"
#include "tokenizer/encoding.h"
#include "tokenizer/tokenizer.h"

namespace portico {

namespace tokenizer {
class Seams;
}

// What Tokenizer does, for many at once: the same results in the same order, the work cut by bytes and shared by the
// calling thread and those of the pool. A long text is cut itself, where that is known to keep its ids
// (tokenizer/split/seams.h); other long texts are one thread's work. Safe to use from many threads.
class BatchTokenizer {
 public:
  struct Sizes {
    size_t long_text = 64 << 10;  // bytes from which a text is cut
    size_t unit = 16 << 10;       // the least bytes worth a hand-over
  };

  // `pool` outlives this; null: the calling thread does all.
  BatchTokenizer(std::shared_ptr<const Tokenizer> tokenizer, CpuPool* pool);
  BatchTokenizer(std::shared_ptr<const Tokenizer> tokenizer, CpuPool* pool, const Sizes& sizes);
  ~BatchTokenizer();
  BatchTokenizer(const BatchTokenizer&) = delete;
  BatchTokenizer& operator=(const BatchTokenizer&) = delete;

  using Options = Tokenizer::EncodeOptions;

  // The ids of each text. One text that cannot be encoded fails the batch. Where the file pads to the longest of a
  // batch and `options` ask for it, this batch counts.
  StatusOr<std::vector<std::vector<TokenId>>> EncodeIds(std::span<const std::string_view> texts,
                                                        const Options& options) const;
  // One text; appends to `ids`, nothing if it fails.
  Status EncodeIds(std::string_view text, const Options& options, std::vector<TokenId>* ids) const;

  struct Input {
    std::string_view text;
    std::optional<std::string_view> pair;
  };
  StatusOr<std::vector<Encoding>> Encode(std::span<const Input> inputs,
                                         const Options& options) const;

  std::vector<std::string> Decode(std::span<const std::span<const TokenId>> lists,
                                  bool skip_special_tokens) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  struct Unit;

  // The bytes of a share of `total`, of which each thread gets `per_thread`.
  size_t ShareOf(size_t total, size_t per_thread) const;
  void CutText(size_t index, std::string_view text, size_t unit_bytes,
               std::vector<Unit>* units) const;
  void Run(std::span<const std::string_view> texts, const Options& options, Unit* unit) const;
  bool MayCut(const Options& options) const;
  bool PadsToLongest(const Options& options) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  CpuPool* pool_;
  Sizes sizes_;
  std::unique_ptr<const tokenizer::Seams> seams_;
};

}  // namespace portico
