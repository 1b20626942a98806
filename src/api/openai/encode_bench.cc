// What a token costs on its way out: one streamed chunk of about 300 bytes, and the same bytes copied.
#include <benchmark/benchmark.h>

#include "api/openai/chat/chat_encoder.h"
#include "api/openai/chat/decode_chat.h"
#include "api/openai/completion/completion_encoder.h"

namespace portico::api::openai {
namespace {

const AnswerHead kHead{"chatcmpl-0123456789abcdef0123456789abcdef", 1790000000,
                       "organization/a-model-name-of-usual-length"};

TextDelta Token(const char* text) {
  TextDelta delta;
  delta.text = text;
  delta.tokens = {42};
  delta.usage = {500, 100, 20};
  return delta;
}

template <typename Encoder>
void Chunks(benchmark::State& state, const GenerationOptions& options, const char* text) {
  Encoder encoder(kHead, options);
  const TextDelta delta = Token(text);
  std::string out;
  encoder.OnDelta(delta, &out);
  size_t bytes = 0;
  for (auto _ : state) {
    out.clear();
    encoder.OnDelta(delta, &out);
    bytes += out.size();
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["bytes"] = static_cast<double>(out.size());
}

void ChatChunk(benchmark::State& state) { Chunks<ChatStreamEncoder>(state, {}, " token"); }
void ChatChunkWithEscapes(benchmark::State& state) {
  Chunks<ChatStreamEncoder>(state, {}, "\n\"é\"");
}
void ChatChunkWithUsage(benchmark::State& state) {
  GenerationOptions options;
  options.continuous_usage_stats = true;
  Chunks<ChatStreamEncoder>(state, options, " token");
}
void CompletionChunk(benchmark::State& state) {
  Chunks<CompletionStreamEncoder>(state, {}, " token");
}

void CopyOfAChunk(benchmark::State& state) {
  ChatStreamEncoder encoder(kHead, {});
  std::string chunk;
  encoder.OnDelta(Token(" token"), &chunk);
  chunk.clear();
  encoder.OnDelta(Token(" token"), &chunk);
  std::string out;
  for (auto _ : state) {
    out.clear();
    out.append(chunk);
    benchmark::DoNotOptimize(out.data());
  }
}

void DecodeABodyOf2K(benchmark::State& state) {
  std::string body =
      R"({"model":"demo","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":")" +
      std::string(2048, 'x') + R"("}],"max_tokens":32,"temperature":0,"stream":true})";
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::parser parser;
  for (auto _ : state) benchmark::DoNotOptimize(DecodeChat(body, parser));
}

BENCHMARK(CopyOfAChunk);
BENCHMARK(ChatChunk);
BENCHMARK(ChatChunkWithEscapes);
BENCHMARK(ChatChunkWithUsage);
BENCHMARK(CompletionChunk);
BENCHMARK(DecodeABodyOf2K);

}  // namespace
}  // namespace portico::api::openai
