#include "app/load/sglang_flags.h"

#include <utility>

namespace portico {

std::vector<std::string> SglangFlags(const ModelOptions& options, const std::string& path) {
  std::vector<std::string> flags{"--model-path", path};
  const auto add = [&](const char* flag, std::string value) {
    flags.emplace_back(flag);
    flags.push_back(std::move(value));
  };
  if (!options.tokenizer_path.empty()) add("--tokenizer-path", options.tokenizer_path);
  if (options.context_length > 0) add("--context-length", std::to_string(options.context_length));
  if (options.dtype != "auto") add("--dtype", options.dtype);
  if (!options.quantization.empty()) add("--quantization", options.quantization);
  if (options.max_running_requests > 0) {
    add("--max-running-requests", std::to_string(options.max_running_requests));
  }
  if (options.max_total_tokens > 0) {
    add("--max-total-tokens", std::to_string(options.max_total_tokens));
  }
  if (options.kv_cache_dtype != "auto") add("--kv-cache-dtype", options.kv_cache_dtype);
  if (options.chunked_prefill_size > 0) {
    add("--chunked-prefill-size", std::to_string(options.chunked_prefill_size));
  }
  if (options.disable_radix_cache) flags.emplace_back("--disable-radix-cache");
  if (options.enable_deterministic_inference) {
    flags.emplace_back("--enable-deterministic-inference");
  }
  if (options.is_embedding) flags.emplace_back("--is-embedding");
  if (options.stream_interval > 1) {
    add("--stream-interval", std::to_string(options.stream_interval));
  }
  if (options.weight_version != "default") add("--weight-version", options.weight_version);
  flags.insert(flags.end(), options.engine_arguments.begin(), options.engine_arguments.end());
  return flags;
}

}  // namespace portico
