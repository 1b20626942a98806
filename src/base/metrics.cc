#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/mutex.h"

namespace portico {
namespace {

[[noreturn]] void Misuse(std::string_view name, std::string_view why) {
  fmt::print(stderr, "metric {}: {}\n", name, why);
  std::abort();
}

bool IsName(std::string_view name, bool colon_allowed) {
  const auto letter = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (colon_allowed && c == ':');
  };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

// Escapes as the format wants it: backslash and line feed, in label values the quote too.
void AppendEscaped(std::string_view text, bool quote, std::string* out) {
  for (const char c : text) {
    if (c == '\\') {
      out->append("\\\\");
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '"' && quote) {
      out->append("\\\"");
    } else {
      out->push_back(c);
    }
  }
}

void AppendNumber(double value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
  } else if (std::isinf(value)) {
    out->append(value > 0 ? "+Inf" : "-Inf");
  } else {
    fmt::format_to(std::back_inserter(*out), "{}", value);
  }
}

void AppendLabel(std::string_view name, std::string_view value, std::string* out) {
  if (!out->empty()) out->push_back(',');
  out->append(name).append("=\"");
  AppendEscaped(value, true, out);
  out->push_back('"');
}

std::string LabelText(const MetricLabels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) AppendLabel(name, value, &text);
  return text;
}

// Appends `name{labels} ` up to the value.
void AppendSeries(std::string_view name, std::string_view suffix, std::string_view labels,
                  std::string* out) {
  out->append(name).append(suffix);
  if (!labels.empty()) out->append("{").append(labels).append("}");
  out->push_back(' ');
}

void AppendHistogram(std::string_view name, const std::string& labels, const Histogram& histogram,
                     std::string* out) {
  const Histogram::Snapshot snapshot = histogram.Take();
  uint64_t below = 0;
  for (size_t i = 0; i < snapshot.buckets.size(); ++i) {
    below += snapshot.buckets[i];
    std::string bound;
    AppendNumber(i < histogram.bounds().size() ? histogram.bounds()[i] : HUGE_VAL, &bound);
    std::string with_bound = labels;
    AppendLabel("le", bound, &with_bound);
    AppendSeries(name, "_bucket", with_bound, out);
    fmt::format_to(std::back_inserter(*out), "{}\n", below);
  }
  AppendSeries(name, "_sum", labels, out);
  AppendNumber(snapshot.sum, out);
  out->push_back('\n');
  AppendSeries(name, "_count", labels, out);
  fmt::format_to(std::back_inserter(*out), "{}\n", snapshot.count);
}

}  // namespace

size_t MetricShard() {
  static std::atomic<size_t> next{0};
  thread_local const size_t shard = next.fetch_add(1, std::memory_order_relaxed) % kMetricShards;
  return shard;
}

uint64_t Counter::Value() const {
  uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.value.load(std::memory_order_relaxed);
  return sum;
}

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
  if (!std::is_sorted(bounds_.begin(), bounds_.end(), std::less_equal<>())) {
    Misuse("histogram", "bounds must increase");
  }
  for (Part& part : parts_) {
    part.buckets = std::make_unique<std::atomic<uint64_t>[]>(bounds_.size() + 1);
  }
}

