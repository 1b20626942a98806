#include "service/embedding_gate.h"

#include <fmt/format.h>

namespace portico {
namespace {

std::string_view NeedOf(EmbeddingTask task) {
  switch (task) {
    case EmbeddingTask::kEmbed:
      return "it gives no embeddings; serve an embedding model for that";
    case EmbeddingTask::kClassify:
      return "it does not classify; serve a classification or reward model for that";
    case EmbeddingTask::kRerank:
      return "it does not rank documents; serve a reranking model for that";
  }
  return "";
}

}  // namespace

Status CheckEmbeds(const ServingModel& model, EmbeddingTask task) {
  const EngineInfo& engine = model.engine->info();
  const std::string& kind = engine.architecture.empty() ? engine.name : engine.architecture;
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("the model {} ({}) generates text: {}", model.id, kind, NeedOf(task)),
               "model", "model_does_not_embed");
}

}  // namespace portico
