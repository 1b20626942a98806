// Sampling values that a model's publisher recommends (generation_config.json). They stand in for
// fields that a request leaves out, unless the server was told to use the API's own defaults.
#pragma once

#include <cstdint>
#include <optional>

namespace portico {

struct GenerationDefaults {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
};

}  // namespace portico
