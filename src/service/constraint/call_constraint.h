// Constraints that a chat request makes by its tools and by its model's format: calls that must come, that must be one, or
// whose arguments are strict; and answers of a form that stand behind reasoning.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "message/text_request.h"
#include "service/serving_model.h"

namespace portico {

// Where an answer's reasoning is when it begins.
enum class ReasoningStart { kNone, kInside, kMayBegin };

// The constraint of the whole answer, not compiled; null: none. `answer`: what the request says of the answer itself, or
// null. INVALID_ARGUMENT with the field: the model's engine or format cannot be held to it.
StatusOr<std::shared_ptr<const Constraint>> ChatConstraint(
    const ServingModel& model, const ChatRequest& request, ReasoningStart reasoning,
    std::shared_ptr<const Constraint> answer);

// Puts what a constraint must know of the model's reasoning into it: the answer begins as `start` says, and may think for
// max_thinking_tokens at most. INVALID_ARGUMENT with the field: the model's engine or format cannot be held to it.
StatusOr<std::shared_ptr<const Constraint>> BehindReasoning(
    const ServingModel& model, ReasoningStart start, std::optional<int32_t> max_thinking_tokens,
    std::shared_ptr<const Constraint> constraint);

// The calls of this request are written in JsonListForm(), whatever the model's own form is.
bool CallsAsJsonList(const ModelOutputFormat& format, const ChatRequest& request);

}  // namespace portico
