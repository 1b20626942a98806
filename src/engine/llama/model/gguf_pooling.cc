#include "engine/llama/model/gguf_pooling.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "engine/llama/import/files/file.h"
#include "gguf.h"

namespace portico::llama {
namespace {

struct GgufDeleter {
  void operator()(gguf_context* context) const { gguf_free(context); }
};
using GgufPtr = std::unique_ptr<gguf_context, GgufDeleter>;

// A tensor of the file in float32; empty if there is none of that name.
StatusOr<std::vector<float>> ReadTensor(const gguf_context* gguf, const InputFile& file,
                                        const std::string& name) {
  const int64_t index = gguf_find_tensor(gguf, name.c_str());
  if (index < 0) return std::vector<float>();
  const ggml_type type = gguf_get_tensor_type(gguf, index);
  std::vector<char> bytes(gguf_get_tensor_size(gguf, index));
  const uint64_t offset = gguf_get_data_offset(gguf) + gguf_get_tensor_offset(gguf, index);
  PORTICO_RETURN_IF_ERROR(file.ReadAt(offset, bytes.data(), bytes.size()));
  const auto block = static_cast<size_t>(ggml_blck_size(type));
  std::vector<float> values(bytes.size() / ggml_type_size(type) * block);
  if (type == GGML_TYPE_F32) {
    return std::vector<float>(reinterpret_cast<const float*>(bytes.data()),
                              reinterpret_cast<const float*>(bytes.data()) + values.size());
  }
  const ggml_to_float_t to_float = ggml_get_type_traits(type)->to_float;
  if (to_float == nullptr) {
    return BadFile(file.path(), fmt::format("tensor {} has a type that no head has", name));
  }
  to_float(bytes.data(), values.data(), static_cast<int64_t>(values.size()));
  return values;
}

// Puts a layer on the head if the file has it.
Status AddLayer(const gguf_context* gguf, const InputFile& file, const std::string& name,
                Activation activation, size_t columns, PoolingHead* head) {
  DenseLayer layer;
  PORTICO_ASSIGN_OR_RETURN(layer.weight, ReadTensor(gguf, file, name + ".weight"));
  if (layer.weight.empty()) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(layer.bias, ReadTensor(gguf, file, name + ".bias"));
  layer.columns = columns;
  layer.rows = layer.weight.size() / columns;
  layer.activation = activation;
  const bool whole = layer.rows * columns == layer.weight.size() &&
                     (layer.bias.empty() || layer.bias.size() == layer.rows);
  if (whole && head->Add(std::move(layer))) return OkStatus();
  return BadFile(file.path(), fmt::format("tensor {}.weight does not fit the model", name));
}

std::vector<std::string> ReadLabels(const gguf_context* gguf, const std::string& key,
                                    size_t count) {
  std::vector<std::string> labels;
  const int64_t index = gguf_find_key(gguf, key.c_str());
  const bool named = index >= 0 && gguf_get_kv_type(gguf, index) == GGUF_TYPE_ARRAY &&
                     gguf_get_arr_type(gguf, index) == GGUF_TYPE_STRING &&
                     gguf_get_arr_n(gguf, index) == count;
  for (size_t i = 0; i < count; ++i) {
    labels.push_back(named ? gguf_get_arr_str(gguf, index, i) : fmt::format("LABEL_{}", i));
  }
  return labels;
}

Status ReadHead(const std::string& path, const GgufInfo& gguf, size_t size, PoolingModel* model) {
  if (gguf.architecture() == "modern-bert") {
    return Error(StatusCode::kUnimplemented,
                 path + ": the heads of modern-bert models for classes are not known here");
  }
  PORTICO_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  const GgufPtr opened(gguf_init_from_file(path.c_str(), {/*no_alloc=*/true, nullptr}));
  if (opened == nullptr) return BadFile(path, "cannot be read again");
  PORTICO_RETURN_IF_ERROR(
      AddLayer(opened.get(), file, "cls", Activation::kTanh, size, &model->head));
  PORTICO_RETURN_IF_ERROR(
      AddLayer(opened.get(), file, "cls.output", Activation::kNone, size, &model->head));
  if (model->head.empty()) return BadFile(path, "has no head (cls, cls.output) for its classes");
  model->labels = ReadLabels(opened.get(), gguf.architecture() + ".classifier.output_labels",
                             model->head.output_size());
  return OkStatus();
}

std::optional<Pooling> FromLlama(int64_t type) {
  if (type == LLAMA_POOLING_TYPE_MEAN) return Pooling::kMean;
  if (type == LLAMA_POOLING_TYPE_CLS) return Pooling::kCls;
  if (type == LLAMA_POOLING_TYPE_LAST) return Pooling::kLast;
  return std::nullopt;
}

}  // namespace

StatusOr<std::optional<PoolingModel>> ReadGgufPooling(const std::string& path, const GgufInfo& gguf,
                                                      const llama_model* model, bool is_embedding,
                                                      std::optional<Pooling> pooling) {
  const auto found = gguf.metadata.find(gguf.architecture() + ".attention.causal");
  const bool both_ways = found != gguf.metadata.end() && found->second == GgufValue(false);
  const int64_t type = gguf.Int("pooling_type").value_or(LLAMA_POOLING_TYPE_UNSPECIFIED);
  const bool pools = type > LLAMA_POOLING_TYPE_NONE;
  if (!both_ways && !pools && !is_embedding) return std::optional<PoolingModel>();
  if (llama_model_has_decoder(model) && llama_model_has_encoder(model)) {
    return Error(StatusCode::kUnimplemented,
                 path + ": a model of encoder and decoder gives no vectors here");
  }
  PoolingModel result;
  result.causal = !both_ways;
  if (gguf.architecture() == "bert") result.gelu = GeluForm::kErf;
  const Pooling usual = both_ways ? Pooling::kMean : Pooling::kLast;
  if (type != LLAMA_POOLING_TYPE_RANK) {
    result.pooling = pooling ? *pooling : FromLlama(type).value_or(usual);
    return std::optional(std::move(result));
  }
  if (pooling) {
    return InvalidArgument("pooling",
                           path + ": a model for classes pools as its head was trained to");
  }
  result.task = ModelTask::kClassify;
  result.pooling = both_ways ? Pooling::kCls : Pooling::kLast;
  const auto size = static_cast<size_t>(llama_model_n_embd_out(model));
  PORTICO_RETURN_IF_ERROR(ReadHead(path, gguf, size, &result));
  return std::optional(std::move(result));
}

}  // namespace portico::llama
