#include "service/service_metrics.h"

#include <string>

namespace portico {
namespace {

// Sums a count over the models' engines; 0 while they load.
template <typename Field>
std::function<double()> Sum(const ModelRegistry& models, Field EngineLoad::* field) {
  return [&models, field] {
    double sum = 0;
    for (const ServingModel* model : models.models()) {
      sum += static_cast<double>(model->engine->load().*field);
    }
    return sum;
  };
}

double KvUsage(const ModelRegistry& models) {
  double used = 0, total = 0;
  for (const ServingModel* model : models.models()) {
    EngineLoad load = model->engine->load();
    used += static_cast<double>(load.kv_cells_used);
    total += static_cast<double>(load.kv_cells_total);
  }
  return total > 0 ? used / total : 0;
}

double ReusedTokens(const ModelRegistry& models) {
  double sum = 0;
  for (const ServingModel* model : models.models()) {
    if (model->conversation_cache) {
      sum += static_cast<double>(model->conversation_cache->reused_tokens());
    }
  }
  return sum;
}

double ConversationBytes(const ModelRegistry& models) {
  double sum = 0;
  for (const ServingModel* model : models.models()) {
    if (model->conversation_cache) sum += static_cast<double>(model->conversation_cache->bytes());
  }
  return sum;
}

Counter& Success(Registry& registry, FinishReason reason) {
  return registry.AddCounter("portico_request_success_total",
                             "Choices that ended on their own, by finish reason.",
                             {{"finish_reason", std::string(FinishReasonName(reason))}});
}

}  // namespace

ServiceMetrics::ServiceMetrics(Registry& registry, const ModelRegistry& models)
    : aborted(
          registry.AddCounter("portico_requests_aborted_total",
                              "Choices ended early: the client left, or an abort was asked for.")),
      failed(registry.AddCounter("portico_requests_failed_total",
                                 "Choices that an engine ended with an error.")),
      stopped(Success(registry, FinishReason::kStop)),
      reached_length(Success(registry, FinishReason::kLength)),
      time_to_first_token(registry.AddHistogram("portico_time_to_first_token_seconds",
                                                "From the request's arrival to its first token.",
                                                RequestSecondsBounds())),
      inter_token_latency(registry.AddHistogram("portico_inter_token_latency_seconds",
                                                "Between a stream's tokens, as they are delivered.",
                                                TokenSecondsBounds())),
      e2e_latency(registry.AddHistogram("portico_e2e_request_latency_seconds",
                                        "From the request's arrival to a choice's end.",
                                        RequestSecondsBounds())) {
  registry.AddCallbackGauge("portico_requests_running", "Streams in the engines' batches.",
                            Sum(models, &EngineLoad::running));
  registry.AddCallbackGauge("portico_requests_waiting", "Streams in the engines' queues.",
                            Sum(models, &EngineLoad::waiting));
  registry.AddCallbackGauge(
      "portico_kv_cache_usage_ratio",
      "Share of the KV cells held by live requests; evictable prefixes do not count.",
      [&models] { return KvUsage(models); });
  registry.AddCallbackCounter("portico_prompt_tokens_total", "Prompt tokens of admitted streams.",
                              Sum(models, &EngineLoad::prompt_tokens));
  registry.AddCallbackCounter("portico_cached_prompt_tokens_total",
                              "Prompt tokens that the prefix cache had.",
                              Sum(models, &EngineLoad::cached_tokens));
  registry.AddCallbackCounter("portico_reused_encoded_tokens_total",
                              "Prompt tokens whose text was encoded for an earlier prompt.",
                              [&models] { return ReusedTokens(models); });
  registry.AddCallbackGauge("portico_conversation_cache_bytes",
                            "Memory of the encoded parts of earlier prompts.",
                            [&models] { return ConversationBytes(models); });
  registry.AddCallbackCounter("portico_generation_tokens_total", "Tokens generated.",
                              Sum(models, &EngineLoad::generated_tokens));
  registry.AddCallbackCounter("portico_retractions_total",
                              "Running streams set back because the KV cache was full.",
                              Sum(models, &EngineLoad::retractions));
}

void ServiceMetrics::OnFinished(FinishReason reason, Duration since_arrival) {
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
