// What unigram_encoder.cc and unigram_places.cc share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer/fused/unigram_encoder.h"
#include "tokenizer/normalize/precompiled.h"

namespace portico::tokenizer {

// Whether the character at `at` is a space that words end at; its length in any case.
bool IsSpaceAt(std::string_view text, size_t at, size_t* length);

// Calls `plain` with each run of plain characters and `other` with each other grapheme, in order.
template <typename Plain, typename Other>
[[gnu::always_inline]] inline void UnigramEncoder::ForEachRun(std::string_view chunk, Plain plain,
                                                              Other other) const {
  const char* p = chunk.data();
  const char* end = p + chunk.size();
  auto plain_at = [&](const char* at, uint32_t* length) {
    DecodedChar c = DecodeChar(at);
    *length = c.length;
    return c.length == 1 ? ascii_plain_[c.code_point] : IsPlain(c.code_point);
  };
  while (p < end) {
    // A plain character in front of one that is not may belong to its grapheme.
    const char* run = p;
    uint32_t length = 0;
    const char* last = p;
    while (p < end && plain_at(p, &length)) {
      last = p;
      p += length;
    }
    if (p < end) p = last;
    if (p > run) plain(std::string_view(run, static_cast<size_t>(p - run)));
    if (p == end) return;
    size_t grapheme = GraphemeLength({p, static_cast<size_t>(end - p)});
    other(std::string_view(p, grapheme));
    p += grapheme;
  }
}

}  // namespace portico::tokenizer
