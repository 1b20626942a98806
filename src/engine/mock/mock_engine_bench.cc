// What the mock engine itself costs: its share of a core with many paced streams, and its rate
// without delays.
#include <benchmark/benchmark.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "engine/mock/mock_engine.h"

namespace portico {
namespace {

class CountingSink : public TokenSink {
 public:
  void Deliver(std::vector<TokenDelta> batch) override {
    size_t tokens = 0;
    size_t ends = 0;
    for (const TokenDelta& delta : batch) {
      tokens += delta.tokens.size();
      ends += delta.finish != FinishReason::kNone;
    }
    tokens_.fetch_add(tokens, std::memory_order_relaxed);
    if (ends > 0) {
      ends_.fetch_add(ends);
      ends_.notify_all();
    }
  }
  size_t tokens() const { return tokens_.load(std::memory_order_relaxed); }
  void WaitForEnds(size_t count) {
    for (size_t seen = ends_.load(); seen < count; seen = ends_.load()) ends_.wait(seen);
  }

 private:
  std::atomic<size_t> tokens_{0};
  std::atomic<size_t> ends_{0};
};

GenerateRequest Request(int32_t max_new_tokens) {
  GenerateRequest request;
  request.stream = NextStreamId();
  request.prompt = std::make_shared<const std::vector<TokenId>>(500, 7);
  OwnSampling(&request);
  request.max_new_tokens = max_new_tokens;
  return request;
}

MockEngineOptions Options() {
  MockEngineOptions options;
  options.vocab_size = 1000;
  options.context_length = 1 << 20;
  return options;
}

double ProcessCpuSeconds() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

// `range` streams at 20 tokens/s each, watched for three seconds.
void BM_PacedStreams(benchmark::State& state) {
  MockEngineOptions options = Options();
  options.itl_ms = 50;
  CountingSink sink;
  const auto engine = NewMockEngine(options);
  for (int64_t i = 0; i < state.range(0); ++i) {
    if (!engine->Submit(Request(1 << 19), &sink).ok()) state.SkipWithError("refused");
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (auto _ : state) {
    const size_t tokens = sink.tokens();
    const double cpu = ProcessCpuSeconds();
    std::this_thread::sleep_for(std::chrono::seconds(3));
    state.counters["tokens_per_s"] = static_cast<double>(sink.tokens() - tokens) / 3;
    state.counters["core_share"] = (ProcessCpuSeconds() - cpu) / 3;
  }
}
BENCHMARK(BM_PacedStreams)->Arg(2000)->Arg(10000)->Iterations(1)->Unit(benchmark::kMillisecond);

void BM_NoDelay(benchmark::State& state) {
  CountingSink sink;
  const auto engine = NewMockEngine(Options());
  size_t done = 0;
  for (auto _ : state) {
    for (int i = 0; i < 100; ++i) {
      if (!engine->Submit(Request(32), &sink).ok()) state.SkipWithError("refused");
    }
    done += 100;
    sink.WaitForEnds(done);
  }
  state.SetItemsProcessed(static_cast<int64_t>(done));
}
BENCHMARK(BM_NoDelay)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace
}  // namespace portico
