// The Precompiled normalizer: SentencePiece's character map, applied as the reference does it, grapheme by grapheme.
#pragma once

#include <memory>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/normalizer.h"

namespace portico::tokenizer {

StatusOr<std::unique_ptr<const Normalizer>> ParsePrecompiled(const Json& json);
std::unique_ptr<const Normalizer> MakePrecompiled(Charsmap map);

}  // namespace portico::tokenizer
