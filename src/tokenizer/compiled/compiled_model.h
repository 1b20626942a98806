// A model as bytes from which it is made again without JSON: the tables of the vocabulary and of the merges, scores. They
// are used where they lie. What is small or quickly built from these is built again, so that it may change without this
// form changing; the tables of byte-level merging, which take longest, are stored beside it (piece_merger.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/model/model.h"

namespace portico::tokenizer {

// Puts the form behind what `out` has, at a multiple of kCompiledAlignment; false where the model has no such form.
bool SaveModel(const Model& model, CompiledWriter* out);

// Null where `bytes` is not what SaveModel() makes, or is not at a multiple of kCompiledAlignment. Any bytes are safe;
// memory stays within a small multiple of their size. `bytes` must outlive the model and stay as they are.
std::unique_ptr<const Model> RestoreModel(std::string_view bytes);

}  // namespace portico::tokenizer
