// Whether a worker is paused that counts as paused and may not be: the monitor asks until it is told, less and less often.
// One whose pause is in no doubt may go on because somebody has told it past this gateway. It is asked every health.interval
// where that costs its engine nothing. /health_generate is asked only if requests have come to the worker since, and not again
// once the answer is not one of Portico's: SGLang answers as soon as its scheduler says anything, also while paused, and else
// logs a failed health check.
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
  std::string_view field;  // of the answer; empty: what infers is not paused
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

constexpr std::string_view kPorticoInfers = "ok\n";
constexpr std::string_view kPorticoPauses = "paused";

// It may tell when it is asked again.
bool TellsLater(const StatusOr<SmallAnswer>& answer) {
  return !answer.ok() || (answer->status >= 500 && answer->status != 501) || answer->status == 429;
}

// Whether the engine has to answer, not its server alone.
bool AsksToInfer(const Worker& worker, PauseReading reading) {
  return worker.protocol() == Protocol::kHttp && reading == PauseReading::kInference;
}

}  // namespace

HealthMonitor::PauseAnswer HealthMonitor::ReadPause(const StatusOr<SmallAnswer>& answer,
                                                    std::string_view field) {
  if (TellsLater(answer)) return PauseAnswer::kLater;
  if (answer->status >= 300) return PauseAnswer::kNeverTells;
  if (field.empty()) {
    if (answer->body.starts_with(kPorticoPauses)) return PauseAnswer::kPaused;
    return answer->body == kPorticoInfers ? PauseAnswer::kGoesOn : PauseAnswer::kAnswers;
  }
  const std::optional<Json> said = FieldOfAnswer(answer->body, field);
  if (!said || !said->is_bool()) return PauseAnswer::kNeverTells;
  return said->as_bool() ? PauseAnswer::kPaused : PauseAnswer::kGoesOn;
}

void HealthMonitor::LookAtPause(Watch& watch, TimePoint now) {
  const Worker& worker = *watch.worker;
  const PauseDoubt doubt = worker.pause_doubt();
  if (!worker.paused() || doubt.number != 0) watch.next_sure = {};
  if (!worker.paused() || worker.health() != Health::kHealthy) return;
  if (doubt.number == 0) return LookAtSurePause(watch, now);
  if (std::exchange(watch.pause_doubt, doubt.number) != doubt.number) {
    watch.pause_wait = kSilence;
    watch.next_pause = now + kSilence;  // it may be about to pause, or to go on
  }
  if (watch.asking_pause || now < watch.next_pause) return;
  AskPaused(watch, doubt.reading, [doubt](HealthMonitor& self, Watch& asked, PauseAnswer answer) {
    self.OnPause(asked, doubt, answer);
  });
}

void HealthMonitor::LookAtSurePause(Watch& watch, TimePoint now) {
  const Worker& worker = *watch.worker;
  const Duration interval = std::max<Duration>(options_.health.interval, kSilence);
  if (watch.next_sure == TimePoint{}) {
    watch.next_sure = now + interval;
    watch.sure_requests = worker.total_requests();
    return;
  }
  if (watch.asking_pause || now < watch.next_sure) return;
  const SurePause pause = worker.sure_pause();
  if (pause.number == 0) return;
  const bool infers = AsksToInfer(worker, pause.reading);
  if (infers && worker.total_requests() == watch.sure_requests) return;
  AskPaused(watch, pause.reading,
            [pause, infers, interval](HealthMonitor&, Watch& asked, PauseAnswer answer) {
              const bool goes_on = answer == PauseAnswer::kGoesOn;
              const bool told = goes_on || answer == PauseAnswer::kPaused;
              asked.next_sure = infers && !told ? TimePoint::max() : Clock::now() + interval;
              if (!goes_on) return;
              if (!asked.worker->EndSurePause(pause)) return;
              LogWarning("worker {} {} is not paused any more: it has gone on past this gateway",
                         asked.worker->id(), asked.worker->url());
            });
}

void HealthMonitor::AskPaused(Watch& watch, PauseReading reading, PauseTold told) {
  const Worker& worker = *watch.worker;
  watch.asking_pause = true;
  if (worker.protocol() == Protocol::kGrpc) {
    return tokens_->AskPaused(
        watch.worker, options_.health.timeout,
        Later<bool>(worker.number(), [told = std::move(told)](HealthMonitor& self, Watch& asked,
                                                              StatusOr<bool> paused) {
          asked.asking_pause = false;
          if (paused.ok()) {
            return told(self, asked, *paused ? PauseAnswer::kPaused : PauseAnswer::kGoesOn);
          }
          const bool never = paused.status().code() == StatusCode::kUnimplemented;
          told(self, asked, never ? PauseAnswer::kNeverTells : PauseAnswer::kLater);
        }));
  }
  const PauseForm form = PauseFormOf(reading);
  const bool infers = AsksToInfer(worker, reading);
  watch.pause = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = form.target,
                   .authorization = Authorization(worker),
                   .timeout = infers ? Patience() : options_.health.timeout,
                   .max_bytes = 64 << 10},
      [this, told = std::move(told), form,
       number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found == watches_.end()) return;
        Watch& asked = *found->second;
        shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(asked.pause))] {});
        asked.asking_pause = false;
        told(*this, asked, ReadPause(answer, form.field));
      });
}

void HealthMonitor::OnPause(Watch& watch, const PauseDoubt& doubt, PauseAnswer answer) {
  watch.next_pause = Clock::now() + watch.pause_wait;
  watch.pause_wait = std::min<Duration>(2 * watch.pause_wait, kLongestPauseWait);
  if (answer == PauseAnswer::kLater) return;
  if (answer == PauseAnswer::kNeverTells && !doubt.been_down) return;
  Worker& worker = *watch.worker;
  if (worker.SettlePause(doubt, answer == PauseAnswer::kPaused) && !doubt.been_down) {
    LogWarning(
        "worker {} {} is not paused: it was told to pause or to go on, and the answer was lost",
        worker.id(), worker.url());
  }
}

}  // namespace portico::router
