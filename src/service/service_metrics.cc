#include "service/service_metrics.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace portico {
namespace {

MetricLabels LabelsOf(const std::string& model_id) { return {{"model_name", model_id}}; }

// What `read` makes of the model; 0 while it loads.
template <typename Read>
std::function<double()> Reading(const ModelRegistry& models, const std::string& id, Read read) {
  return [&models, id, read] {
    const auto model = models.Find(id);
    return model.ok() ? static_cast<double>(read(**model)) : 0.0;
  };
}

template <typename Field>
auto LoadOf(Field EngineLoad::* field) {
  return [field](const ServingModel& model) { return model.engine->load().*field; };
}

double KvUsage(const ServingModel& model) {
  const EngineLoad load = model.engine->load();
  if (load.kv_cells_total == 0) return 0;
  return static_cast<double>(load.kv_cells_used) / static_cast<double>(load.kv_cells_total);
}

uint64_t ReusedTokens(const ServingModel& model) {
  return model.conversation_cache ? model.conversation_cache->reused_tokens() : 0;
}

size_t ConversationBytes(const ServingModel& model) {
  return model.conversation_cache ? model.conversation_cache->bytes() : 0;
}

Counter& Success(Registry& registry, const std::string& model_id, FinishReason reason) {
  MetricLabels labels = LabelsOf(model_id);
  labels.emplace_back("finish_reason", std::string(FinishReasonName(reason)));
  return registry.AddCounter("portico_request_success_total",
                             "Choices that ended on their own, by finish reason.", labels);
}

void AddGauges(Registry& registry, const ModelRegistry& models, const std::string& id) {
  const auto gauge = [&](std::string_view name, std::string_view help, auto read) {
    registry.AddCallbackGauge(name, help, Reading(models, id, read), LabelsOf(id));
  };
  gauge("portico_model_healthy", "1 once the model is loaded, until its engine fails.",
        LoadOf(&EngineLoad::healthy));
  gauge("portico_requests_running", "Streams in the engine's batch.", LoadOf(&EngineLoad::running));
  gauge("portico_requests_waiting", "Streams in the engine's queue.", LoadOf(&EngineLoad::waiting));
  gauge("portico_requests_retracted",
        "Streams in the engine's queue that had been running and lost their cells.",
        LoadOf(&EngineLoad::retracted));
  gauge("portico_weight_updates_waiting", "Weight updates behind the one that is being read.",
        LoadOf(&EngineLoad::weight_updates_waiting));
  gauge("portico_kv_cache_usage_ratio",
        "Share of the KV cells held by live requests; evictable prefixes do not count.", KvUsage);
  gauge("portico_conversation_cache_bytes", "Memory of the encoded parts of earlier prompts.",
        ConversationBytes);
}

void AddCounters(Registry& registry, const ModelRegistry& models, const std::string& id) {
  const auto counter = [&](std::string_view name, std::string_view help, auto read) {
    registry.AddCallbackCounter(name, help, Reading(models, id, read), LabelsOf(id));
  };
  counter("portico_prompt_tokens_total", "Prompt tokens of admitted streams.",
          LoadOf(&EngineLoad::prompt_tokens));
  counter("portico_cached_prompt_tokens_total", "Prompt tokens that the prefix cache had.",
          LoadOf(&EngineLoad::cached_tokens));
  counter("portico_reused_encoded_tokens_total",
          "Prompt tokens whose text was encoded for an earlier prompt.", ReusedTokens);
  counter("portico_generation_tokens_total", "Tokens generated.",
          LoadOf(&EngineLoad::generated_tokens));
  counter("portico_retractions_total", "Running streams set back because the KV cache was full.",
          LoadOf(&EngineLoad::retractions));
  counter("portico_engine_bad_frames_total",
          "Messages of a remote engine that could not be read; they end the requests they name.",
          LoadOf(&EngineLoad::bad_frames));
}

}  // namespace

ModelMetrics::ModelMetrics(Registry& registry, const ModelRegistry& models,
                           const std::string& model_id)
    : refused(
          registry.AddCounter("portico_requests_refused_total",
                              "Requests that the engine did not take: its queue was full, or it "
                              "had stopped.",
                              LabelsOf(model_id))),
      aborted(registry.AddCounter(
          "portico_requests_aborted_total",
          "Choices ended early: the client left, or an abort was asked for.", LabelsOf(model_id))),
      failed(registry.AddCounter("portico_requests_failed_total",
                                 "Choices that an engine ended with an error.",
                                 LabelsOf(model_id))),
      stopped(Success(registry, model_id, FinishReason::kStop)),
      reached_length(Success(registry, model_id, FinishReason::kLength)),
      parser_fallbacks(registry.AddCounter(
          "portico_parser_fallbacks_total",
          "Pieces of output that began like a tool call or a header and were given as text.",
          LabelsOf(model_id))),
      held_deltas(registry.AddGauge("portico_held_deltas",
                                    "Deltas of streams whose prompt is being encoded on the CPU "
                                    "pool.",
                                    LabelsOf(model_id))),
      time_to_first_token(registry.AddHistogram("portico_time_to_first_token_seconds",
                                                "From the request's arrival to its first token.",
                                                RequestSecondsBounds(), LabelsOf(model_id))),
      inter_token_latency(registry.AddHistogram("portico_inter_token_latency_seconds",
                                                "Between a stream's tokens, as they are delivered.",
                                                TokenSecondsBounds(), LabelsOf(model_id))),
      e2e_latency(registry.AddHistogram("portico_e2e_request_latency_seconds",
                                        "From the request's arrival to a choice's end.",
                                        RequestSecondsBounds(), LabelsOf(model_id))) {
  AddGauges(registry, models, model_id);
  AddCounters(registry, models, model_id);
}

ServiceMetrics::ServiceMetrics(Registry& registry, const ModelRegistry& models,
                               const std::vector<std::string>& model_ids) {
  for (const std::string& id : model_ids) {
    entries_.push_back(std::unique_ptr<Entry>(new Entry{id, ModelMetrics(registry, models, id)}));
  }
}

ModelMetrics& ServiceMetrics::Of(const ServingModel& model) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&model](const auto& e) { return e->id == model.id; });
  return (entry != entries_.end() ? *entry : entries_.front())->metrics;
}

void ModelMetrics::OnFinished(FinishReason reason, Duration since_arrival) {
  e2e_latency.Observe(Seconds(since_arrival));
  switch (reason) {
    case FinishReason::kStop:
      return stopped.Add();
    case FinishReason::kLength:
      return reached_length.Add();
    case FinishReason::kAbort:
      return aborted.Add();
    default:
      return failed.Add();
  }
}

}  // namespace portico
