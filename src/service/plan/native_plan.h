// From a native generate request to generations. One table of rules for HTTP and gRPC: batch sizes,
// parallel sampling, the index and the rid of each answer, log-probabilities. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/native_generate.h"
#include "service/generation/generation.h"
#include "service/plan/step_gate.h"
#include "service/serving_model.h"

namespace portico {

struct NativePlan {
  // One a prompt, each with `n` choices. options.rid names all its choices; prompts have distinct
  // ones.
  std::vector<GenerationPlan> prompts;
  int32_t n = 1;
  bool is_list = false;  // answers go into a list: a batch, or n > 1
  bool return_text_in_logprobs = false;
  bool stream = false;
  std::string weight_version = "default";  // of the weights when it was planned

  // SGLang repeats the whole list of prompts n times: choice c of prompt p is answer
  // c * prompts + p.
  size_t AnswerOf(size_t prompt, size_t choice) const { return choice * prompts.size() + prompt; }
  size_t answers() const { return prompts.size() * static_cast<size_t>(n); }
};

// What PlanNative says of a request that would cost too much, also where its prompts, of which there are so many, have not
// been read.
Status CheckNativeCost(const ServingModel& model, const NativeGenerateRequest& request,
                       size_t prompts);

// INVALID_ARGUMENT naming the field, as PlanCompletion; `make_rid` names prompts that the client
// did not name. CANCELLED: the gate, where there is one, let a step not pass.
StatusOr<NativePlan> PlanNative(const ServingModel& model, const NativeGenerateRequest& request,
                                std::string (*make_rid)(), StepGate* gate = nullptr);

// Takes the rid of every prompt, or of none: ALREADY_EXISTS where one names a running request.
Status TakeRids(ActiveRids& rids, NativePlan* plan);

}  // namespace portico
