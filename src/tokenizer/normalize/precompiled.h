// The Precompiled normalizer: SentencePiece's character map, applied as the reference does it, grapheme by grapheme.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json.h"
#include "text/normalization.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/normalizer.h"

namespace portico::tokenizer {

StatusOr<std::unique_ptr<const Normalizer>> ParsePrecompiled(const Json& json);
std::unique_ptr<const Normalizer> MakePrecompiled(Charsmap map);

// Only clusters shorter than this are looked up whole.
inline constexpr size_t kMaxCluster = 6;

// The length of the extended grapheme cluster at the start of `text`, valid UTF-8 and not empty.
size_t GraphemeLength(std::string_view text);
// Appends what the normalizer makes of one grapheme.
void AppendPrecompiled(const Charsmap& map, std::string_view grapheme, std::string* out);
// The same as characters that tell what they stand for, behind those of the text before. Returns whether it changes.
bool AppendPrecompiled(const Charsmap& map, std::string_view grapheme,
                       std::vector<NormalizedChar>* chars);

}  // namespace portico::tokenizer
