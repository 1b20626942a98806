// What a folder's config.json says it is: the family of its layers, and what stands on top of them.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/llama/import/config/config_fields.h"

namespace portico::llama {

enum class Family { kLlama, kMistral, kQwen2, kQwen3, kBert, kRoberta, kXlmRoberta };
// "llama", "mistral", "qwen2", "qwen3", "bert", "roberta", "xlm-roberta"
std::string FamilyName(Family family);
// BERT and its kin: every token sees all others.
bool IsEncoder(Family family);

enum class Top {
  kNothing,   // hidden states
  kLanguage,  // logits of the next token
  kScores,    // a row of class logits, or a reward, for each text
};

struct Architecture {
  Family family = Family::kLlama;
  Top top = Top::kLanguage;
};

// From `architectures`, else from `model_type`. INVALID_ARGUMENT, with what there is, for another.
StatusOr<Architecture> ParseArchitecture(const ConfigFields& fields);

}  // namespace portico::llama
