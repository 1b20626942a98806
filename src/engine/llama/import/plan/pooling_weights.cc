#include "engine/llama/import/plan/pooling_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/llama/import/files/file.h"
#include "engine/llama/import/plan/tensor_planner.h"

namespace portico::llama {
namespace {

// Large enough for any head, small enough to be read at once.
constexpr uint64_t kMaxHeadBytes = uint64_t{1} << 30;

StatusOr<const WeightTensor*> FindTensor(const WeightFiles& weights, const std::string& name) {
  const WeightTensor* tensor = weights.Find(name);
  if (tensor != nullptr) return tensor;
  return BadFile(weights.files().front().path(), fmt::format("the tensor {} is missing", name));
}

StatusOr<ggml_type> TypeOf(const WeightFiles& weights, const WeightTensor& tensor,
                           const std::string& name) {
  if (tensor.dtype == "F32") return GGML_TYPE_F32;
  if (tensor.dtype == "F16") return GGML_TYPE_F16;
  if (tensor.dtype == "BF16") return GGML_TYPE_BF16;
  return BadFile(
      weights.FileOf(tensor).path(),
      fmt::format("tensor {} is {}; F32, F16 and BF16 can be imported", name, tensor.dtype));
}

// The tensor as it is, in rows of `columns`.
StatusOr<InputTable> ReadRows(const WeightFiles& weights, const WeightTensor& tensor,
                              const std::string& name, int64_t columns) {
  InputTable table;
  PORTICO_ASSIGN_OR_RETURN(table.type, TypeOf(weights, tensor, name));
  table.columns = static_cast<size_t>(columns);
  table.rows.resize(static_cast<size_t>(tensor.bytes));
  PORTICO_RETURN_IF_ERROR(
      weights.FileOf(tensor).ReadAt(tensor.offset, table.rows.data(), table.rows.size()));
  return table;
}

StatusOr<InputTable> ReadTable(const WeightFiles& weights, const std::string& name, int64_t rows,
                               int64_t columns) {
  PORTICO_ASSIGN_OR_RETURN(const WeightTensor* tensor, FindTensor(weights, name));
  if (tensor->shape == std::vector<int64_t>{rows, columns}) {
    return ReadRows(weights, *tensor, name, columns);
  }
  return BadFile(weights.FileOf(*tensor).path(),
                 fmt::format("tensor {} has the shape {}, but config.json makes it [{}, {}]", name,
                             tensor->ShapeText(), rows, columns));
}

// All of a tensor in float32.
StatusOr<std::vector<float>> ReadFloats(const WeightFiles& weights, const std::string& name) {
  PORTICO_ASSIGN_OR_RETURN(const WeightTensor* tensor, FindTensor(weights, name));
  const std::string& path = weights.FileOf(*tensor).path();
  int64_t count = 1;
  for (const int64_t size : tensor->shape) count *= size;
  if (count == 0 || tensor->bytes > kMaxHeadBytes) {
    return BadFile(path, fmt::format("tensor {} has the shape {}, which no head has", name,
                                     tensor->ShapeText()));
  }
  PORTICO_ASSIGN_OR_RETURN(const InputTable row, ReadRows(weights, *tensor, name, count));
  std::vector<float> values(static_cast<size_t>(count));
  row.LookUp(0, 0, values.data());
  if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
    return BadFile(path, fmt::format("tensor {} has values that are not finite", name));
  }
  return values;
}

// What is added to the embeddings for each token type but the first, beyond what that one adds.
StatusOr<std::vector<std::vector<float>>> ReadTypes(const WeightFiles& weights,
                                                    const std::string& name, size_t columns) {
  PORTICO_ASSIGN_OR_RETURN(const std::vector<float> rows, ReadFloats(weights, name));
  std::vector<std::vector<float>> types;
  for (size_t at = columns; at + columns <= rows.size(); at += columns) {
    std::vector<float>& type = types.emplace_back(columns);
    for (size_t i = 0; i < columns; ++i) type[i] = rows[at + i] - rows[i];
  }
  return types;
}

// id2label's names in the order of their ids; it must name all, or none.
StatusOr<std::vector<std::string>> ReadLabels(const ConfigFields& fields, size_t count) {
  std::vector<std::string> labels(count);
  const Json* named = fields.Find("id2label");
  if (named == nullptr || !named->is_object()) {
    for (size_t i = 0; i < count; ++i) labels[i] = fmt::format("LABEL_{}", i);
    return labels;
  }
  if (named->as_object().size() != count) {
    return fields.Bad("id2label", fmt::format("names {} labels, but the head gives {}",
                                              named->as_object().size(), count));
  }
  for (size_t i = 0; i < count; ++i) {
    const Json* label = named->Find(std::to_string(i));
    if (label == nullptr || !label->is_string()) {
      return fields.Bad("id2label", fmt::format("has no label {}", i));
    }
    labels[i] = label->as_string();
  }
  return labels;
}

StatusOr<ProblemType> ReadProblemType(ConfigFields fields) {
  std::string name = "single_label_classification";
  fields.Text("problem_type", &name);
  PORTICO_RETURN_IF_ERROR(fields.status());
  if (name == "single_label_classification") return ProblemType::kSingleLabel;
  if (name == "multi_label_classification") return ProblemType::kMultiLabel;
  if (name == "regression") return ProblemType::kRegression;
  return fields.Bad("problem_type", fmt::format("'{}' is not known", name));
}

// Puts a layer on the head, which takes vectors of `size`. False: it does not fit what stands before it.
bool AddLayer(DenseLayer layer, int64_t size, PoolingHead* head) {
  const bool first_fits = !head->empty() || layer.columns == static_cast<size_t>(size);
  return first_fits && head->Add(std::move(layer));
}

// The layers named, one on the other.
Status AddLayers(const WeightFiles& weights,
                 const std::vector<std::pair<std::string, Activation>>& layers, int64_t size,
                 PoolingHead* head) {
  for (const auto& [name, activation] : layers) {
    PORTICO_ASSIGN_OR_RETURN(DenseLayer layer, ReadDenseLayer(weights, name));
    layer.activation = activation;
    if (AddLayer(std::move(layer), size, head)) continue;
    return BadFile(weights.files().front().path(),
                   fmt::format("tensor {}.weight does not fit what stands before it", name));
  }
  return OkStatus();
}

std::vector<std::pair<std::string, Activation>> ClassLayers(Family family,
                                                            const WeightFiles& weights) {
  if (family == Family::kBert) {
    const std::string pooler = PrefixOf(weights, "pooler.dense.weight") + "pooler.dense";
    return {{pooler, Activation::kTanh}, {"classifier", Activation::kNone}};
  }
  if (IsEncoder(family)) {
    return {{"classifier.dense", Activation::kTanh}, {"classifier.out_proj", Activation::kNone}};
  }
  // Qwen's reward models have two layers.
  if (weights.Find("score.0.weight") != nullptr) {
    return {{"score.0", Activation::kRelu}, {"score.2", Activation::kNone}};
  }
  for (const char* name : {"v_head", "v_head.summary"}) {
    if (weights.Find(std::string(name) + ".weight") != nullptr) return {{name, Activation::kNone}};
  }
  return {{"score", Activation::kNone}};
}

Status ReadSizes(const ConfigFields& fields, PoolingModel* model) {
  const Json* sizes = fields.Find("matryoshka_dimensions");
  if (sizes == nullptr) return OkStatus();
  if (!sizes->is_array()) return fields.Bad("matryoshka_dimensions", "must be a list");
  for (const Json& size : sizes->as_array()) {
    if (!size.is_int() || size.as_int() < 1 || size.as_int() > 1 << 20) {
      return fields.Bad("matryoshka_dimensions", "must be a list of sizes");
    }
    model->embedding_sizes.push_back(static_cast<int32_t>(size.as_int()));
  }
  return OkStatus();
}

Status ReadClasses(Family family, int64_t hidden_size, const ConfigFields& fields,
                   const WeightFiles& weights, std::optional<Pooling> asked, PoolingModel* model) {
  if (asked) {
    return InvalidArgument("pooling", fields.path() +
                                          ": a model for classes pools as its head was trained "
                                          "to; --pooling is for models that give vectors");
  }
  model->task = ModelTask::kClassify;
  model->pooling = IsEncoder(family) ? Pooling::kCls : Pooling::kLast;
  PORTICO_RETURN_IF_ERROR(
      AddLayers(weights, ClassLayers(family, weights), hidden_size, &model->head));
  PORTICO_ASSIGN_OR_RETURN(model->labels, ReadLabels(fields, model->head.output_size()));
  PORTICO_ASSIGN_OR_RETURN(model->problem_type, ReadProblemType(fields));
  return OkStatus();
}

// `usual` is how a folder without pooling files pools.
Status ReadVectors(int64_t hidden_size, Pooling usual, const ConfigFields& fields,
                   const std::optional<SentenceModules>& modules, std::optional<Pooling> asked,
                   PoolingModel* model) {
  model->task = ModelTask::kEmbed;
  model->normalized = !modules || modules->normalized;
  if (!asked && modules && !modules->pooling && !modules->pooling_fault.empty()) {
    return InvalidArgument("pooling", modules->pooling_fault);
  }
  model->pooling = asked ? *asked : modules && modules->pooling ? *modules->pooling : usual;
  if (modules) {
    for (const DenseLayer& layer : modules->dense) {
      if (AddLayer(layer, hidden_size, &model->head)) continue;
      return BadFile(fields.path(), "the folder's dense layers do not fit its vectors");
    }
  }
  return ReadSizes(fields, model);
}

}  // namespace

