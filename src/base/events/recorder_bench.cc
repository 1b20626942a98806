// What an event costs: a site while nothing is recorded, and an event while a run goes on.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "base/events/recorder.h"

namespace portico::events {
namespace {

void Off(benchmark::State& state) {
  const Label stage = LabelOf("stage");
  Key key = 1;
  for (auto _ : state) {
    Record(Event::kStageDispatch, key, stage, {.a = 1});
    benchmark::DoNotOptimize(key);
  }
}
BENCHMARK(Off);

// In bursts that fit into a ring, as a thread makes them; the writing thread takes them meanwhile.
void On(benchmark::State& state) {
  std::string folder = (std::filesystem::temp_directory_path() / "events-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no folder");
  std::promise<Status> started;
  Start({.run_id = "bench", .directory = folder, .stage = "bench", .trace_path_template = ""},
        [&started](Status status) { started.set_value(std::move(status)); });
  if (!started.get_future().get().ok()) return state.SkipWithError("it does not start");
  const Label stage = LabelOf("stage");
  const Key key = NextKey();
  Name(key, "request");
  const Totals before = Count();
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) Record(Event::kStageDispatch, key, stage, {.a = i});
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
    state.ResumeTiming();
  }
  state.counters["dropped"] = static_cast<double>(Count().dropped - before.dropped);
  state.counters["an_event"] = benchmark::Counter(
      1000, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  std::promise<void> stopped;
  Stop("", [&stopped](const StatusOr<std::string>&) { stopped.set_value(); });
  stopped.get_future().wait();
  std::filesystem::remove_all(folder);
}
BENCHMARK(On)->Iterations(200);

}  // namespace
}  // namespace portico::events
