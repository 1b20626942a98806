// From a folder's files to what its model needs beside libllama: input table, pooling and head.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/llama/import/config/encoder_config.h"
#include "engine/llama/import/config/hf_config.h"
#include "engine/llama/import/config/sentence_folder.h"
#include "engine/llama/import/files/safetensors.h"
#include "engine/llama/model/pooling_model.h"

namespace portico::llama {

// NAME.weight, a matrix, and NAME.bias if it is there, in float32. Errors: missing, not finite, or of shapes that do
// not fit each other.
StatusOr<DenseLayer> ReadDenseLayer(const WeightFiles& weights, const std::string& name);

// `fields` is config.json, `modules` the folder's if it has any, `pooling` what was asked for.
StatusOr<PoolingModel> ReadPoolingModel(const EncoderConfig& config, Top top,
                                        const ConfigFields& fields, const WeightFiles& weights,
                                        const std::optional<SentenceModules>& modules,
                                        std::optional<Pooling> pooling);
StatusOr<PoolingModel> ReadPoolingModel(const HfConfig& config, const ConfigFields& fields,
                                        const WeightFiles& weights,
                                        const std::optional<SentenceModules>& modules,
                                        std::optional<Pooling> pooling);

}  // namespace portico::llama
