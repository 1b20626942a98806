// A GGUF file that gives vectors or class logits: what its metadata and its head's tensors say.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "engine/llama/import/files/gguf_file.h"
#include "engine/llama/model/pooling_model.h"
#include "llama.h"

namespace portico::llama {

// Nothing for a model that generates, unless `is_embedding`. `pooling` is what was asked for. UNIMPLEMENTED for a
// head that is not known here; the file has been loaded, so it is whole.
StatusOr<std::optional<PoolingModel>> ReadGgufPooling(const std::string& path, const GgufInfo& gguf,
                                                      const llama_model* model, bool is_embedding,
                                                      std::optional<Pooling> pooling);

}  // namespace portico::llama
