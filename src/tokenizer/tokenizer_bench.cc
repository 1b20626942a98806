// Speed of encode and decode. PORTICO_BENCH_TOKENIZERS is a folder of tokenizer folders, PORTICO_BENCH_TEXTS a folder
// of .txt files; each text is cut into prompts of 20 KB, and a round goes over all prompts of a text.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tokenizer/decode/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

namespace fs = std::filesystem;
constexpr size_t kPrompt = 20'000;

std::vector<std::string> PromptsOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::string> prompts;
  for (size_t at = 0; at < text.size(); at += kPrompt) prompts.push_back(text.substr(at, kPrompt));
  return prompts;
}

void Encode(benchmark::State& state, const Tokenizer* tokenizer,
            const std::vector<std::string>* prompts) {
  std::vector<TokenId> ids;
  size_t bytes = 0;
  for (auto _ : state) {
    for (const std::string& prompt : *prompts) {
      ids.clear();
      tokenizer->Encode(prompt, true, &ids);
      bytes += prompt.size();
      benchmark::DoNotOptimize(ids.data());
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void Decode(benchmark::State& state, const Tokenizer* tokenizer,
            const std::vector<std::string>* prompts, bool stream) {
  std::vector<TokenId> ids;
  for (const std::string& prompt : *prompts) tokenizer->Encode(prompt, false, &ids);
  size_t tokens = 0;
  for (auto _ : state) {
    std::string out;
    if (stream) {
      StreamDecoder decoder(*tokenizer, true);
      for (TokenId id : ids) decoder.Push(id, &out);
    } else {
      out = tokenizer->Decode(ids, true);
    }
    tokens += ids.size();
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(tokens));
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) {
  const char* tokenizers = std::getenv("PORTICO_BENCH_TOKENIZERS");
  const char* texts = std::getenv("PORTICO_BENCH_TEXTS");
  if (tokenizers == nullptr || texts == nullptr) return 0;
  for (const auto& folder : std::filesystem::directory_iterator(tokenizers)) {
    std::string path = folder.path().string();
    std::string name = folder.path().filename().string();
    auto tokenizer = portico::Tokenizer::Load(path);
    if (!tokenizer.ok()) continue;
    benchmark::RegisterBenchmark(("load/" + name).c_str(), [path](benchmark::State& state) {
      for (auto _ : state) benchmark::DoNotOptimize(portico::Tokenizer::Load(path).ok());
    })->Unit(benchmark::kMillisecond);
    for (const auto& text : std::filesystem::directory_iterator(texts)) {
      auto* kept = new std::shared_ptr<const portico::Tokenizer>(*tokenizer);
      auto* prompts = new std::vector<std::string>(portico::PromptsOf(text.path()));
      std::string label = name + "/" + text.path().stem().string();
      benchmark::RegisterBenchmark(("encode/" + label).c_str(), portico::Encode, kept->get(),
                                   prompts);
      benchmark::RegisterBenchmark(("decode/" + label).c_str(), portico::Decode, kept->get(),
                                   prompts, false);
      benchmark::RegisterBenchmark(("stream/" + label).c_str(), portico::Decode, kept->get(),
                                   prompts, true);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
