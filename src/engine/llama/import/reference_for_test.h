// Test helper: a decoder written out plainly in double precision, straight from a checkpoint's own
// layout, to compare libllama's answers on imported files with. Rotations come from config/rope.h, which
// ../generation/reference_test.cc holds to transformers' numbers.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "engine/llama/import/config/hf_config.h"
#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {

class ReferenceModel {
 public:
  using Row = std::vector<double>;

  explicit ReferenceModel(const TestModel& model)
      : model_(model), config_(*ParseHfConfig(model.config.Dump(), "config.json")) {}

  // Row t: what the last layer makes of token t, normed.
  std::vector<Row> States(const std::vector<int32_t>& tokens) const {
    std::vector<Row> states;
    const TestTensor& embeddings = model_.tensors.at("model.embed_tokens.weight");
    const size_t hidden = static_cast<size_t>(config_.hidden_size);
    for (int32_t token : tokens) {
      auto begin = embeddings.values.begin() + static_cast<ptrdiff_t>(hidden) * token;
      states.emplace_back(begin, begin + static_cast<ptrdiff_t>(hidden));
    }
    for (int64_t layer = 0; layer < config_.layers; ++layer) RunLayer(layer, &states);
    for (Row& state : states) state = Norm(state, "model.norm.weight");
    return states;
  }

  // Row t: the logits after tokens[0..t].
  std::vector<std::vector<float>> Logits(const std::vector<int32_t>& tokens) const {
    bool own_output = model_.tensors.count("lm_head.weight") > 0;
    std::vector<std::vector<float>> logits;
    for (const Row& state : States(tokens)) {
      Row row = Linear(own_output ? "lm_head" : "model.embed_tokens", state);
      logits.emplace_back(row.begin(), row.end());
    }
    return logits;
  }

 private:
  Row Linear(const std::string& name, const Row& input) const {
    const TestTensor& weight = model_.tensors.at(name + ".weight");
    Row output(static_cast<size_t>(weight.shape[0]));
    for (size_t r = 0; r < output.size(); ++r) {
      for (size_t c = 0; c < input.size(); ++c) {
        output[r] += static_cast<double>(weight.values[r * input.size() + c]) * input[c];
      }
    }
    if (auto bias = model_.tensors.find(name + ".bias"); bias != model_.tensors.end()) {
      for (size_t r = 0; r < output.size(); ++r) output[r] += bias->second.values[r];
    }
    return output;
  }

  Row Norm(Row row, const std::string& name) const {
    const std::vector<float>& weight = model_.tensors.at(name).values;
    double sum = 0;
    for (double value : row) sum += value * value;
    double scale = 1 / std::sqrt(sum / static_cast<double>(row.size()) + config_.rms_norm_eps);
    for (size_t i = 0; i < row.size(); ++i) row[i] *= scale * weight[i];
    return row;
  }

  // The head at `head` of a row of heads: normed where the family does, then rotated for
  // `position`.
  Row Head(const Row& all, size_t head, size_t position, const std::string& norm) const {
    const size_t size = static_cast<size_t>(config_.head_dim);
    Row row(all.begin() + static_cast<ptrdiff_t>(head * size),
            all.begin() + static_cast<ptrdiff_t>((head + 1) * size));
    if (config_.family == Family::kQwen3) row = Norm(row, norm);
    Row turned(size);
    for (size_t i = 0; i < size / 2; ++i) {
      double frequency =
          std::pow(config_.rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(size)) /
          config_.rope_divisors[i];
      double angle = static_cast<double>(position) * frequency;
      double cosine = std::cos(angle) * config_.rope.attention_factor;
      double sine = std::sin(angle) * config_.rope.attention_factor;
      turned[i] = row[i] * cosine - row[i + size / 2] * sine;
      turned[i + size / 2] = row[i + size / 2] * cosine + row[i] * sine;
    }
    return turned;
  }

  Row Attend(const std::vector<Row>& queries, const std::vector<Row>& keys,
             const std::vector<Row>& values, size_t t, const std::string& prefix) const {
    const size_t size = static_cast<size_t>(config_.head_dim);
    const size_t group = static_cast<size_t>(config_.heads / config_.kv_heads);
    Row output;
    for (size_t head = 0; head < static_cast<size_t>(config_.heads); ++head) {
      const size_t kv_head = head / group;
      Row query = Head(queries[t], head, t, prefix + "q_norm.weight");
      Row weights(model_.config.GetBool("is_causal", true) ? t + 1 : keys.size());
      double total = 0;
      for (size_t s = 0; s < weights.size(); ++s) {
        Row key = Head(keys[s], kv_head, s, prefix + "k_norm.weight");
        double score = 0;
        for (size_t i = 0; i < size; ++i) score += query[i] * key[i];
        weights[s] = std::exp(score / std::sqrt(static_cast<double>(size)));
        total += weights[s];
      }
      Row mixed(size);
      for (size_t s = 0; s < weights.size(); ++s) {
        for (size_t i = 0; i < size; ++i) {
          mixed[i] += weights[s] / total * values[s][kv_head * size + i];
        }
      }
      output.insert(output.end(), mixed.begin(), mixed.end());
    }
    return output;
  }

  void RunLayer(int64_t layer, std::vector<Row>* states) const {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const std::string attention = prefix + "self_attn.", mlp = prefix + "mlp.";
    std::vector<Row> queries, keys, values;
    for (const Row& state : *states) {
      Row normed = Norm(state, prefix + "input_layernorm.weight");
      queries.push_back(Linear(attention + "q_proj", normed));
      keys.push_back(Linear(attention + "k_proj", normed));
      values.push_back(Linear(attention + "v_proj", normed));
    }
    for (size_t t = 0; t < states->size(); ++t) {
      Row& state = (*states)[t];
      Add(Linear(attention + "o_proj", Attend(queries, keys, values, t, attention)), &state);
      Row normed = Norm(state, prefix + "post_attention_layernorm.weight");
      Row gate = Linear(mlp + "gate_proj", normed);
      Row up = Linear(mlp + "up_proj", normed);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      Add(Linear(mlp + "down_proj", gate), &state);
    }
  }

  static void Add(const Row& from, Row* to) {
    for (size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
  }

  const TestModel& model_;
  const HfConfig config_;
};

}  // namespace portico::llama
