// What picking one token costs for a vocabulary of 152,000, beside reading the row once.
#include <benchmark/benchmark.h>

#include <random>

#include "engine/sampler/sampler.h"
#include "engine/sampler/vocab_math.h"

namespace portico {
namespace {

std::vector<float> Row(float spread) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> row(151936);
  for (float& value : row) value = normal(random);
  return row;
}

void Run(benchmark::State& state, const SamplingParams& params, float spread) {
  const std::vector<float> row = Row(spread);
  SamplerScratch scratch;
  Sampler sampler(std::make_shared<SamplingParams>(params), 0, {}, 1);
  for (auto _ : state) benchmark::DoNotOptimize(sampler.Next(row, &scratch));
}

void BM_ReadRow(benchmark::State& state) {
  const std::vector<float> row = Row(3);
  for (auto _ : state) benchmark::DoNotOptimize(MaxOf(row));
}
BENCHMARK(BM_ReadRow);

void BM_Greedy(benchmark::State& state) {
  SamplingParams params;
  params.temperature = 0;
  Run(state, params, 3);
}
BENCHMARK(BM_Greedy);

void BM_Temperature(benchmark::State& state) { Run(state, {}, 3); }
BENCHMARK(BM_Temperature);

void BM_TopKTopP(benchmark::State& state) {
  SamplingParams params;
  params.temperature = 0.6f;
  params.top_k = 20;
  params.top_p = 0.95f;
  Run(state, params, 3);
}
BENCHMARK(BM_TopKTopP);

void BM_TopPOfAFlatDistribution(benchmark::State& state) {
  SamplingParams params;
  params.top_p = 0.95f;
  Run(state, params, 0.5f);
}
BENCHMARK(BM_TopPOfAFlatDistribution);

void BM_Logprobs20(benchmark::State& state) {
  const std::vector<float> row = Row(3);
  SamplerScratch scratch;
  for (auto _ : state) benchmark::DoNotOptimize(LogprobsOf(row, 5, 20, {}, &scratch));
}
BENCHMARK(BM_Logprobs20);

}  // namespace
}  // namespace portico