void Histogram::Observe(double value, uint64_t times) {
  if (std::isnan(value)) return;
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  Part& part = parts_[MetricShard()];
  part.buckets[static_cast<size_t>(bucket)].fetch_add(times, std::memory_order_relaxed);
  part.sum.fetch_add(value * static_cast<double>(times), std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::Take() const {
  Snapshot snapshot;
  snapshot.buckets.resize(bounds_.size() + 1);
  for (const Part& part : parts_) {
    for (size_t i = 0; i < snapshot.buckets.size(); ++i) {
      const uint64_t count = part.buckets[i].load(std::memory_order_relaxed);
      snapshot.buckets[i] += count;
      snapshot.count += count;
    }
    snapshot.sum += part.sum.load(std::memory_order_relaxed);
  }
  return snapshot;
}

// One of these is set.
struct Registry::Metric {
  std::string labels;  // `a="x",b="y"`
  std::unique_ptr<Counter> counter;
  std::unique_ptr<Gauge> gauge;
  std::unique_ptr<Histogram> histogram;
  std::function<double()> callback;
};

struct Registry::Family {
  std::string name;
  std::string help;
  Kind kind;
  std::vector<std::unique_ptr<Metric>> metrics;
};

Registry::Registry() = default;
Registry::~Registry() = default;

Registry::Metric& Registry::Find(Kind kind, std::string_view name, std::string_view help,
                                 MetricLabels labels) {
  if (!IsName(name, true)) Misuse(name, "no valid name");
  for (const auto& [label, value] : labels) {
    if (!IsName(label, false) || label == "le") Misuse(name, "no valid label");
  }
  auto family = std::find_if(families_.begin(), families_.end(),
                             [&](const auto& entry) { return entry->name == name; });
  if (family == families_.end()) {
    families_.push_back(std::make_unique<Family>());
    family = families_.end() - 1;
    (*family)->name = name;
    (*family)->help = help;
    (*family)->kind = kind;
  }
  if ((*family)->kind != kind) Misuse(name, "used as two kinds");
  std::string text = LabelText(labels);
  for (const auto& metric : (*family)->metrics) {
    if (metric->labels == text) return *metric;
  }
  auto metric = std::make_unique<Metric>();
  metric->labels = std::move(text);
  (*family)->metrics.push_back(std::move(metric));
  return *(*family)->metrics.back();
}

Counter& Registry::AddCounter(std::string_view name, std::string_view help, MetricLabels labels) {
  const MutexLock lock(&mutex_);
  Metric& metric = Find(Kind::kCounter, name, help, std::move(labels));
  if (metric.callback) Misuse(name, "used as a callback and a counter");
  if (!metric.counter) metric.counter = std::make_unique<Counter>();
  return *metric.counter;
}

Gauge& Registry::AddGauge(std::string_view name, std::string_view help, MetricLabels labels) {
  const MutexLock lock(&mutex_);
  Metric& metric = Find(Kind::kGauge, name, help, std::move(labels));
  if (metric.callback) Misuse(name, "used as a callback and a gauge");
  if (!metric.gauge) metric.gauge = std::make_unique<Gauge>();
  return *metric.gauge;
}

Histogram& Registry::AddHistogram(std::string_view name, std::string_view help,
                                  std::vector<double> bounds, MetricLabels labels) {
  const MutexLock lock(&mutex_);
  Metric& metric = Find(Kind::kHistogram, name, help, std::move(labels));
  if (!metric.histogram) metric.histogram = std::make_unique<Histogram>(std::move(bounds));
  return *metric.histogram;
}

void Registry::AddCallbackGauge(std::string_view name, std::string_view help,
                                std::function<double()> value, MetricLabels labels) {
  const MutexLock lock(&mutex_);
  Metric& metric = Find(Kind::kGauge, name, help, std::move(labels));
  if (metric.gauge) Misuse(name, "used as a gauge and a callback");
  metric.callback = std::move(value);
}

void Registry::AddCallbackCounter(std::string_view name, std::string_view help,
                                  std::function<double()> value, MetricLabels labels) {
  const MutexLock lock(&mutex_);
  Metric& metric = Find(Kind::kCounter, name, help, std::move(labels));
  if (metric.counter) Misuse(name, "used as a counter and a callback");
  metric.callback = std::move(value);
}

void Registry::Render(std::string* out) const {
  static constexpr std::string_view kKindNames[] = {"counter", "gauge", "histogram"};
  const MutexLock lock(&mutex_);
  for (const auto& family : families_) {
    out->append("# HELP ").append(family->name).append(" ");
    AppendEscaped(family->help, false, out);
    out->append("\n# TYPE ").append(family->name).append(" ");
    out->append(kKindNames[static_cast<size_t>(family->kind)]).append("\n");
    for (const auto& metric : family->metrics) {
      if (metric->histogram) {
        AppendHistogram(family->name, metric->labels, *metric->histogram, out);
        continue;
      }
      AppendSeries(family->name, "", metric->labels, out);
      if (metric->counter) {
        fmt::format_to(std::back_inserter(*out), "{}", metric->counter->Value());
      } else {
        AppendNumber(metric->gauge ? metric->gauge->Value() : metric->callback(), out);
      }
      out->push_back('\n');
    }
  }
}

std::vector<double> RequestSecondsBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
          2.5,   5,      10,    20,   40,    80,   160, 300,  600};
}

std::vector<double> TokenSecondsBounds() {
  return {0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05,
          0.075,  0.1,    0.15,  0.2,    0.3,   0.5,  1,    2.5,  5,    10};
}

}  // namespace portico
