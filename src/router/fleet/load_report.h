// What workers say of their load, in the forms of the engines.
//
// SGLang (0.5.7 and newer) and Portico: GET /v1/loads, {"loads": [{"num_running_reqs", "num_waiting_reqs",
// "num_used_tokens", "max_total_num_tokens", "token_usage", "gen_throughput", "cache_hit_rate"}]}, an entry for each rank. Older SGLang:
// GET /get_load, a list of {"num_reqs", "num_waiting_reqs", "num_tokens"}. vLLM: GET /metrics with
// vllm:num_requests_running, vllm:num_requests_waiting and vllm:kv_cache_usage_perc.
#pragma once

#include <optional>
#include <string_view>

#include "router/worker.h"

namespace portico::router {

// Of an answer to /v1/loads or /get_load: of `rank` ("dp_rank"), or of all added up if it is -1.
// Nothing if it has another form.
std::optional<ReportedLoad> ReadLoads(std::string_view body, TimePoint at, int rank = -1);

// Of an answer to vLLM's /metrics. Nothing if it has none of those metrics.
std::optional<ReportedLoad> ReadLoadMetrics(std::string_view text, TimePoint at);

}  // namespace portico::router
