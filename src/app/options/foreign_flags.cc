#include "app/options/foreign_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "app/options/options_table.h"

namespace portico {
namespace {

constexpr int kPython = kOfVllm | kOfSglang;

constexpr std::string_view kOnCpu = "the embedded engine computes on the CPU";
constexpr std::string_view kCudaOnly =
    "it is for GPUs, and the embedded engine computes on the CPU";
constexpr std::string_view kSampling = "sampling parameters are fields of requests";
constexpr std::string_view kSeed = "seed is a field of requests";
constexpr std::string_view kAdapters =
    "adapters need --engine sglang, whose own options follow a final --";
constexpr std::string_view kDrafts =
    "speculative decoding needs --engine sglang, whose own options follow a final --";
constexpr std::string_view kOfSchedulers =
    "with --engine sglang, SGLang's own options follow a final --";
constexpr std::string_view kSeveralServers =
    "portico launch --dp-size starts several servers and a gateway";
constexpr std::string_view kNoDownload =
    "nothing is downloaded: --model-path names a folder, a file or a hub id in the cache of "
    "Hugging "
    "Face";

// vLLM 0.11 (vllm/entrypoints/openai/cli_args.py, vllm/engine/arg_utils.py), llama.cpp's common/arg.cpp and SGLang 0.5
// (sglang/srt/server_args.py). Of flags that are called the same here only those that take other values.
constexpr ForeignFlag kForeignFlags[] = {
    // The model
    {kOfLlamaServer, "-m", "model-path", ""},
    {kOfLlamaServer, "-hf|-hfr|--hf-repo", "model-path",
     "a hub id in the cache of Hugging Face: nothing is downloaded"},
    {kOfLlamaServer, "-hff|--hf-file|-mu|--model-url|-dr|--docker-repo", "", kNoDownload},
    {kPython, "--revision|--download-dir|--load-format", "", kNoDownload},
    {kOfLlamaServer, "-a|--alias", "served-model-name", ""},
    {kOfVllm, "--tokenizer", "tokenizer-path", ""},
    {kOfVllm, "--max-model-len", "context-length", ""},
    {kOfLlamaServer, "-c|--ctx-size", "context-length",
     "of each request; --max-total-tokens is what all of them have together"},
    {kOfVllm, "--dtype", "dtype", "float16 needs --engine sglang"},
    {kOfVllm, "-q|--quantization", "quantization",
     "a type of llama.cpp such as q8_0, in which a folder is imported"},
    {kPython, "--trust-remote-code", "", "no code of a model's folder is run"},
    {kOfVllm, "--task|--runner|--convert", "is-embedding",
     "models that only embed, classify or rerank are detected without it"},
    {kOfLlamaServer, "--embedding|--embeddings", "is-embedding",
     "models that only embed are detected without it"},
    {kOfLlamaServer, "--rerank|--reranking", "", "rerankers are detected (docs/embeddings.md)"},
    {kOfLlamaServer, "-mm|--mmproj", "", "images need --engine sglang"},
    {kOfLlamaServer, "--lora|--lora-scaled", "", kAdapters},
    {kPython, "--enable-lora|--max-lora-rank|--lora-target-modules", "", kAdapters},
    {kOfVllm, "--lora-modules|--max-loras", "", kAdapters},
    {kOfSglang, "--lora-paths|--max-loras-per-batch|--lora-backend", "", kAdapters},

    // Templates, and what is read from answers
    {kOfLlamaServer, "--chat-template", "chat-template",
     "a file or the template itself, not a name such as chatml"},
    {kOfLlamaServer, "--chat-template-file", "chat-template", ""},
    {kOfLlamaServer, "--jinja|--no-jinja", "", "chat templates are always rendered"},
    {kOfLlamaServer, "--chat-template-kwargs", "", "chat_template_kwargs is a field of requests"},
    {kOfVllm, "--chat-template-content-format", "", "it is read from the template"},
    {kOfLlamaServer, "--reasoning-format", "reasoning-parser",
     "none is none here too, and leaves the reasoning in the text"},
    {kOfVllm, "--enable-reasoning", "", "reasoning is read unless --reasoning-parser is none"},
    {kOfLlamaServer, "--reasoning-budget", "", "max_thinking_tokens is a field of requests"},
    {kOfVllm, "--enable-auto-tool-choice", "",
     "tool calls are read unless --tool-call-parser is none"},
    {kOfVllm, "--tool-parser-plugin|--reasoning-parser-plugin", "",
     "parsers are built in; --tool-call-parser x lists them"},
    {kOfVllm, "--guided-decoding-backend|--structured-outputs-config", "",
     "xgrammar is built in (docs/structured_output.md)"},
    {kOfSglang, "--grammar-backend", "", "xgrammar is built in (docs/structured_output.md)"},
    {kOfLlamaServer, "--grammar|--grammar-file|-j|--json-schema|-jf|--json-schema-file", "",
     "grammars and schemas are fields of requests (docs/structured_output.md)"},

    // Sampling
    {kOfVllm, "--generation-config", "sampling-defaults", "vllm is openai here, auto is model"},
    {kOfVllm, "--override-generation-config", "", kSampling},
    {kOfLlamaServer,
     "--temp|--top-k|--top-p|--min-p|--typical|--repeat-penalty|--repeat-last-n|--presence-penalty|"
     "--frequency-penalty|--samplers|--mirostat",
     "", kSampling},
    {kOfVllm, "--seed", "", kSeed},
    {kOfLlamaServer, "-s|--seed", "", kSeed},
    {kOfSglang, "--random-seed", "", kSeed},
    {kOfLlamaServer, "-n|--n-predict|--predict", "",
     "the length of an answer is its request's max_tokens"},
    {kOfLlamaServer, "--context-shift|--no-context-shift", "",
     "an answer ends where the context does; --allow-auto-truncate cuts long prompts"},

    // The engine
    {kOfLlamaServer, "-t", "threads", ""},
    {kOfLlamaServer, "-tb|--threads-batch", "threads", "the same for prompts and answers"},
    {kOfVllm, "--max-num-seqs", "max-running-requests", ""},
    {kOfLlamaServer, "-np|--parallel", "max-running-requests", ""},
    {kOfVllm, "--max-num-batched-tokens", "chunked-prefill-size", "counts tokens of prompts only"},
    {kOfLlamaServer, "-b|--batch-size|-ub|--ubatch-size", "chunked-prefill-size",
     "counts tokens of prompts only"},
    {kOfSglang, "--max-prefill-tokens", "chunked-prefill-size", ""},
    {kOfVllm, "--enable-chunked-prefill|--no-enable-chunked-prefill", "",
     "long prompts are always computed in pieces of --chunked-prefill-size"},
    {kOfLlamaServer, "-cb|--cont-batching|-nocb|--no-cont-batching", "",
     "requests are always batched"},
    {kOfVllm, "--no-enable-prefix-caching", "disable-radix-cache", ""},
    {kOfLlamaServer, "--no-cache-prompt", "disable-radix-cache", ""},
    {kOfVllm, "--enable-prefix-caching", "",
     "prefixes are kept unless --disable-radix-cache is given"},
    {kOfLlamaServer, "--cache-prompt|--cache-reuse|-cram|--cache-ram|-kvu|--kv-unified", "",
     "requests share one KV cache, which keeps prefixes unless --disable-radix-cache is given"},
    {kOfVllm, "--kv-cache-dtype", "kv-cache-dtype",
     "bfloat16, q8_0 and others; fp8 needs --engine sglang"},
    {kOfLlamaServer, "-ctk|--cache-type-k|-ctv|--cache-type-v", "kv-cache-dtype",
     "one type for keys and values; f16 is float16 here"},
    {kOfVllm,
     "--gpu-memory-utilization|--kv-cache-memory-bytes|--num-gpu-blocks-override|--block-size|"
     "--swap-space|--cpu-offload-gb",
     "", "the embedded engine computes on the CPU; --max-total-tokens bounds its KV cache"},
    {kOfLlamaServer,
     "-ngl|--gpu-layers|--n-gpu-layers|-sm|--split-mode|-ts|--tensor-split|-mg|--main-gpu|-nkvo|"
     "--no-kv-offload|-ot|--override-tensor|-cmoe|--cpu-moe|-ncmoe|--n-cpu-moe",
     "", kOnCpu},
    {kOfLlamaServer, "-dev|--device", "", kOnCpu},
    {kPython, "--device", "", kOnCpu},
    {kOfVllm, "--enforce-eager|--compilation-config|--async-scheduling", "", kCudaOnly},
    {kOfLlamaServer, "-fa|--flash-attn", "", "attention needs no option (docs/llama.md)"},
    {kOfLlamaServer, "--mmap|--no-mmap|--mlock|--numa|--warmup|--no-warmup", "",
     "a model's file is mapped, and read before the first request"},
    {kOfVllm, "--rope-scaling|--rope-theta|--hf-overrides", "",
     "it is read from the model's files"},
    {kOfLlamaServer, "--rope-scaling|--rope-scale|--rope-freq-base|--rope-freq-scale|--override-kv",
     "", "it is read from the model's files"},
    {kOfVllm, "--speculative-config", "", kDrafts},
    {kOfLlamaServer, "-md|--model-draft|--draft|--draft-max|--draft-min", "", kDrafts},
    {kOfVllm,
     "-tp|--tensor-parallel-size|-pp|--pipeline-parallel-size|--enable-expert-parallel|"
     "--distributed-executor-backend|--kv-transfer-config",
     "", kOfSchedulers},
    {kOfSglang,
     "--tp|--tp-size|--tensor-parallel-size|--pp-size|--mem-fraction-static|--attention-backend|"
     "--disable-cuda-graph|--cuda-graph-max-bs|--schedule-policy|--speculative-algorithm|--nnodes|"
     "--node-rank|--dist-init-addr|--base-gpu-id|--log-level-http",
     "", kOfSchedulers},
    {kOfVllm, "-dp|--data-parallel-size", "", kSeveralServers},
    {kOfSglang, "--dp|--dp-size|--data-parallel-size", "", kSeveralServers},

    // Serving
    {kOfLlamaServer, "--threads-http", "shards", ""},
    {kOfVllm, "-asc|--api-server-count", "shards", "threads of one process"},
    {kOfVllm, "--allowed-origins", "cors-origin", "one origin, or *"},
    {kOfVllm, "--allowed-media-domains", "allowed-media-domain", "names separated by commas"},
    {kOfVllm, "--limit-mm-per-prompt", "limit-mm-data-per-request", ""},
    {kOfVllm, "--uvicorn-log-level", "log-level", ""},
    {kOfLlamaServer, "-v|--verbose|-lv|--verbosity|--log-verbosity|--log-disable", "log-level",
     "a name such as debug or error"},
    {kOfLlamaServer, "--log-file", "", "the log goes to standard error"},
    {kOfVllm, "--enable-log-requests", "log-requests", ""},
    {kOfVllm, "--disable-log-requests|--no-enable-log-requests", "",
     "requests are logged only with --log-requests"},
    {kOfVllm, "--disable-uvicorn-access-log", "", "answers are logged only with --access-log"},
    {kOfVllm, "--disable-log-stats", "", "metrics are always served, at /metrics"},
    {kOfLlamaServer, "--metrics", "", "metrics are always served, at /metrics"},
    {kOfLlamaServer, "--slots|--no-slots|--props", "",
     "there are no such routes; see /metrics and /get_server_info"},
    {kOfLlamaServer, "--slot-save-path|-sps|--slot-prompt-similarity", "",
     "requests share one KV cache, in which prefixes are found"},
    {kOfVllm, "--otlp-traces-endpoint", "",
     "no traces are exported; `portico profile` shows where time goes (docs/profiling.md)"},
    {kOfLlamaServer, "--api-key-file", "",
     "the key comes from --api-key, PORTICO_API_KEY or `api-key` in the file of --config"},
    {kOfLlamaServer, "--ssl-key-file", "ssl-keyfile", ""},
    {kOfLlamaServer, "--ssl-cert-file", "ssl-certfile", ""},
    {kOfVllm, "--ssl-cert-reqs", "ssl-ca-certs", "with it clients must present a certificate"},
    {kOfLlamaServer, "-to|--timeout", "read-timeout", ""},
    {kOfVllm, "--timeout-graceful-shutdown", "drain-timeout", ""},
    {kOfLlamaServer, "--webui|--no-webui|--path|--api-prefix", "",
     "only the API is served, at /v1"},
    {kOfVllm, "--root-path", "", "the API is served at /v1"},
};

// Called the same, with the same values.
constexpr std::string_view kSameOfVllm =
    "model|served-model-name|host|port|api-key|chat-template|tool-call-parser|reasoning-parser|"
    "stream-interval|ssl-keyfile|ssl-certfile|ssl-ca-certs|enable-ssl-refresh|"
    "allowed-local-media-path";
constexpr std::string_view kSameOfLlamaServer = "model|host|port|api-key|threads|pooling";

std::string FlagList(std::string_view names) {
  std::string list;
  for (const std::string_view name : SplitAtBars(names)) {
    list += fmt::format("{}`--{}`", list.empty() ? "" : ", ", name);
  }
  return list;
}

void AppendForeign(ForeignServer server, std::string_view name, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "\n| {} | here | |\n|---|---|---|\n", name);
  for (const ForeignFlag& entry : ForeignFlags()) {
    if ((entry.servers & server) == 0) continue;
    std::string flags;
    for (const std::string_view flag : SplitAtBars(entry.flags)) {
      flags += fmt::format("{}`{}`", flags.empty() ? "" : ", ", flag);
    }
    fmt::format_to(std::back_inserter(*out), "| {} | {} | {} |\n", flags,
                   entry.option.empty() ? "none" : fmt::format("`--{}`", entry.option), entry.note);
  }
}

}  // namespace

