#include "app/serve/activity_log.h"

#include "base/log.h"

namespace portico {

void ActivityLog::NoteHealth(const ServingModel& model, bool healthy) {
  if (healthy) {
    if (failed_.erase(&model) > 0) LogInfo("model `{}`: its engine answers again", model.id);
  } else if (failed_.insert(&model).second) {
    LogError("model `{}`: its engine has failed; its requests are answered with 503", model.id);
  }
}

void ActivityLog::Tick() {
  EngineLoad now;
  for (const ServingModel* model : models_.models()) {
    EngineLoad load = model->engine->load();
    NoteHealth(*model, load.healthy);
    now.running += load.running;
    now.waiting += load.waiting;
    now.prompt_tokens += load.prompt_tokens;
    now.cached_tokens += load.cached_tokens;
    now.generated_tokens += load.generated_tokens;
    now.kv_cells_used += load.kv_cells_used;
    now.kv_cells_total += load.kv_cells_total;
  }
  TimePoint time = Clock::now();
  double seconds = Seconds(time - last_time_);
  uint64_t prompt = now.prompt_tokens - last_.prompt_tokens;
  uint64_t generated = now.generated_tokens - last_.generated_tokens;
  uint64_t cached = now.cached_tokens - last_.cached_tokens;
  last_time_ = time;
  last_ = now;
  if (prompt + generated == 0 && now.running + now.waiting == 0) return;
  LogInfo(
      "{} running, {} waiting, {:.1f} tokens/s out, {:.1f} tokens/s in, cache hits {:.0f} %, KV "
      "{:.0f} %",
      now.running, now.waiting, static_cast<double>(generated) / seconds,
      static_cast<double>(prompt) / seconds,
      prompt ? 100.0 * static_cast<double>(cached) / static_cast<double>(prompt) : 0.0,
      now.kv_cells_total
          ? 100.0 * static_cast<double>(now.kv_cells_used) / static_cast<double>(now.kv_cells_total)
          : 0.0);
}

}  // namespace portico
