#include "service/control/each_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "service/control/control_log.h"

namespace portico {
namespace {

// The answers of several engines. Each writes its own; the last one reports.
struct Answers {
  std::vector<const ServingModel*> asked;
  bool one_model = false;
  std::vector<Status> statuses;
  std::atomic<size_t> missing{0};
  ControlDone done;

  void Take(size_t at, Status status) {
    statuses[at] = std::move(status);
    if (missing.fetch_sub(1, std::memory_order_acq_rel) == 1) done(First());
  }

  Status First() const {
    for (size_t i = 0; i < statuses.size(); ++i) {
      if (statuses[i].ok()) continue;
      if (one_model) return statuses[i];
      return Error(statuses[i].code(),
                   fmt::format("model `{}`: {}", asked[i]->id, MessageOf(statuses[i])));
    }
    return OkStatus();
  }
};

}  // namespace

void ControlEngines(const ModelRegistry& models, std::string_view model,
                    const EngineControl& control, TimePoint deadline, ControlDone done) {
  const StatusOr<const ServingModel*> named = models.Find(model);
  if (!named.ok()) return done(named.status());
  done = WithLine(model, control, std::move(done));
  if (!model.empty()) return (*named)->engine->Control(control, deadline, std::move(done));

  auto answers = std::make_shared<Answers>();
  answers->asked = models.models();
  answers->one_model = answers->asked.size() == 1;
  const auto dead = [](const ServingModel* m) { return !m->engine->load().healthy; };
  if (!std::all_of(answers->asked.begin(), answers->asked.end(), dead)) {
    std::erase_if(answers->asked, dead);
  }
  answers->statuses.resize(answers->asked.size());
  answers->missing = answers->asked.size();
  answers->done = std::move(done);
  for (size_t i = 0; i < answers->asked.size(); ++i) {
    answers->asked[i]->engine->Control(
        control, deadline, [answers, i](Status status) { answers->Take(i, std::move(status)); });
  }
}

}  // namespace portico
