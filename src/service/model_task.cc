#include "service/model_task.h"

#include <fmt/format.h>

#include "service/pooling/rerank.h"

namespace portico {
namespace {

std::string_view WhatItDoes(ModelTask task) {
  switch (task) {
    case ModelTask::kGenerate:
      return "generates text";
    case ModelTask::kEmbed:
      return "gives vectors";
    case ModelTask::kClassify:
      return "classifies";
  }
  return "";
}

Status Refuse(const ServingModel& model, std::string_view advice, std::string_view reason) {
  const EngineInfo& engine = model.engine->info();
  const std::string& kind = engine.architecture.empty() ? engine.name : engine.architecture;
  return Error(
      StatusCode::kFailedPrecondition,
      fmt::format("the model {} ({}) {}: {}", model.id, kind, WhatItDoes(engine.task), advice),
      "model", reason);
}

}  // namespace

std::string_view TaskName(ModelTask task) {
  switch (task) {
    case ModelTask::kGenerate:
      return "generate";
    case ModelTask::kEmbed:
      return "embed";
    case ModelTask::kClassify:
      return "classify";
  }
  return "";
}

Status CheckGenerates(const ServingModel& model) {
  const ModelTask task = model.engine->info().task;
  if (task == ModelTask::kGenerate) return OkStatus();
  return Refuse(model,
                task == ModelTask::kEmbed
                    ? "it does not generate text; use /v1/embeddings, or serve a chat model"
                    : "it does not generate text; use /v1/classify, or serve a chat model",
                "model_does_not_generate");
}

Status CheckEmbeds(const ServingModel& model) {
  const ModelTask task = model.engine->info().task;
  if (task == ModelTask::kEmbed) return OkStatus();
  return Refuse(model,
                task == ModelTask::kGenerate
                    ? "it gives no embeddings; serve an embedding model for that, or this one with "
                      "--is-embedding"
                    : "it gives no embeddings; use /v1/classify, or serve an embedding model",
                "model_does_not_embed");
}

Status CheckClassifies(const ServingModel& model) {
  if (model.engine->info().task == ModelTask::kClassify) return OkStatus();
  return Refuse(model, "it does not classify; serve a classification or reward model for that",
                "model_does_not_classify");
}

Status CheckScores(const ServingModel& model) {
  return model.engine->info().task == ModelTask::kEmbed ? CheckGenerates(model) : OkStatus();
}

StatusOr<const ServingModel*> FindAble(const ModelRegistry& models, std::string_view name,
                                       Status (*check)(const ServingModel& model)) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* found, models.FindForRequest(name));
  if (models.MeansDefault(name)) {
    for (const ServingModel* model : models.models()) {
      if (check(*model).ok()) return model;
    }
  }
  PORTICO_RETURN_IF_ERROR(check(*found));
  return found;
}

Status CheckRanks(const ServingModel& model) {
  const EngineInfo& engine = model.engine->info();
  if (engine.task == ModelTask::kGenerate && model.joins_pairs && model.judge) return OkStatus();
  if (engine.task != ModelTask::kClassify) {
    return Refuse(model,
                  engine.task == ModelTask::kGenerate
                      ? "it does not rank documents; serve a reranking model for that, with the "
                        "template that it judges pairs by (--chat-template) if it generates"
                      : "it does not rank documents; serve a reranking model for that",
                  "model_does_not_rank");
  }
  if (RelevanceLabels::Among(engine.labels)) return OkStatus();
  return Refuse(model,
                fmt::format("it has {} labels, and ranking needs a model with one, or with yes and "
                            "no; use /v1/score for the scores of each",
                            engine.labels.size()),
                "model_does_not_rank");
}

}  // namespace portico
