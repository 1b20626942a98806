#include "engine/llama/import/config/architecture.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "engine/llama/import/files/file.h"

namespace portico::llama {
namespace {

// The classes' names in transformers, without what they end in.
const std::map<std::string, Family, std::less<>>& ClassNames() {
  static const std::map<std::string, Family, std::less<>> kNames = {
      {"Llama", Family::kLlama},       {"Mistral", Family::kMistral},
      {"Qwen2", Family::kQwen2},       {"Qwen3", Family::kQwen3},
      {"Bert", Family::kBert},         {"Roberta", Family::kRoberta},
      {"Camembert", Family::kRoberta}, {"XLMRoberta", Family::kXlmRoberta},
  };
  return kNames;
}

std::optional<Architecture> FromClass(std::string_view name) {
  struct Ending {
    std::string_view text;
    Top top;
  };
  // An encoder's language model is there for its pretraining: its hidden states are what is used.
  for (const Ending& ending :
       {Ending{"ForCausalLM", Top::kLanguage}, Ending{"ForMaskedLM", Top::kNothing},
        Ending{"ForPreTraining", Top::kNothing}, Ending{"ForSequenceClassification", Top::kScores},
        Ending{"ForRewardModel", Top::kScores}, Ending{"Model", Top::kNothing}}) {
    if (!name.ends_with(ending.text)) continue;
    const auto found = ClassNames().find(name.substr(0, name.size() - ending.text.size()));
    if (found == ClassNames().end()) continue;
    const bool encoder = IsEncoder(found->second);
    const bool pretraining = ending.text == "ForMaskedLM" || ending.text == "ForPreTraining";
    if (encoder ? ending.top == Top::kLanguage : pretraining) continue;
    return Architecture{found->second, ending.top};
  }
  return std::nullopt;
}

std::optional<Architecture> FromModelType(const std::string& type) {
  for (const auto& [name, family] : ClassNames()) {
    if (FamilyName(family) != type) continue;
    return Architecture{family, IsEncoder(family) ? Top::kNothing : Top::kLanguage};
  }
  return std::nullopt;
}

}  // namespace

std::string FamilyName(Family family) {
  switch (family) {
    case Family::kLlama:
      return "llama";
    case Family::kMistral:
      return "mistral";
    case Family::kQwen2:
      return "qwen2";
    case Family::kQwen3:
      return "qwen3";
    case Family::kBert:
      return "bert";
    case Family::kRoberta:
      return "roberta";
    case Family::kXlmRoberta:
      return "xlm-roberta";
  }
  return "";
}

bool IsEncoder(Family family) {
  return family == Family::kBert || family == Family::kRoberta || family == Family::kXlmRoberta;
}

StatusOr<Architecture> ParseArchitecture(const ConfigFields& fields) {
  std::string name = fields.object().GetString("model_type");
  std::optional<Architecture> found = FromModelType(name);
  const Json* architectures = fields.Find("architectures");
  if (architectures != nullptr && architectures->is_array() && !architectures->as_array().empty() &&
      architectures->as_array()[0].is_string()) {
    name = architectures->as_array()[0].as_string();
    found = FromClass(name);
  }
  if (found) return *found;
  return BadFile(
      fields.path(),
      fmt::format("the architecture '{}' cannot be imported: LlamaForCausalLM, MistralForCausalLM, "
                  "Qwen2ForCausalLM and Qwen3ForCausalLM folders can, their Model, "
                  "ForSequenceClassification and ForRewardModel kin, BertModel, RobertaModel, "
                  "XLMRobertaModel and their ForSequenceClassification; and a GGUF file of any "
                  "architecture that libllama knows works as it is",
                  name));
}

}  // namespace portico::llama
