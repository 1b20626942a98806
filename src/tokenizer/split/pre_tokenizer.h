// The pre-tokenizers of tokenizer.json: they cut a text into the pieces that the model then works on one by one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/normalize/normalized_string.h"
#include "tokenizer/pipeline_steps.h"
#include "tokenizer/split/scanners.h"
#include "tokenizer/split/split_pattern.h"

namespace portico::tokenizer {

// A part of a text; one that is an added token already has its id.
struct Piece {
  NormalizedString text;
  std::optional<TokenId> added;
};
using Pieces = std::vector<Piece>;

// How a byte-level family cuts text, where one of the fused scanners knows it.
struct ByteLevelPlan {
  enum class Kind { kNone, kWhole, kGpt2, kCl100k, kQwen2, kO200k, kDeepSeekV3, kDigitsGpt2 };
  Kind kind = Kind::kNone;
  bool add_prefix_space = false;
};

// Immutable, safe to use from many threads.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // INVALID_ARGUMENT where a pattern gives up on the text; `pieces` count for nothing then.
  virtual Status Apply(Pieces* pieces) const = 0;
  // Appends what this does, in order; a kOther step stands for anything that has no description.
  virtual void AppendSteps(std::vector<PreTokenizerStep>* out) const { out->emplace_back(); }

  // From the object in the file; null becomes a null pointer.
  static StatusOr<std::unique_ptr<const PreTokenizer>> FromJson(const Json& json);
};

// A Split that keeps the pattern's matches, each a piece, and nothing else; then bytes spelled as characters.
std::unique_ptr<const PreTokenizer> MakeByteLevelSplit(SplitPattern pattern);

// The plan for that; kNone for a pattern without a scanner.
ByteLevelPlan PlanOfPattern(KnownPattern pattern);

// The plan for the object of a tokenizer.json (or null), kNone if it takes the general way.
ByteLevelPlan PlanByteLevel(const Json& json);

}  // namespace portico::tokenizer
