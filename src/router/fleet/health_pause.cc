// Whether a worker is paused that counts as paused and may not be: the monitor asks until it is told, less and less often.
#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "router/fleet/answer_field.h"
#include "router/fleet/health_monitor.h"
#include "router/fleet/stall_limit.h"

namespace portico::router {
namespace {

constexpr Duration kLongestPauseWait = std::chrono::seconds(30);

struct PauseForm {
  const char* target;
  const char* field;  // of the answer; empty: what infers is not paused
};
PauseForm PauseFormOf(PauseReading reading) {
  switch (reading) {
    case PauseReading::kIsPaused:
      return {"/is_paused", "is_paused"};
    case PauseReading::kIsSleeping:
      return {"/is_sleeping", "is_sleeping"};
    case PauseReading::kInference:
      break;
  }
  return {"/health_generate", ""};
}

// Nothing: it has no way to tell.
std::optional<bool> SaysItIsPaused(const SmallAnswer& answer, std::string_view field) {
  if (answer.status >= 300) return std::nullopt;
  if (field.empty()) return answer.body.starts_with("paused");  // Portico's words
  const std::optional<Json> said = FieldOfAnswer(answer.body, field);
  return said && said->is_bool() ? std::optional(said->as_bool()) : std::nullopt;
}

// It may tell when it is asked again.
bool TellsLater(const StatusOr<SmallAnswer>& answer) {
  return !answer.ok() || (answer->status >= 500 && answer->status != 501) || answer->status == 429;
}

}  // namespace

void HealthMonitor::LookAtPause(Watch& watch, TimePoint now) {
  const Worker& worker = *watch.worker;
  const PauseDoubt doubt = worker.pause_doubt();
  if (doubt.number == 0 || worker.health() != Health::kHealthy) return;
  if (std::exchange(watch.pause_doubt, doubt.number) != doubt.number) {
    watch.pause_wait = kSilence;
    watch.next_pause = now + kSilence;  // it may be about to pause, or to go on
  }
  if (watch.asking_pause || now < watch.next_pause) return;
  watch.asking_pause = true;
  if (worker.protocol() == Protocol::kGrpc) {
    return tokens_->AskPaused(
        watch.worker, options_.health.timeout,
        Later<bool>(worker.number(),
                    [doubt](HealthMonitor& self, Watch& asked, StatusOr<bool> paused) {
                      const StatusCode code = paused.status().code();
                      if (paused.ok()) return self.OnPause(asked, doubt, *paused, false);
                      self.OnPause(asked, doubt, std::nullopt, code != StatusCode::kUnimplemented);
                    }));
  }
  const PauseForm form = PauseFormOf(doubt.reading);
  const bool infers = doubt.reading == PauseReading::kInference;
  watch.pause = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = form.target,
                   .authorization = Authorization(worker),
                   .timeout = infers ? Patience() : options_.health.timeout,
                   .max_bytes = 64 << 10},
      [this, doubt, form, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found == watches_.end()) return;
        Watch& asked = *found->second;
        shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(asked.pause))] {});
        if (TellsLater(answer)) return OnPause(asked, doubt, std::nullopt, true);
        OnPause(asked, doubt, SaysItIsPaused(*answer, form.field), false);
      });
}

void HealthMonitor::OnPause(Watch& watch, const PauseDoubt& doubt, std::optional<bool> paused,
                            bool later) {
  watch.asking_pause = false;
  watch.next_pause = Clock::now() + watch.pause_wait;
  watch.pause_wait = std::min<Duration>(2 * watch.pause_wait, kLongestPauseWait);
  if (!paused && !later && doubt.been_down) paused = false;
  if (!paused) return;
  Worker& worker = *watch.worker;
  if (worker.SettlePause(doubt, *paused) && !doubt.been_down) {
    LogWarning(
        "worker {} {} is not paused: it was told to pause or to go on, and the answer was lost",
        worker.id(), worker.url());
  }
}

}  // namespace portico::router