StatusOr<DenseLayer> ReadDenseLayer(const WeightFiles& weights, const std::string& name) {
  const std::string weight = name + ".weight", bias = name + ".bias";
  DenseLayer layer;
  PORTICO_ASSIGN_OR_RETURN(layer.weight, ReadFloats(weights, weight));
  const WeightTensor& tensor = *weights.Find(weight);
  const std::string& path = weights.FileOf(tensor).path();
  if (tensor.shape.size() != 2) {
    return BadFile(path, fmt::format("tensor {} has the shape {}, which is no matrix", weight,
                                     tensor.ShapeText()));
  }
  layer.rows = static_cast<size_t>(tensor.shape[0]);
  layer.columns = static_cast<size_t>(tensor.shape[1]);
  if (weights.Find(bias) == nullptr) return layer;
  PORTICO_ASSIGN_OR_RETURN(layer.bias, ReadFloats(weights, bias));
  if (layer.bias.size() != layer.rows) {
    return BadFile(path, fmt::format("tensor {} has the shape {}, but {} has {}", bias,
                                     weights.Find(bias)->ShapeText(), weight, tensor.ShapeText()));
  }
  return layer;
}

StatusOr<PoolingModel> ReadPoolingModel(const EncoderConfig& config, Top top,
                                        const ConfigFields& fields, const WeightFiles& weights,
                                        const std::optional<SentenceModules>& modules,
                                        std::optional<Pooling> pooling) {
  PoolingModel model;
  PORTICO_RETURN_IF_ERROR(
      top == Top::kScores
          ? ReadClasses(config.family, config.hidden_size, fields, weights, pooling, &model)
          : ReadVectors(config.hidden_size, Pooling::kMean, fields, modules, pooling, &model));
  model.gelu = config.gelu;
  model.first_position = static_cast<int32_t>(config.first_position());
  if (config.family != Family::kBert) model.padding_id = static_cast<TokenId>(config.pad_token_id);
  // Texts alone have the type 0, which libllama knows; pairs are for models that judge them.
  if (top != Top::kScores || config.family != Family::kBert || config.token_types < 2) return model;
  const std::string prefix = PrefixOf(weights, "embeddings.word_embeddings.weight") + "embeddings.";
  PORTICO_ASSIGN_OR_RETURN(model.input, ReadTable(weights, prefix + "word_embeddings.weight",
                                                  config.vocab_size, config.hidden_size));
  PORTICO_ASSIGN_OR_RETURN(model.input.types,
                           ReadTypes(weights, prefix + "token_type_embeddings.weight",
                                     static_cast<size_t>(config.hidden_size)));
  return model;
}

StatusOr<PoolingModel> ReadPoolingModel(const HfConfig& config, const ConfigFields& fields,
                                        const WeightFiles& weights,
                                        const std::optional<SentenceModules>& modules,
                                        std::optional<Pooling> pooling) {
  PoolingModel model;
  PORTICO_RETURN_IF_ERROR(
      config.top == Top::kScores
          ? ReadClasses(config.family, config.hidden_size, fields, weights, pooling, &model)
          : ReadVectors(config.hidden_size, Pooling::kLast, fields, modules, pooling, &model));
  model.causal = fields.object().GetBool("is_causal", true);
  if (config.top == Top::kScores) {
    model.skips_padding = true;
    int64_t padding = -1;
    ConfigFields copy(fields.object(), fields.path());
    copy.Int("pad_token_id", &padding, -1);
    PORTICO_RETURN_IF_ERROR(copy.status());
    model.padding_id = static_cast<TokenId>(padding);
  }
  const std::string name = PrefixOf(weights, "embed_tokens.weight") + "embed_tokens.weight";
  PORTICO_ASSIGN_OR_RETURN(model.input,
                           ReadTable(weights, name, config.vocab_size, config.hidden_size));
  return model;
}

}  // namespace portico::llama
