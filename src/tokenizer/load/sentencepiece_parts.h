// A SentencePiece model, whichever file it came from, as the parts of a tokenizer.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/model/byte_trie.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {

struct SentencePieceSource {
  enum class Kind {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6
  };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::kNormal;
  };

  std::vector<Piece> pieces;
  bool unigram = true;  // else BPE
  bool byte_fallback = false;
  std::string charsmap;  // the compiled character map; empty: text stays as it is
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  std::string unk_surface = " \xE2\x81\x87 ";  // what the unknown token decodes to
};

// `model`, if not null, is what the source makes; of the pieces it needs only the special ones then.
StatusOr<PipelineParts> PartsOf(SentencePieceSource source,
                                std::unique_ptr<const Model> model = nullptr);
// Whether that is one.
bool IsSpecialPiece(SentencePieceSource::Kind kind);

// The longest user-defined piece at the start of `text`: its length, or 0.
size_t UserDefinedPrefix(const ByteTrie& user_defined, std::string_view text);

}  // namespace portico::tokenizer
