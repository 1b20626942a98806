#include "service/control/load_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/mutex.h"
#include "base/unix_time.h"

namespace portico {
namespace {

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

Json MemoryOf(const EngineInfo& info, int64_t max_total_tokens) {
  return JsonObject{
      {"weight_gb", Gigabytes(info.weight_bytes)},
      {"kv_cache_gb", Gigabytes(info.kv_bytes_per_cell * max_total_tokens)},
      {"graph_gb", 0.0},
      {"token_capacity", max_total_tokens},
  };
}

Json QueuesOf(const EngineLoad& load) {
  return JsonObject{
      {"waiting", load.paused ? int64_t{0} : load.waiting},
      {"grammar", 0},
      {"paused", load.paused ? load.waiting : int64_t{0}},
      {"retracted", load.retracted},
  };
}

Json ReportOf(const RankReport& from, const LoadParts& parts) {
  const EngineLoad& load = from.load;
  const EngineInfo& info = from.model->engine->info();
  Json report = JsonObject{
      {"timestamp", UnixTime()},
      {"dp_rank", from.rank},
      {"model", from.model->id},
      {"num_running_reqs", load.running},
      {"num_waiting_reqs", load.waiting},
      {"num_total_reqs", load.running + load.waiting},
      {"num_used_tokens", load.kv_cells_used},
      {"num_total_tokens", load.kv_cells_used + load.kv_cells_cached},
      {"max_total_num_tokens", from.max_total_tokens},
      {"max_running_requests", static_cast<int64_t>(from.max_running_requests)},
      {"token_usage",
       Ratio(static_cast<double>(load.kv_cells_used), static_cast<double>(from.max_total_tokens))},
      {"gen_throughput", from.tokens_per_second},
      {"cache_hit_rate", from.cache_hit_rate},
      {"utilization", Ratio(static_cast<double>(load.running), from.max_running_requests)},
      {"num_retractions", static_cast<int64_t>(load.retractions)},
      {"is_pause", load.paused},
      {"healthy", load.healthy},
  };
  if (parts.memory) report.Set("memory", MemoryOf(info, from.max_total_tokens));
  if (parts.queues) report.Set("queues", QueuesOf(load));
  return report;
}

Json SumsOf(const JsonArray& reports) {
  int64_t running = 0;
  int64_t waiting = 0;
  double usage = 0;
  double throughput = 0;
  double utilization = 0;
  for (const Json& report : reports) {
    running += report.GetInt("num_running_reqs", 0);
    waiting += report.GetInt("num_waiting_reqs", 0);
    usage += report.GetDouble("token_usage", 0);
    throughput += report.GetDouble("gen_throughput", 0);
    utilization += report.GetDouble("utilization", 0);
  }
  const auto ranks = static_cast<double>(reports.size());
  return JsonObject{
      {"total_running_reqs", running},
      {"total_waiting_reqs", waiting},
      {"total_reqs", running + waiting},
      {"avg_token_usage", Ratio(usage, ranks)},
      {"avg_throughput", Ratio(throughput, ranks)},
      {"avg_utilization", Ratio(utilization, ranks)},
  };
}

}  // namespace

double LoadMeter::TokensPerSecond(const Engine* engine, size_t rank, uint64_t generated,
                                  TimePoint now) {
  const MutexLock lock(&mutex_);
  const auto [it, first] =
      readings_.try_emplace(std::pair(engine, rank), Reading{now, generated, 0});
  Reading& last = it->second;
  const double passed = Seconds(now - last.at);
  if (!first && passed >= 1) {
    last = {now, generated, static_cast<double>(generated - last.generated) / passed};
  }
  return last.rate;
}

StatusOr<LoadParts> LoadParts::Parse(std::string_view include) {
  if (include.empty()) return LoadParts{};
  LoadParts parts{false, false};
  while (!include.empty()) {
    const size_t end = std::min(include.find(','), include.size());
    const std::string_view word = include.substr(0, end);
    include.remove_prefix(std::min(end + 1, include.size()));
    if (word == "all") {
      parts = LoadParts{};
    } else if (word == "memory") {
      parts.memory = true;
    } else if (word == "queues") {
      parts.queues = true;
    } else if (word != "core" && word != "spec" && word != "lora" && word != "disagg") {
      return InvalidArgument("include",
                             fmt::format("include must be a list of core, memory, queues, spec, "
                                         "lora, disagg and all, got \"{:.48}\"",
                                         word));
    }
  }
  return parts;
}

std::vector<RankReport> RankReports(const ModelRegistry& models, LoadMeter& meter,
                                    std::optional<int64_t> rank) {
  std::vector<RankReport> reports;
  int64_t at = 0;
  for (const ServingModel* model : models.models()) {
    const EngineInfo& info = model->engine->info();
    std::vector<EngineLoad> loads = model->engine->rank_loads();
    if (loads.size() <= 1) loads = {model->engine->load()};  // with what is known of the whole only
    const auto ranks = static_cast<int64_t>(loads.size());
    for (size_t i = 0; i < loads.size(); ++i, ++at) {
      if (rank && *rank != at) continue;
      const EngineLoad& load = loads[i];
      RankReport report;
      report.model = model;
      report.rank = at;
      report.max_total_tokens = ranks > 1 && load.kv_cells_total > 0
                                    ? load.kv_cells_total
                                    : info.max_total_tokens / ranks;
      report.max_running_requests = static_cast<int32_t>(info.max_running_requests / ranks);
      report.tokens_per_second =
          load.tokens_per_second >= 0
              ? load.tokens_per_second
              : meter.TokensPerSecond(model->engine.get(), i, load.generated_tokens, Clock::now());
      report.cache_hit_rate = load.cache_hit_rate >= 0
                                  ? load.cache_hit_rate
                                  : Ratio(static_cast<double>(load.cached_tokens),
                                          static_cast<double>(load.prompt_tokens));
      report.load = load;
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

JsonArray LoadReports(const ModelRegistry& models, LoadMeter& meter, std::optional<int64_t> rank,
                      const LoadParts& parts) {
  JsonArray reports;
  for (const RankReport& report : RankReports(models, meter, rank)) {
    reports.push_back(ReportOf(report, parts));
  }
  return reports;
}

Json LoadsBody(JsonArray reports) {
  Json sums = SumsOf(reports);
  return JsonObject{
      {"timestamp", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
      {"version", PORTICO_VERSION},
      {"dp_rank_count", static_cast<int64_t>(reports.size())},
      {"loads", std::move(reports)},
      {"aggregate", std::move(sums)},
  };
}

Json OldLoadsBody(JsonArray reports) {
  for (Json& report : reports) {
    report.Set("num_reqs", report.GetInt("num_total_reqs", 0));
    report.Set("num_tokens", report.GetInt("num_used_tokens", 0));
    report.Set("ts_tic", report.GetDouble("timestamp", 0));
  }
  return Json(std::move(reports));
}

}  // namespace portico
