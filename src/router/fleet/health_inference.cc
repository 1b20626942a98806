// Whether the engine of an HTTP worker infers that holds requests in silence: the monitor's questions about it.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/fleet/health_monitor.h"
#include "router/fleet/stall_limit.h"
#include "text/json_writer.h"

namespace portico::router {
namespace {

// The shortest time between two looks at a page.
constexpr Duration kStepsEvery = std::chrono::seconds(1);

// How a worker without /health_generate is asked for one token, or one vector.
struct TokenForm {
  const char* target;
  const char* text;  // the field that has it
};
constexpr TokenForm kTokenForms[] = {{"/v1/completions", "prompt"}, {"/v1/embeddings", "input"}};

std::string TokenBody(const TokenForm& form, const std::string& model) {
  std::string body;
  JsonWriter writer(&body);
  writer.BeginObject().Key("model").String(model).Key(form.text).String("1");
  if (form.text == kTokenForms[0].text) writer.Key("max_tokens").Int(1);
  writer.EndObject();
  return body;
}

// SGLang says 503 where its engine has not inferred in time, and a proxy 504 where its server has not answered.
bool SaysNotNow(int status) { return status == 503 || status == 504; }

}  // namespace

std::string HealthMonitor::ModelToAsk(const Worker& worker) {
  const std::vector<ModelCard> cards = worker.cards();
  if (!cards.empty()) return cards.front().id;
  const std::vector<std::string> models = worker.models();
  return models.empty() ? std::string() : models.front();
}

HealthMonitor::Sign HealthMonitor::SignOf(const Watch& watch) const {
  const Worker& worker = *watch.worker;
  if (options_.health.stall_timeout <= Duration::zero() || worker.protocol() != Protocol::kHttp ||
      worker.held_back()) {
    return Sign::kAnswer;
  }
  if (!watch.no_inference) return Sign::kInference;
  if (watch.no_steps) return Sign::kAnswer;
  if (worker.health() != Health::kStalled) return Sign::kSteps;
  // An engine without requests does not step, whether it hangs or not.
  const bool hung = watch.steps_at != TimePoint{} && watch.token_form < std::size(kTokenForms);
  return hung && !ModelToAsk(worker).empty() ? Sign::kToken : Sign::kAnswer;
}

bool HealthMonitor::JudgedByInference(const Watch& watch, TimePoint now) const {
  const Sign sign = SignOf(watch);
  if (sign != Sign::kSteps) return sign != Sign::kAnswer;
  // As long as the page can be read; it may come too late, or not at all.
  return watch.steps_at != TimePoint{} &&
         now - watch.steps_at < StepsLast(StallLimit(options_.health.stall_timeout));
}

void HealthMonitor::AskToInfer(Watch& watch) {
  const Sign sign = SignOf(watch);
  if (sign == Sign::kAnswer) return;
  const Worker& worker = *watch.worker;
  const bool stalled = worker.health() == Health::kStalled;
  SmallRequest request = {.target = "/health_generate",
                          .authorization = Authorization(worker),
                          // One that is stalled may come back by other connections than this one.
                          .timeout = stalled ? options_.health.timeout : Patience(),
                          .max_bytes = 64 << 10};
  if (sign == Sign::kToken) {
    request.timeout = Patience();  // it stands in a queue with what others ask for
    const TokenForm& form = kTokenForms[watch.token_form];
    request.method = "POST";
    request.target = form.target;
    request.body = TokenBody(form, ModelToAsk(worker));
    request.content_type = "application/json";
    request.max_bytes = 1 << 20;  // a vector
  }
  std::shared_ptr<EngineSteps> steps;
  if (sign == Sign::kSteps) {
    steps = std::make_shared<EngineSteps>();
    request.target = "/metrics";
    request.timeout = options_.health.timeout;
    request.max_bytes = 4 << 20;
    request.on_body = [steps](std::string_view part) { steps->Add(part); };
  }
  watch.inference = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker, std::move(request),
      [this, sign, steps, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found == watches_.end()) return;
        Watch& asked = *found->second;
        shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(asked.inference))] {});
        const TimePoint now = Clock::now();
        asked.next_inference = now + options_.health.down_interval;
        if (sign == Sign::kInference) OnInference(asked, answer, now);
        if (sign == Sign::kSteps) OnSteps(asked, answer, *steps, now);
        if (sign == Sign::kToken) OnToken(asked, answer, now);
      });
}

void HealthMonitor::OnInference(Watch& watch, const StatusOr<SmallAnswer>& answer, TimePoint now) {
  // What comes of silence is decided by its length.
  if (!answer.ok() || SaysNotNow(answer->status)) return;
  if (answer->status < 400) return NoteInference(watch, now);
  // vLLM has no such route, others fail in it, and a worker may want a key for it that is its clients'.
  watch.no_inference = true;
  watch.next_inference = now;
  watch.next_probe = now;
}

void HealthMonitor::OnSteps(Watch& watch, const StatusOr<SmallAnswer>& answer, EngineSteps& steps,
                            TimePoint now) {
  watch.next_inference = now + std::max(kStepsEvery, options_.health.down_interval);
  const bool late = !answer.ok() && answer.status().code() != StatusCode::kInternal;
  if (late || (answer.ok() && SaysNotNow(answer->status))) return;
  if (!answer.ok() || answer->status != 200 || !steps.known()) {
    watch.no_steps = true;
    watch.next_probe = now;
    return;
  }
  const std::optional<uint64_t> mark = steps.mark();
  if (!mark.has_value()) {
    watch.steps_at =
        TimePoint{};  // it has no request, or has not counted a step yet and perhaps never will
    return;
  }
  if (watch.steps_at != TimePoint{} && watch.steps != *mark) watch.worker->NoteLife(now);
  watch.steps = *mark;
  watch.steps_at = now;
}

void HealthMonitor::OnToken(Watch& watch, const StatusOr<SmallAnswer>& answer, TimePoint now) {
  const bool malformed = !answer.ok() && answer.status().code() == StatusCode::kInternal;
  if (!malformed && (!answer.ok() || SaysNotNow(answer->status) || answer->status == 429)) return;
  if (!malformed && answer->status < 400) return NoteInference(watch, now);
  ++watch.token_form;  // its model does not have this, or the gateway has no key for it
  watch.next_inference = now;
  watch.next_probe = now;
}

void HealthMonitor::NoteInference(Watch& watch, TimePoint now) {
  watch.worker->NoteLife(now);
  if (watch.worker->health() == Health::kStalled) OnGoodProbe(watch, now);
}

}  // namespace portico::router
