#include "service/constraint/constrain.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/sampler/grammar_constraint.h"
#include "grammar/compile/grammar_compiler.h"
#include "service/constraint/carried_constraint.h"

namespace portico {
namespace {

grammar::GrammarKind KindOf(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::kJsonSchema:
      return grammar::GrammarKind::kJsonSchema;
    case ConstraintKind::kJsonObject:
      return grammar::GrammarKind::kJsonObject;
    case ConstraintKind::kRegex:
      return grammar::GrammarKind::kRegex;
    case ConstraintKind::kEbnf:
      return grammar::GrammarKind::kEbnf;
    case ConstraintKind::kStructuralTag:
      return grammar::GrammarKind::kStructuralTag;
    case ConstraintKind::kChoice:
      return grammar::GrammarKind::kChoice;
    case ConstraintKind::kReasoning:
      break;  // nothing to compile
  }
  return grammar::GrammarKind::kJsonSchema;
}

// The compilations of one request: the last one calls `done` with the first error.
struct Batch {
  explicit Batch(size_t count) : left(count) {}

  Mutex mutex;
  size_t left ABSL_GUARDED_BY(mutex);
  Status status ABSL_GUARDED_BY(mutex);
  absl::AnyInvocable<void(Status)> done;

  void End(Status one) {
    Status first;
    {
      const MutexLock lock(&mutex);
      if (status.ok()) status = std::move(one);
      if (--left > 0) return;
      first = std::move(status);
    }
    done(std::move(first));
  }
};

Status Named(const Status& status, const Constraint& constraint) {
  if (status.code() != StatusCode::kInvalidArgument) return status;
  return InvalidArgument(constraint.field,
                         fmt::format("{}: {}", constraint.field, MessageOf(status)));
}

}  // namespace

StatusOr<std::shared_ptr<const Constraint>> ConstraintFor(const ServingModel& model,
                                                          const GenerationOptions& options) {
  if (options.constraint == nullptr) return nullptr;
  const EngineCapabilities& can = model.engine->info().can;
  if (can.grammars && can.compiles_grammars) {
    PORTICO_RETURN_IF_ERROR(CheckCarried(*options.constraint));
    return options.constraint;
  }
  if (can.grammars && model.grammar_model != nullptr) return options.constraint;
  return InvalidArgument(options.constraint->field,
                         fmt::format("{} is not supported by this model's engine, {}: leave it out",
                                     options.constraint->field, model.engine->info().name));
}

bool NeedsGrammar(const ServingModel& model, const GenerationPlan& plan) {
  return plan.constraint != nullptr && plan.constraint->compiled == nullptr &&
         plan.constraint->kind != ConstraintKind::kReasoning &&
         !model.engine->info().can.compiles_grammars;
}

void CompileGrammars(const ServingModel& model, std::vector<GenerationPlan*> plans,
                     std::weak_ptr<const void> wanted, absl::AnyInvocable<void(Status)> done) {
  // One compilation for all plans with one constraint.
  std::map<const Constraint*, std::vector<GenerationPlan*>> by_constraint;
  for (GenerationPlan* const plan : plans) {
    if (NeedsGrammar(model, *plan)) by_constraint[plan->constraint.get()].push_back(plan);
  }
  auto batch = std::make_shared<Batch>(by_constraint.size() + 1);
  batch->done = std::move(done);
  for (const auto& [constraint, users] : by_constraint) {
    grammar::GrammarText text{KindOf(constraint->kind), constraint->text, constraint->closed,
                              constraint->compact};
    auto compiled = [batch, sharers = users, asked = users.front()->constraint](
                        const grammar::GrammarCompiler::Compiled& result) {
      if (!result.ok()) return batch->End(Named(result.status(), *asked));
      auto ready = std::make_shared<Constraint>(*asked);
      ready->compiled = std::make_shared<const GrammarConstraint>(*result);
      for (GenerationPlan* const plan : sharers) plan->constraint = ready;
      batch->End(OkStatus());
    };
    model.grammar_compiler->Compile(*model.grammar_model, std::move(text), std::move(compiled),
                                    wanted);
  }
  batch->End(OkStatus());
}

}  // namespace portico
