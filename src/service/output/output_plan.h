// How the output of one request is read.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "message/text_request.h"
#include "parser/output_parser.h"
#include "service/constraint/call_constraint.h"
#include "service/output/output_format.h"

namespace portico {

// Shared by the choices of a request; immutable.
struct OutputPlan {
  parser::OutputFormat format;
  parser::ToolSet tools;
  const absl::flat_hash_set<TokenId>* markers = nullptr;  // of the model; outlives the request
  parser::CallIds ids = parser::CallIds::kRandom;
  int32_t calls_before = 0;  // in the history, for families that count on
  bool stream_reasoning = true;
  bool marked_by_tokens = false;  // as ModelOutputFormat
};

// Where the answer to this prompt, as rendered, begins.
ReasoningStart StartOfReasoning(const ModelOutputFormat& format, const ChatRequest& request,
                                std::string_view prompt);

// Null where the output is text and nothing else.
std::shared_ptr<const OutputPlan> PlanOutput(const ModelOutputFormat& format,
                                             const ChatRequest& request, ReasoningStart start,
                                             bool forward_unknown_tools);

// The tools of a request that may be called, as the template shall see them.
Json AllowedTools(const Json& tools, const ToolChoice& choice);

}  // namespace portico
