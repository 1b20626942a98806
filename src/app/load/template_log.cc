#include "app/load/template_log.h"

#include "base/log.h"
#include "template/fit_conversation.h"

namespace portico {

void LogTemplateFacts(const ServingModel& model) {
  if (model.chat_template == nullptr) return;
  bool moves_system = false;
  for (const bool with_tools : {false, true}) {
    const TemplateFacts& facts = model.chat_template->facts(with_tools);
    LogDebug("model `{}`: its chat template, {} tools: {}", model.id,
             with_tools ? "with" : "without", DescribeFacts(facts).Dump());
    moves_system = moves_system || MovesSystem(facts);
  }
  if (!moves_system || model.joins_pairs) return;
  LogInfo(
      "model `{}`: its chat template omits a leading system message; the server prepends it to the "
      "first user message",
      model.id);
}

}  // namespace portico
