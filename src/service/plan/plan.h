// From a validated request to what a generation needs: render, tokenize, check against the model. Pure functions,
// safe on any thread. CANCELLED: the gate, where there is one, let a step not pass.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/text_request.h"
#include "service/generation/generation.h"
#include "service/plan/step_gate.h"
#include "service/serving_model.h"

namespace portico {

// The prompt's text as the chat template gives it, from messages and tools in the form that it shows whole
// (template/fit_conversation.h), in which the request's messages are left. INVALID_ARGUMENT (field "messages") with the
// template's own message if it refuses, or naming what would be missing from the prompt.
StatusOr<std::string> RenderChat(const ServingModel& model, ChatRequest* request,
                                 StepGate* gate = nullptr);

// Appends the ids of a text, as Tokenizer::TryEncode() does. The gate is asked again between the parts of a long one.
Status EncodeText(const ServingModel& model, std::string_view text, bool add_special_tokens,
                  StepGate* gate, std::vector<TokenId>* ids);

// The tokens of a rendered prompt. Templates write their own special tokens, so none are added.
StatusOr<std::vector<TokenId>> EncodeRendered(const ServingModel& model, std::string_view text,
                                              StepGate* gate = nullptr);

// INVALID_ARGUMENT naming `field` unless all ids are in the vocabulary.
Status CheckIds(const std::vector<TokenId>& ids, int32_t vocab_size, std::string_view field);

// Of tokens whose log-probability is asked for by id: also at most kMaxLogprobIds.
Status CheckLogprobIds(const std::vector<TokenId>& ids, int32_t vocab_size, std::string_view field);

// The tokens of a prompt given as text or as ids. INVALID_ARGUMENT naming `field` for ids outside
// the vocabulary.
StatusOr<std::vector<TokenId>> EncodePrompt(const ServingModel& model,
                                            const CompletionRequest::Prompt& prompt,
                                            std::string_view field, StepGate* gate = nullptr);

// What tokenizing the prompts takes.
size_t WorkOf(const std::vector<CompletionRequest::Prompt>& prompts);

// FitContext for the model, which may allow that the prompt is cut at its end and the limit to what is left.
StatusOr<int32_t> FitPrompt(const ServingModel& model, const GenerationOptions& options,
                            std::string_view prompt_field, std::vector<TokenId>* ids);

// Tells an engine that reads media what they belong to: the prompt's text (empty: its ids), its choices, and the bytes
// that these may take (ServingModel::max_request_cost). Extras without media, and none, stay as they are.
std::shared_ptr<const RequestExtras> PlaceMedia(std::shared_ptr<const RequestExtras> extras,
                                                std::string text, bool limit_is_asked,
                                                int32_t choices, int64_t max_bytes);

// Takes the request, whose messages may be large.
StatusOr<GenerationPlan> PlanChat(const ServingModel& model, ChatRequest&& request,
                                  StepGate* gate = nullptr);
StatusOr<GenerationPlan> PlanCompletion(const ServingModel& model, const CompletionRequest& request,
                                        StepGate* gate = nullptr);

}  // namespace portico