std::span<const ForeignFlag> ForeignFlags() { return kForeignFlags; }

const ForeignFlag* FindForeignFlag(std::string_view flag) {
  for (const ForeignFlag& entry : kForeignFlags) {
    const std::vector<std::string_view> names = SplitAtBars(entry.flags);
    if (std::find(names.begin(), names.end(), flag) != names.end()) return &entry;
  }
  return nullptr;
}

FlagHint HintOf(std::string_view flag, bool sglang) {
  constexpr std::string_view kBehind = "SGLang's own options follow a final --";
  const ForeignFlag* known = FindForeignFlag(flag);
  std::string_view option;
  if (known != nullptr) {
    option = known->option;
  } else if (const size_t name = flag.find_first_not_of('-'); name != std::string_view::npos) {
    option = NearestOption(flag.substr(name));
  }
  if (!option.empty()) {
    std::string text = fmt::format("did you mean --{}?", option);
    if (sglang) return {fmt::format("{} {}", text, kBehind)};
    return {.text = std::move(text), .note = known == nullptr ? "" : known->note};
  }
  if (sglang) return {std::string(kBehind)};
  if (known != nullptr) return {.text = std::string(known->note), .is_reason = true};
  return {"--help lists all"};
}

std::string ForeignFlagsMarkdown() {
  std::string out =
      "\n## Coming from `vllm serve`\n\n"
      "`vllm serve MODEL` is `portico serve --model-path MODEL`. Called the same: ";
  out += FlagList(kSameOfVllm);
  out +=
      ".\nvLLM itself runs behind Portico's gateway: `portico launch --engine vllm MODEL`, or "
      "`portico "
      "route` in front of\nrunning servers ([gateway](gateway.md)). A flag that is none here "
      "refuses "
      "the start, with the message of this table:\n";
  AppendForeign(kOfVllm, "vLLM", &out);
  out += "\n## Coming from `llama-server`\n\nCalled the same: ";
  out += FlagList(kSameOfLlamaServer);
  out += ".\n";
  AppendForeign(kOfLlamaServer, "llama-server", &out);
  return out;
}

}  // namespace portico
