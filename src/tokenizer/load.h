// From files to the parts of a tokenizer.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {

// The text of a tokenizer.json.
StatusOr<PipelineParts> PartsFromJson(std::string_view json);
// The bytes of a GGUF file.
StatusOr<PipelineParts> PartsFromGguf(std::string_view file);
// A tiktoken rank file; `path` names it, its folder may hold tiktoken_spec.json.
StatusOr<PipelineParts> PartsFromTiktoken(std::string_view file, const std::string& path);
// A SentencePiece model.
StatusOr<PipelineParts> PartsFromSentencePiece(std::string_view file);

// Whatever `path` is.
StatusOr<PipelineParts> PartsFromPath(const std::string& path);

}  // namespace portico::tokenizer
