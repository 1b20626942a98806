// Where encoders put token ids.
#pragma once

#include <cstddef>
#include <cstring>

#include "tokenizer/cache/piece_cache.h"
#include "tokenizer/fused/appender.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

class IdSink : public Appender<TokenId> {
 public:
  using Appender::Appender;

  // Appends the `count` ids at `from`, of which kShortIds may be read in any case.
  void AppendShort(const TokenId* from, size_t count) {
    std::memcpy(Room(PieceCache::kShortIds), from, PieceCache::kShortIds * sizeof(TokenId));
    Filled(count);
  }
};

}  // namespace portico::tokenizer
