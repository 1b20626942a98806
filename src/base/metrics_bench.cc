// The cost of one update, alone and with all cores at it.
#include <benchmark/benchmark.h>

#include "base/metrics.h"

namespace portico {
namespace {

void BM_CounterAdd(benchmark::State& state) {
  static Counter counter;
  for (auto _ : state) counter.Add();
}
BENCHMARK(BM_CounterAdd)->Threads(1)->Threads(2);

void BM_HistogramObserve(benchmark::State& state) {
  static Histogram histogram(TokenSecondsBounds());
  for (auto _ : state) histogram.Observe(0.05);
}
BENCHMARK(BM_HistogramObserve)->Threads(1)->Threads(2);

void BM_Render(benchmark::State& state) {
  Registry registry;
  for (int i = 0; i < 20; ++i) {
    registry.AddCounter("counter_" + std::to_string(i), "Help.").Add();
    registry.AddHistogram("histogram_" + std::to_string(i), "Help.", TokenSecondsBounds());
  }
  for (auto _ : state) {
    std::string text;
    registry.Render(&text);
    benchmark::DoNotOptimize(text);
  }
}
BENCHMARK(BM_Render)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace portico
