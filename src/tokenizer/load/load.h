// From files to the parts of a tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/load/gguf.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {

// The text of a tokenizer.json. `frame`, if not null, gets the JSON of all of it but the model.
StatusOr<PipelineParts> PartsFromJson(std::string_view json, std::string* frame = nullptr);
// The same without a copy, where as many readable bytes follow the text as a MappedFile has behind it.
StatusOr<PipelineParts> PartsFromPaddedJson(std::string_view json, std::string* frame = nullptr);
// The same, of a file whose model is there already.
StatusOr<PipelineParts> PartsFromFrame(std::string_view frame, std::unique_ptr<const Model> model);
// The bytes of a GGUF file, or its metadata. `model`, if not null, is what these make.
StatusOr<PipelineParts> PartsFromGguf(std::string_view file);
StatusOr<PipelineParts> PartsFromGguf(GgufMetadata metadata,
                                      std::unique_ptr<const Model> model = nullptr);
// A tiktoken rank file; `path` names it, its folder may hold tiktoken_spec.json. `model`, if not null, is what the
// file's ranks make.
StatusOr<PipelineParts> PartsFromTiktoken(std::string_view file, const std::string& path,
                                          std::unique_ptr<const Model> model = nullptr);
// A SentencePiece model's file. `model`, if not null, is what its pieces make.
StatusOr<PipelineParts> PartsFromSentencePiece(std::string_view file,
                                               std::unique_ptr<const Model> model = nullptr);

// The text of a tokenizer.json that makes texts lower case before all else; the same text if its normalizer does so.
// Added tokens are found before that or after it, as the file says.
StatusOr<std::string> WithLowercase(std::string_view json);

// Whatever `path` is. Large files are compiled into the cache (compiled_cache.h), and read from there the next time.
//
// `lower_case`: WithLowercase(); UNIMPLEMENTED for files of other kinds.
StatusOr<PipelineParts> PartsFromPath(const std::string& path,
                                      const TokenizerLoadOptions& options = {});

}  // namespace portico::tokenizer
