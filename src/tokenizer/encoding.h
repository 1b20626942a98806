// All that an encode can tell about a text: the parallel lists of Hugging Face's Encoding.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/model/token_texts.h"
#include "tokenizer/token_id.h"

namespace portico {

struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

enum class OffsetUnit { kCodePoints, kBytes };

// One entry a token in each list. A token that stands for no text (a special token put around it,
// padding) has offsets {0, 0}, and word and sequence kNone.
struct Encoding {
  static constexpr int32_t kNone = -1;

  std::vector<TokenId> ids;
  TokenTexts tokens;
  std::vector<Span> offsets;       // in code points of the text that was given
  std::vector<Span> byte_offsets;  // the same in bytes of its UTF-8
  std::vector<uint32_t> type_ids;
  std::vector<uint8_t> attention_mask;       // 0 at padding
  std::vector<uint8_t> special_tokens_mask;  // 1 at tokens that the post-processor or padding added
  std::vector<int32_t> word_ids;
  std::vector<int32_t> sequence_ids;  // 0: the text, 1: its pair
  std::vector<Encoding> overflowing;  // the parts that truncation cut off

  // Where each sequence lies, while the encoding is built; sequence_ids follow from it.
  struct Range {
    int32_t sequence;
    uint32_t begin;
    uint32_t end;
  };
  std::vector<Range> sequence_ranges;
  bool trimmed = false;  // the post-processor need not leave spaces out of offsets any more

  size_t size() const { return ids.size(); }
};

}  // namespace portico
