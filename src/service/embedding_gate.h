// What stands where embeddings, classes and relevance will be computed. Models that generate text give
// none of these, so every such request is refused once its shape is right.
#pragma once

#include <string_view>

#include "base/status.h"
#include "service/serving_model.h"

namespace portico {

enum class EmbeddingTask { kEmbed, kClassify, kRerank };

// FAILED_PRECONDITION saying what the model is and what the task needs.
Status CheckEmbeds(const ServingModel& model, EmbeddingTask task);

}  // namespace portico
