// Test helper: small random BERT and RoBERTa checkpoints, and their hidden states computed plainly in double precision.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {

inline Json SmallBertConfig(const JsonObject& changes = {}) {
  Json config(JsonObject{{"architectures", JsonArray{"BertModel"}},
                         {"model_type", "bert"},
                         {"vocab_size", 101},
                         {"hidden_size", 32},
                         {"intermediate_size", 48},
                         {"num_hidden_layers", 2},
                         {"num_attention_heads", 4},
                         {"max_position_embeddings", 300},
                         {"type_vocab_size", 2}});
  for (const auto& [key, value] : changes) config.Set(key, value);
  return config;
}

// `prefix` stands before the encoder's names ("bert."). Heads are left to the caller.
inline TestModel RandomBert(Json config, const std::string& prefix = "", uint32_t seed = 1) {
  TestModel model{std::move(config), {}};
  std::mt19937 random(seed);
  const int64_t hidden = model.Size("hidden_size"), inner = model.Size("intermediate_size");
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    model.tensors[prefix + name] = RandomTensor(std::move(shape), &random);
  };
  const auto linear = [&](const std::string& name, int64_t rows, int64_t columns) {
    add(name + ".weight", {rows, columns});
    add(name + ".bias", {rows});
  };
  add("embeddings.word_embeddings.weight", {model.Size("vocab_size"), hidden});
  add("embeddings.position_embeddings.weight", {model.Size("max_position_embeddings"), hidden});
  add("embeddings.token_type_embeddings.weight", {model.Size("type_vocab_size"), hidden});
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {hidden});
    add(name + ".bias", {hidden});
    for (float& value : model.tensors[prefix + name + ".weight"].values) value += 1;
  };
  norm("embeddings.LayerNorm");
  for (int64_t i = 0; i < model.Size("num_hidden_layers"); ++i) {
    const std::string layer = "encoder.layer." + std::to_string(i) + ".";
    for (const char* name : {"query", "key", "value"}) {
      linear(layer + "attention.self." + name, hidden, hidden);
    }
    linear(layer + "attention.output.dense", hidden, hidden);
    norm(layer + "attention.output.LayerNorm");
    linear(layer + "intermediate.dense", inner, hidden);
    linear(layer + "output.dense", hidden, inner);
    norm(layer + "output.LayerNorm");
  }
  return model;
}

class PlainBert {
 public:
  using Row = std::vector<double>;

  explicit PlainBert(const TestModel& model, std::string prefix = "")
      : model_(model), prefix_(std::move(prefix)) {}

  // One row a token.
  std::vector<Row> States(const std::vector<int32_t>& tokens,
                          const std::vector<uint8_t>& types = {}) const {
    std::vector<Row> states;
    // RoBERTa's padding has the position of its id, and the other tokens count from behind it.
    const bool is_bert = model_.config.GetString("model_type") == "bert";
    const int64_t padding = is_bert ? -1 : model_.Size("pad_token_id");
    int64_t next = padding + 1;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int64_t position = tokens[i] == padding ? padding : next++;
      Row row = RowOf("embeddings.word_embeddings.weight", static_cast<size_t>(tokens[i]));
      AddTo(RowOf("embeddings.position_embeddings.weight", static_cast<size_t>(position)), &row);
      AddTo(RowOf("embeddings.token_type_embeddings.weight", types.empty() ? 0 : types[i]), &row);
      states.push_back(Norm(row, "embeddings.LayerNorm"));
    }
    for (int64_t i = 0; i < model_.Size("num_hidden_layers"); ++i) {
      RunLayer("encoder.layer." + std::to_string(i) + ".", &states);
    }
    return states;
  }

  Row Linear(const std::string& name, const Row& in) const {
    const TestTensor& weight = model_.tensors.at(name + ".weight");
    Row out(static_cast<size_t>(weight.shape[0]));
    for (size_t r = 0; r < out.size(); ++r) {
      out[r] = model_.tensors.at(name + ".bias").values[r];
      for (size_t c = 0; c < in.size(); ++c) {
        out[r] += static_cast<double>(weight.values[r * in.size() + c]) * in[c];
      }
    }
    return out;
  }

 private:
  Row RowOf(const std::string& name, size_t index) const {
    const TestTensor& table = model_.tensors.at(prefix_ + name);
    const auto columns = static_cast<size_t>(table.shape[1]);
    Row row(columns);
    for (size_t i = 0; i < columns; ++i) row[i] = table.values[index * columns + i];
    return row;
  }

  static void AddTo(const Row& from, Row* to) {
    for (size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
  }

  Row Norm(Row row, const std::string& name) const {
    double mean = 0, variance = 0;
    for (double value : row) mean += value / static_cast<double>(row.size());
    for (double value : row) {
      variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
    }
    const std::vector<float>& weight = model_.tensors.at(prefix_ + name + ".weight").values;
    const std::vector<float>& bias = model_.tensors.at(prefix_ + name + ".bias").values;
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = (row[i] - mean) / std::sqrt(variance + 1e-12) * weight[i] + bias[i];
    }
    return row;
  }

  void RunLayer(const std::string& layer, std::vector<Row>* states) const {
    const std::string self = prefix_ + layer + "attention.self.";
    std::vector<Row> queries, keys, values;
    for (const Row& state : *states) {
      queries.push_back(Linear(self + "query", state));
      keys.push_back(Linear(self + "key", state));
      values.push_back(Linear(self + "value", state));
    }
    for (size_t t = 0; t < states->size(); ++t) {
      Row& state = (*states)[t];
      AddTo(Linear(prefix_ + layer + "attention.output.dense", Attend(queries[t], keys, values)),
            &state);
      state = Norm(state, layer + "attention.output.LayerNorm");
      Row inner = Linear(prefix_ + layer + "intermediate.dense", state);
      for (double& x : inner) x *= 0.5 * std::erfc(-x * M_SQRT1_2);
      AddTo(Linear(prefix_ + layer + "output.dense", inner), &state);
      state = Norm(state, layer + "output.LayerNorm");
    }
  }

  Row Attend(const Row& query, const std::vector<Row>& keys, const std::vector<Row>& values) const {
    const auto heads = static_cast<size_t>(model_.Size("num_attention_heads"));
    const size_t size = query.size() / heads;
    Row out(query.size());
    for (size_t head = 0; head < heads; ++head) {
      std::vector<double> weights;
      double total = 0;
      for (const Row& key : keys) {
        double score = 0;
        for (size_t i = head * size; i < (head + 1) * size; ++i) score += query[i] * key[i];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
        total += weights.back();
      }
      for (size_t s = 0; s < keys.size(); ++s) {
        for (size_t i = head * size; i < (head + 1) * size; ++i) {
          out[i] += weights[s] / total * values[s][i];
        }
      }
    }
    return out;
  }

  const TestModel& model_;
  const std::string prefix_;
};

}  // namespace portico::llama
