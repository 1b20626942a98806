// What an answer must look like, from the client's words to what the engine applies.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/status.h"
#include "service/generation/generation.h"
#include "service/serving_model.h"

namespace portico {

// The options' constraint for this model, not compiled yet; null where there is none. INVALID_ARGUMENT with its field: the engine
// takes none.
StatusOr<std::shared_ptr<const Constraint>> ConstraintFor(const ServingModel& model,
                                                          const GenerationOptions& options);

// Whether a plan's constraint has to be compiled before it can be submitted.
bool NeedsGrammar(const ServingModel& model, const GenerationPlan& plan);

// Compiles the constraints of these plans, which stay where they are until `done` is called: once, here or on a thread of the
// compiler's. INVALID_ARGUMENT with the field: it is refused; RESOURCE_EXHAUSTED: too many wait. Once `wanted` has expired nobody
// waits: what has not begun by then may be left undone (CANCELLED).
void CompileGrammars(const ServingModel& model, std::vector<GenerationPlan*> plans,
                     std::weak_ptr<const void> wanted, absl::AnyInvocable<void(Status)> done);

}  // namespace portico
