#include "api/gateway/load_routes.h"

#include <algorithm>
#include <cstdint>

#include "text/json_writer.h"

namespace portico::api {
namespace {

void WriteCount(std::string_view name, double count, JsonWriter* writer) {
  writer->Key(name);
  count < 0 ? writer->Null() : writer->Int(static_cast<int64_t>(count));
}

void WriteFigure(std::string_view name, double figure, JsonWriter* writer) {
  writer->Key(name);
  figure < 0 ? writer->Null() : writer->Double(figure);
}

void WriteReported(const router::WorkerSpec& spec, const router::ReportedLoad& load,
                   JsonWriter* writer) {
  writer->Key("worker_type").String(RoleName(spec.role));
  writer->Key("dp_rank").Int(std::max(spec.dp_rank, 0));
  const double running = load.running_requests;
  const double waiting = load.waiting_requests;
  WriteCount("num_running_reqs", running, writer);
  WriteCount("num_waiting_reqs", waiting, writer);
  WriteCount("num_total_reqs", running < 0 || waiting < 0 ? -1 : running + waiting, writer);
  WriteCount("num_used_tokens", load.used_tokens, writer);
  WriteCount("max_total_num_tokens", load.total_tokens, writer);
  WriteFigure("token_usage", load.token_usage, writer);
  WriteFigure("gen_throughput", load.throughput, writer);
  WriteFigure("cache_hit_rate", load.hit_rate, writer);
}

}  // namespace

bool IsLoadsPath(std::string_view path) {
  return path == "/get_loads" || path == "/get_load" || path == "/v1/loads";
}

std::string LoadsJson(const router::WorkerSet& set, bool urls) {
  std::string body;
  JsonWriter writer(&body);
  const auto begin = [&](const router::Worker& worker) {
    writer.BeginObject().Key("worker").String(urls ? worker.url() : worker.id());
    writer.Key("id").String(worker.id());
  };
  writer.BeginObject().Key("workers").BeginArray();
  for (const auto& worker : set.workers()) {
    begin(*worker);
    writer.Key("load").Int(worker->requests()).EndObject();
  }
  writer.EndArray().Key("loads").BeginArray();
  for (const auto& worker : set.workers()) {
    const router::ReportedLoad load = worker->report();
    if (load.at == TimePoint{}) continue;
    begin(*worker);
    WriteReported(worker->spec(), load, &writer);
    writer.EndObject();
  }
  writer.EndArray().EndObject();
  return body;
}

}  // namespace portico::api
