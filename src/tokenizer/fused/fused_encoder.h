// Text to ids in one go, for the families whose normalizer, pre-tokenizer and model go together so that nothing
// between them has to be written down: no copies of the text, and words that were seen before cost a look-up. Byte-level BPE has an encoder of its own (byte_level_encoder.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/cache/piece_cache.h"
#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/model/model.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/split/pre_tokenizer.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

class IdSink;
class PlaceSink;

// Immutable, safe to use from many threads.
class FusedEncoder {
 public:
  virtual ~FusedEncoder() = default;

  // Null unless the ids are those of the parts, which must live as long as the encoder; `normalizer` and
  // `pre_tokenizer` may be null. `stored` spares the work if it is what an encoder of the same parts saved; anything else
  // is safe. It is used where it lies, so it must outlive the encoder too.
  static std::unique_ptr<const FusedEncoder> Make(const Normalizer* normalizer,
                                                  const PreTokenizer* pre_tokenizer,
                                                  const Model& model, std::string_view stored = {});
  // Appends the tables that take long to make, if any.
  virtual void Save(CompiledWriter* out) const { static_cast<void>(out); }

  // Appends the ids of `text`: valid UTF-8, not empty, not normalized, without added tokens. `at_start`: nothing is
  // in front of it. False where this text needs the general way; what was appended counts for nothing then.
  virtual bool Encode(std::string_view text, bool at_start, IdSink* out) const = 0;
  // The same with their places, one for each id, in words of their own. `text` is a part of the sink's.
  virtual bool EncodePlaced(std::string_view text, bool at_start, IdSink* out,
                            PlaceSink* places) const = 0;
  virtual std::string_view Name() const = 0;
  // This thread's memory of stretches with added tokens in them.
  TextCache* raw_texts() const;

 protected:
  // This thread's cache for this encoder.
  PieceCache* Cache() const { return caches_.OfThread(); }

 private:
  PieceCaches caches_;
};

}  // namespace portico::tokenizer
