// What becomes of an engine's raw vectors and logits before a client sees them; in float32. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace portico {

// How a request wants its vectors.
struct VectorForm {
  int32_t size = 0;        // the first so many of the model's numbers
  bool normalize = false;  // to length 1, after the cut

  // Absent: all of them, and what the model is meant for. INVALID_ARGUMENT (field "dimensions") for a size that the
  // model was not trained for, or does not have.
  static StatusOr<VectorForm> Of(const EngineInfo& engine, std::optional<int32_t> dimensions,
                                 std::optional<bool> normalize);
  void Apply(std::vector<float>* vector) const;
};

// A vector of zeros stays as it is.
void Normalize(std::span<float> vector);

void Softmax(std::span<float> logits);
// Where the logits say how probable the labels are.
void ToProbabilities(std::span<float> logits, ProblemType type);

}  // namespace portico
