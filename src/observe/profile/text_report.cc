#include "observe/profile/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/stable_sort.h"
#include "text/json_writer.h"

namespace portico::observe {
namespace {

constexpr size_t kMostLines = 60;  // of one timeline

using Table = std::vector<std::vector<std::string>>;

// Client's names in a terminal: control characters are left out.
std::string Plain(std::string_view text, size_t most = 48) {
  std::string plain;
  for (const char c : text.substr(0, most)) {
    plain.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  return plain;
}

void AppendTable(const Table& table, std::string* out) {
  if (table.size() < 2) {
    *out += "(empty)\n";
    return;
  }
  std::vector<size_t> widths(table.front().size(), 0);
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (size_t r = 0; r < table.size(); ++r) {
    for (size_t i = 0; i < table[r].size(); ++i) {
      const bool last = i + 1 == table[r].size();
      fmt::format_to(std::back_inserter(*out), "{:<{}}{}", table[r][i], last ? 0 : widths[i],
                     last ? "\n" : " | ");
    }
    if (r > 0) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      *out += std::string(widths[i], '-');
      *out += i + 1 == widths.size() ? "\n" : "-+-";
    }
  }
}

std::string Ms(double ms) { return fmt::format("{:.3f}", ms); }

void AddDurations(const Durations& d, std::vector<std::string>* row) {
  row->push_back(fmt::format("{}", d.count));
  for (const double ms : {d.total_ms, d.avg_ms, d.p50_ms, d.p95_ms, d.max_ms}) {
    row->push_back(Ms(ms));
  }
}

void AppendProcesses(const Profile& profile, std::string* out) {
  Table table{{"process", "pid", "host", "events", "dropped", "cut", "shifted_ms", "state"}};
  for (const ProfileProcess& process : profile.processes) {
    const bool told = !process.boot_id.empty();
    table.push_back({Plain(process.stage), fmt::format("{}", process.pid), Plain(process.host),
                     fmt::format("{}", process.events), fmt::format("{}", process.dropped),
                     fmt::format("{}", process.cut), Ms(static_cast<double>(process.shifted) / 1e6),
                     process.ended ? "ended"
                     : told        ? "not ended"
                                   : ""});
  }
  *out += "\n## Processes\n";
  AppendTable(table, out);
}

// "2865 body bytes", "16 prompt tokens", "status 200", "success true".
std::string NumberOf(const Profile& profile, const ProfileEvent& event) {
  std::string what = Plain(profile.words.At(event.what));
  std::replace(what.begin(), what.end(), '_', ' ');
  if (what.ends_with("bytes") || what.ends_with("tokens")) {
    if (event.number == 1) what.pop_back();
    return fmt::format("{} {}", event.number, what);
  }
  if (what == "success" || what == "terminal") {
    return fmt::format("{} {}", what, event.number != 0);
  }
  return fmt::format("{}{}{}", what, what.empty() ? "" : " ", event.number);
}

std::string DetailOf(const Profile& profile, const ProfileEvent& event) {
  std::string detail;
  if (event.peer != 0) detail += Plain(profile.words.At(event.peer)) + " ";
  if (event.modality != 0) detail += Plain(profile.words.At(event.modality)) + " ";
  if (event.chunk >= 0) detail += fmt::format("chunk {} ", event.chunk);
  if (event.number >= 0) detail += NumberOf(profile, event) + " ";
  if (!detail.empty()) detail.pop_back();
  return detail;
}

// Chunks after the first ones are counted, not shown.
void AppendTimeline(const Profile& profile, const Timeline& timeline, std::string* out) {
  Table table{{"ms", "stage", "event", "detail"}};
  size_t left_out = 0;
  for (const uint32_t place : timeline.events) {
    const ProfileEvent& event = profile.events[place];
    if (event.chunk > 0 || table.size() > kMostLines) {
      ++left_out;
      continue;
    }
    table.push_back({Ms(static_cast<double>(event.nanoseconds - timeline.begin) / 1e6),
                     Plain(profile.words.At(event.stage)), Plain(profile.words.At(event.name)),
                     DetailOf(profile, event)});
  }
  fmt::format_to(std::back_inserter(*out), "\n## Timeline of {} ({} ms)\n",
                 Plain(profile.words.At(timeline.request), 128),
                 Ms(static_cast<double>(timeline.end - timeline.begin) / 1e6));
  AppendTable(table, out);
  if (left_out > 0) {
    fmt::format_to(std::back_inserter(*out), "({} events of later chunks are not shown)\n",
                   left_out);
  }
}

double Rounded(double ms) { return std::round(ms * 1000) / 1000; }

void WriteDurations(const Durations& d, JsonWriter* writer) {
  writer->Key("count").Int(static_cast<int64_t>(d.count));
  writer->Key("total_ms").Double(Rounded(d.total_ms)).Key("avg_ms").Double(Rounded(d.avg_ms));
  writer->Key("p50_ms").Double(Rounded(d.p50_ms)).Key("p95_ms").Double(Rounded(d.p95_ms));
  writer->Key("max_ms").Double(Rounded(d.max_ms)).EndObject();
}

void WriteStages(const Breakdown& breakdown, bool of_sglang_omni, JsonWriter* writer) {
  writer->BeginArray();
  for (const StageRow& row : breakdown.stages) {
    if (row.of_sglang_omni != of_sglang_omni) continue;
    writer->BeginObject().Key("stage").String(row.stage).Key("interval").String(row.interval);
    WriteDurations(row.durations, writer);
  }
  writer->EndArray();
}

void WriteHops(const Breakdown& breakdown, bool of_sglang_omni, JsonWriter* writer) {
  writer->BeginArray();
  for (const HopRow& row : breakdown.hop_rows) {
    if (row.of_sglang_omni != of_sglang_omni) continue;
    writer->BeginObject().Key("src").String(row.from).Key("dst").String(row.to);
    writer->Key("kind").String(row.kind);
    WriteDurations(row.durations, writer);
  }
  writer->EndArray();
}

void WriteTimelines(const Profile& profile, const Breakdown& breakdown, JsonWriter* writer) {
  writer->BeginObject();
  for (const Timeline& timeline : breakdown.timelines) {
    writer->Key(profile.words.At(timeline.request)).BeginArray();
    for (const uint32_t place : timeline.events) {
      const ProfileEvent& event = profile.events[place];
      writer->BeginObject().Key("stage").String(profile.words.At(event.stage));
      writer->Key("event_name").String(profile.words.At(event.name));
      writer->Key("timestamp_ns").Int(event.nanoseconds).Key("t_rel_ms");
      writer->Double(static_cast<double>(event.nanoseconds - timeline.begin) / 1e6).EndObject();
    }
    writer->EndArray();
  }
  writer->EndObject();
}

}  // namespace

std::string TextReport(const Profile& profile, const Breakdown& breakdown, size_t requests) {
  std::string out;
  fmt::format_to(std::back_inserter(out), "# Profile {}\n# Requests: {}\n",
                 profile.run_id.empty() ? "without a name" : Plain(profile.run_id, 128),
                 breakdown.timelines.size());
  if (profile.malformed > 0) {
    fmt::format_to(std::back_inserter(out), "# {} lines could not be read\n", profile.malformed);
  }
  AppendProcesses(profile, &out);
  Table stages{{"stage", "interval", "count", "total_ms", "avg_ms", "p50_ms", "p95_ms", "max_ms"}};
  for (const StageRow& row : breakdown.stages) {
    stages.push_back({Plain(row.stage), row.interval});
    AddDurations(row.durations, &stages.back());
  }
  out +=
      "\n## Stage breakdown\n"
      "(Intervals overlap, and some lie within others: they do not add up. docs/profiling.md "
      "describes "
      "their events.)\n";
  AppendTable(stages, &out);
  Table hops{{"src", "dst", "kind", "count", "total_ms", "avg_ms", "p50_ms", "p95_ms", "max_ms"}};
  for (const HopRow& row : breakdown.hop_rows) {
    hops.push_back({Plain(row.from), Plain(row.to), row.kind});
    AddDurations(row.durations, &hops.back());
  }
  out += "\n## Hop breakdown\n";
  AppendTable(hops, &out);
  if (!breakdown.steps.empty()) {
    Table steps{
        {"stage", "step", "batch", "count", "total_ms", "avg_ms", "p50_ms", "p95_ms", "max_ms"}};
    for (const StepRow& row : breakdown.steps) {
      steps.push_back({Plain(row.stage), Plain(row.name), fmt::format("{:.1f}", row.batch)});
      AddDurations(row.durations, &steps.back());
    }
    out += "\n## Steps\n";
    AppendTable(steps, &out);
  }
  std::vector<const Timeline*> slowest;
  for (const Timeline& timeline : breakdown.timelines) slowest.push_back(&timeline);
  StableSort(&slowest, [](const Timeline* a, const Timeline* b) {
    return a->end - a->begin > b->end - b->begin;
  });
  slowest.resize(std::min(slowest.size(), requests));
  for (const Timeline* timeline : slowest) AppendTimeline(profile, *timeline, &out);
  return out;
}

std::string JsonReport(const Profile& profile, const Breakdown& breakdown) {
  std::string out;
  JsonWriter writer(&out);
  writer.BeginObject().Key("timelines");
  WriteTimelines(profile, breakdown, &writer);
  writer.Key("stage_breakdown");
  WriteStages(breakdown, true, &writer);
  writer.Key("hop_breakdown");
  WriteHops(breakdown, true, &writer);
  writer.Key("request_count").Int(static_cast<int64_t>(breakdown.timelines.size()));
  writer.Key("portico").BeginObject().Key("run_id").String(profile.run_id);
  writer.Key("malformed").Int(static_cast<int64_t>(profile.malformed)).Key("stage_breakdown");
  WriteStages(breakdown, false, &writer);
  writer.Key("hop_breakdown");
  WriteHops(breakdown, false, &writer);
  writer.Key("steps").BeginArray();
  for (const StepRow& row : breakdown.steps) {
    writer.BeginObject().Key("stage").String(row.stage).Key("step").String(row.name);
    writer.Key("batch").Double(Rounded(row.batch));
    WriteDurations(row.durations, &writer);
  }
  writer.EndArray().Key("processes").BeginArray();
  for (const ProfileProcess& process : profile.processes) {
    writer.BeginObject().Key("stage").String(process.stage).Key("pid").Int(process.pid);
    writer.Key("host").String(process.host).Key("boot_id").String(process.boot_id);
    writer.Key("events").Int(static_cast<int64_t>(process.events));
    writer.Key("dropped").Int(static_cast<int64_t>(process.dropped));
    writer.Key("cut").Int(static_cast<int64_t>(process.cut));
    writer.Key("shifted_ns").Int(process.shifted).Key("ended").Bool(process.ended).EndObject();
  }
  writer.EndArray().EndObject().EndObject();
  return out;
}

}  // namespace portico::observe
