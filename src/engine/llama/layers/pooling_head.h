// What stands on a text's pooled vector: dense layers, computed in float32 whatever the model's type is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace portico::llama {

enum class Activation { kNone, kTanh, kRelu };

// out[r] = activation(bias[r] + sum over c of weight[r * columns + c] * in[c])
struct DenseLayer {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<float> weight;
  std::vector<float> bias;  // or empty
  Activation activation = Activation::kNone;
};

class PoolingHead {
 public:
  // False: `layer` does not take what the one before it gives; nothing is added.
  bool Add(DenseLayer layer);

  bool empty() const { return layers_.empty(); }
  // Of the vector that comes out, if there is a layer.
  size_t output_size() const { return layers_.back().rows; }

  std::vector<float> Apply(std::vector<float> vector) const;

 private:
  std::vector<DenseLayer> layers_;
};

}  // namespace portico::llama
