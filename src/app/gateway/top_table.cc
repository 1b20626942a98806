#include "app/gateway/top_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/counted.h"

namespace portico {
namespace {

constexpr size_t kColumns = 12;
constexpr std::array<std::string_view, kColumns> kHeads = {"WORKER", "STATE",   "BREAKER", "FLIGHT",
                                                           "REQ/S",  "RUNNING", "WAITING", "KV",
                                                           "HITS",   "TOK/S",   "MODEL",   "URL"};
// Figures stand on the right.
constexpr bool IsFigure(size_t column) { return column >= 3 && column <= 9; }

using Row = std::array<std::string, kColumns>;

// What a worker or its gateway sends must not steer the terminal.
std::string Plain(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
        (static_cast<unsigned char>(c) & 0x80) != 0)
      c = '?';
  }
  return text;
}

double NumberOf(const Json* object, std::string_view key) {
  const Json* const value = object == nullptr || !object->is_object() ? nullptr : object->Find(key);
  return value == nullptr || !value->is_number() ? -1 : value->as_double();
}

std::string Figure(const Json* object, std::string_view key, int decimals = 0) {
  const double value = NumberOf(object, key);
  return value < 0 ? "-" : fmt::format("{:.{}f}", value, decimals);
}

std::string Share(const Json* object, std::string_view key) {
  const double value = NumberOf(object, key);
  return value < 0 ? "-" : fmt::format("{:.0f}%", value * 100);
}

std::string Lines(const std::vector<Row>& rows, size_t width) {
  std::array<size_t, kColumns> widths{};
  for (size_t c = 0; c < kColumns; ++c) {
    for (const Row& row : rows) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < kColumns; ++c) {
      if (c > 0) line += "  ";
      line += IsFigure(c) ? fmt::format("{:>{}}", row[c], widths[c])
                          : fmt::format("{:<{}}", row[c], widths[c]);
    }
    line.resize(std::min(line.find_last_not_of(' ') + 1, width));
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string TopTable::Render(std::string_view url, const Json& answer, TimePoint now,
                             size_t width) {
  const Json* const workers = answer.is_object() ? answer.Find("workers") : nullptr;
  if (workers == nullptr || !workers->is_array()) {
    return fmt::format("{} answers /workers, but not as a gateway of Portico does\n", url);
  }
  const double seconds = last_ == TimePoint{} ? 0 : Seconds(now - last_);
  std::map<std::string, double> totals;
  std::vector<Row> rows;
  rows.emplace_back();
  std::copy(kHeads.begin(), kHeads.end(), rows.front().begin());
  double rate = 0;
  std::string reasons;
  for (const Json& worker : workers->as_array()) {
    if (!worker.is_object()) continue;
    const std::string id = Plain(worker.GetString("id"));
    const double total = std::max(NumberOf(&worker, "requests_total"), 0.0);
    totals[id] = total;
    const auto before = totals_.find(id);
    const bool known = seconds > 0 && before != totals_.end() && total >= before->second;
    const double own = known ? (total - before->second) / seconds : 0;
    rate += own;
    const std::string status = Plain(worker.GetString("status"));
    // What one that is down has said before means nothing.
    const Json* const load = status == "healthy" ? worker.Find("reported_load") : nullptr;
    if (const std::string why = Plain(worker.GetString("reason")); !why.empty()) {
      reasons += fmt::format("\n{}: {}", id, why).substr(0, width + 1);
    }
    const bool draining = worker.GetBool("draining", false);
    const bool paused = worker.GetBool("paused", false);
    rows.push_back({id, status + (draining ? ", draining" : "") + (paused ? ", paused" : ""),
                    Plain(worker.GetString("circuit_breaker")), Figure(&worker, "load"),
                    known ? fmt::format("{:.1f}", own) : "-", Figure(load, "running_requests"),
                    Figure(load, "waiting_requests"), Share(load, "token_usage"),
                    Share(load, "cache_hit_rate"), Figure(load, "throughput"),
                    Plain(worker.GetString("model_id", "-")), Plain(worker.GetString("url"))});
  }
  const Json* const stats = answer.Find("stats");
  std::string head = fmt::format("{}  {} of {} healthy  {:.1f} req/s  {} queued  policy {}", url,
                                 Figure(stats, "healthy_workers"),
                                 Counted(static_cast<int64_t>(rows.size()) - 1, "worker"), rate,
                                 Figure(stats, "queued"),
                                 stats == nullptr ? "-" : Plain(stats->GetString("policy", "-")));
  head.resize(std::min(head.size(), width));
  totals_ = std::move(totals);
  last_ = now;
  if (!reasons.empty()) reasons += '\n';
  return head + "\n\n" + Lines(rows, width) + reasons;
}

}  // namespace portico
