// The normalizers of tokenizer.json.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/normalize/normalized_string.h"
#include "tokenizer/pipeline_steps.h"

namespace portico::tokenizer {

// Immutable, safe to use from many threads.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // INVALID_ARGUMENT where a pattern gives up on the text; `text` counts for nothing then.
  virtual Status Apply(NormalizedString* text) const = 0;
  // Appends what this does, in order; a kOther step stands for anything that has no description.
  virtual void AppendSteps(std::vector<NormalizerStep>* out) const { out->emplace_back(); }

  // From the object in the file; null becomes a null pointer.
  static StatusOr<std::unique_ptr<const Normalizer>> FromJson(const Json& json);
};

}  // namespace portico::tokenizer
