// Metrics in Prometheus' text form (exposition format 0.0.4).
//
// A Registry owns its metrics; look a metric up once, keep the reference, and update it from any
// thread. Counters and histograms are spread over cache lines by thread, so an update is one or two
// relaxed additions that no other thread waits for. A scrape adds the parts up: it may miss what
// happens while it runs, but loses nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace portico {

inline constexpr size_t kMetricShards = 16;

// This thread's part of every sharded metric: threads take turns.
size_t MetricShard();

// Only goes up.
class Counter {
 public:
  void Add(uint64_t count = 1) {
    parts_[MetricShard()].value.fetch_add(count, std::memory_order_relaxed);
  }
  uint64_t Value() const;

 private:
  struct alignas(64) Part {
    std::atomic<uint64_t> value{0};
  };
  std::array<Part, kMetricShards> parts_;
};

// Goes up and down.
class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double change) { value_.fetch_add(change, std::memory_order_relaxed); }
  double Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Counts values into fixed buckets.
class Histogram {
 public:
  // `bounds`: upper ends of the buckets, inclusive, strictly rising; a bucket without an end is
  // added.
  explicit Histogram(std::vector<double> bounds);

  // `times`: how often the value was seen, so that a batch costs one call. NaN is left out.
  void Observe(double value, uint64_t times = 1);

  struct Snapshot {
    std::vector<uint64_t> buckets;  // one a bound and the last without an end; not cumulative
    uint64_t count = 0;             // sum of the buckets
    double sum = 0;
  };
  Snapshot Take() const;
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  struct alignas(64) Part {
    std::unique_ptr<std::atomic<uint64_t>[]> buckets;
    std::atomic<double> sum{0};
  };
  std::vector<double> bounds_;
  std::array<Part, kMetricShards> parts_;
};

// Label names and values, in the order they are printed. Values are few and known: never text of a
// client.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Thread safe. Metrics of one name and different labels make a family; its help, kind and bounds
// are those of the first. Asking again for the same name and labels gives the same metric. Using a
// name as two kinds, or a name or label that Prometheus does not allow, is a programming error and
// ends the process. References stay valid as long as the registry.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter& AddCounter(std::string_view name, std::string_view help, MetricLabels labels = {});
  Gauge& AddGauge(std::string_view name, std::string_view help, MetricLabels labels = {});
  Histogram& AddHistogram(std::string_view name, std::string_view help, std::vector<double> bounds,
                          MetricLabels labels = {});

  // The value is computed at each scrape, on the scraping thread. `value` must not use this
  // registry, and what it refers to must outlive it. A second callback for the same name and labels
  // replaces the first.
  void AddCallbackGauge(std::string_view name, std::string_view help, std::function<double()> value,
                        MetricLabels labels = {});
  void AddCallbackCounter(std::string_view name, std::string_view help,
                          std::function<double()> value, MetricLabels labels = {});

  // Appends all metrics, families in the order of their first registration.
  void Render(std::string* out) const;

 private:
  enum class Kind { kCounter, kGauge, kHistogram };
  struct Metric;
  struct Family;

  Metric& Find(Kind kind, std::string_view name, std::string_view help, MetricLabels labels)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Family>> families_ ABSL_GUARDED_BY(mutex_);
};

// Bucket bounds in seconds: 1 ms to 10 minutes for whole requests and first tokens, 0.1 ms to 10 s
// for gaps between tokens.
std::vector<double> RequestSecondsBounds();
std::vector<double> TokenSecondsBounds();

}  // namespace portico
