#include "app/options_table.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace portico {
namespace {

constexpr double kInt32Max = std::numeric_limits<int32_t>::max();
// Whole numbers up to here are exact in a double, as the ranges are.
constexpr double kExactMax = 9007199254740992.0;
constexpr double kDay = 86400;

// Names and defaults are SGLang's where it has the flag (sglang/srt/server_args.py).
constexpr Option kTable[] = {
    {.group = "Model",
     .name = "model-path",
     .member = &ServeOptions::model_path,
     .metavar = "PATH",
     .help =
         "A GGUF file, a Hugging Face folder as downloaded, or a hub id (org/name) that is in the "
         "Hugging Face cache.",
     .alias = "model",
     .shown_default = "the bundled demo model"},
    {.group = "Model",
     .name = "served-model-name",
     .member = &ServeOptions::served_model_name,
     .metavar = "NAME",
     .help = "The model's name in the API.",
     .shown_default = "the model path as given"},
    {.group = "Model",
     .name = "tokenizer-path",
     .member = &ServeOptions::tokenizer_path,
     .metavar = "PATH",
     .help = "A folder with tokenizer.json, or a GGUF file.",
     .shown_default = "the model path"},
    {.group = "Model",
     .name = "chat-template",
     .member = &ServeOptions::chat_template,
     .metavar = "FILE",
     .help = "A Jinja chat template: a file, or the template itself.",
     .shown_default = "the model's own"},
    {.group = "Model",
     .name = "context-length",
     .member = &ServeOptions::context_length,
     .metavar = "TOKENS",
     .help = "Prompt and answer together; 0 takes the model's own.",
     .max = kInt32Max},
    {.group = "Model",
     .name = "dtype",
     .member = &ServeOptions::dtype,
     .metavar = "TYPE",
     .help = "Of the weights in memory; auto keeps what the files have, float32 also computes in "
             "float32.",
     .choices = "auto|float32|bfloat16"},
    {.group = "Model",
     .name = "quantization",
     .member = &ServeOptions::quantization,
     .metavar = "TYPE",
     .help =
         "Quantizes a Hugging Face folder at its first import: q8_0, q4_k_m and the other types of "
         "llama.cpp.",
     .shown_default = "none"},
    {.group = "Model",
     .name = "model-cache-bytes",
     .member = &ServeOptions::model_cache_bytes,
     .metavar = "BYTES",
     .help = "Imported models in the cache folder; beyond it the least recently used go, never one "
             "that "
             "is served.",
     .max = 1125899906842624.0,
     .bytes = true},
    {.group = "Model",
     .name = "sampling-defaults",
     .member = &ServeOptions::sampling_defaults,
     .metavar = "SOURCE",
     .help = "Where sampling values come from that a request does not name: the model's "
             "generation_config.json, or OpenAI's defaults.",
     .choices = "model|openai"},
    {.group = "Model",
     .name = "engine",
     .member = &ServeOptions::engine,
     .metavar = "ENGINE",
     .help = "What answers: llama computes the model, mock repeats the prompt.",
     .choices = "llama|mock"},
    {.group = "Model",
     .name = "is-embedding",
     .member = &ServeOptions::is_embedding,
     .help =
         "The model gives vectors: a generating model those of its last tokens. Models that are "
         "made for vectors or classes are known without it."},

    {.group = "Serving",
     .name = "host",
     .member = &ServeOptions::host,
     .metavar = "ADDRESS",
     .help = "The address to listen on; 0.0.0.0 or :: for all."},
    {.group = "Serving",
     .name = "port",
     .member = &ServeOptions::port,
     .metavar = "PORT",
     .help = "The port to listen on; 0 takes a free one and prints it.",
     .max = 65535},
    {.group = "Serving",
     .name = "shards",
     .member = &ServeOptions::shards,
     .metavar = "N",
     .help = "Threads for connections; 0 takes a quarter of the cores, at least 1.",
     .max = 1024},
    {.group = "Serving",
     .name = "threads",
     .member = &ServeOptions::threads,
     .metavar = "N",
     .help = "Threads of the engine; 0 takes all cores.",
     .max = 4096},
    {.group = "Serving",
     .name = "api-key",
     .member = &ServeOptions::api_key,
     .metavar = "KEY",
     .help = "What clients must send as a bearer token. /health stays open. Other users of the "
             "machine see a "
             "command line; the file of --config can be kept from them.",
     .shown_default = "none",
     .secret = true},
    {.group = "Serving",
     .name = "cors-origin",
     .member = &ServeOptions::cors_origin,
     .metavar = "ORIGIN",
     .help = "The origin whose web pages may call the API; * for all.",
     .shown_default = "none"},
    {.group = "Serving",
     .name = "enable-metrics",
     .member = &ServeOptions::enable_metrics,
     .help =
         "Metrics are always served at /metrics; the flag is taken for SGLang's command lines."},
    {.group = "Serving",
     .name = "incremental-streaming-output",
     .member = &ServeOptions::incremental_streaming_output,
     .help = "Messages of native streams hold what is new, not all so far. Neither flag nor "
             "=false: so over gRPC, but not over HTTP (/generate). The header or metadata "
             "x-portico-stream (delta or cumulative) chooses for one request."},
    {.group = "Serving",
     .name = "drain-timeout",
     .member = &ServeOptions::drain_timeout,
     .metavar = "SECONDS",
     .help = "How long requests in flight may go on after SIGTERM.",
     .max = kDay},

    {.group = "Limits",
     .name = "max-running-requests",
     .member = &ServeOptions::max_running_requests,
     .metavar = "N",
     .help = "Requests that are computed at once; 0 leaves it to the engine.",
     .max = 1000000},
    {.group = "Limits",
     .name = "max-queued-requests",
     .member = &ServeOptions::max_queued_requests,
     .metavar = "N",
     .help = "Requests that wait; those beyond are answered with 429.",
     .max = 1000000},
    {.group = "Limits",
     .name = "max-total-tokens",
     .member = &ServeOptions::max_total_tokens,
     .metavar = "TOKENS",
     .help = "Tokens in the KV cache; 0 chooses from the context length and the free memory.",
     .max = kExactMax},
    {.group = "Limits",
     .name = "chunked-prefill-size",
     .member = &ServeOptions::chunked_prefill_size,
     .metavar = "TOKENS",
     .help = "Prompt tokens computed in one step; 0 leaves it to the engine.",
     .max = 1048576},
    {.group = "Limits",
     .name = "disable-radix-cache",
     .member = &ServeOptions::disable_radix_cache,
     .help = "Keeps no prefixes of earlier requests."},
    {.group = "Limits",
     .name = "max-connections",
     .member = &ServeOptions::max_connections,
     .metavar = "N",
     .help = "Open connections; the limit on open files may be lower.",
     .min = 1,
     .max = 10000000},
    {.group = "Limits",
     .name = "max-body-bytes",
     .member = &ServeOptions::max_body_bytes,
     .metavar = "BYTES",
     .help = "Size of a request's body; beyond it 413.",
     .min = 1,
     .max = 17179869184.0,
     .bytes = true},
    {.group = "Limits",
     .name = "max-head-bytes",
     .member = &ServeOptions::max_head_bytes,
     .metavar = "BYTES",
     .help = "Size of a request's head; beyond it 431.",
     .min = 1024,
     .max = 16777216,
     .bytes = true},
    {.group = "Limits",
     .name = "max-unsent-bytes",
     .member = &ServeOptions::max_unsent_bytes,
     .metavar = "BYTES",
     .help = "A stream whose reader is this far behind is cut off.",
     .min = 65536,
     .max = 17179869184.0,
     .bytes = true},
    {.group = "Limits",
     .name = "idle-timeout",
     .member = &ServeOptions::idle_timeout,
     .metavar = "SECONDS",
     .help = "How long a connection may wait for its next request.",
     .min = 1,
     .max = kDay},
    {.group = "Limits",
     .name = "read-timeout",
     .member = &ServeOptions::read_timeout,
     .metavar = "SECONDS",
     .help = "How long a client may stay silent within a request, and how long a head may take.",
     .min = 1,
     .max = kDay},

    {.group = "gRPC",
     .name = "grpc-port",
     .member = &ServeOptions::grpc_port,
     .metavar = "PORT",
     .help = "A port beside the shared one, with the same protocols; 0 opens none.",
     .max = 65535},
    {.group = "gRPC",
     .name = "disable-grpc",
     .member = &ServeOptions::disable_grpc,
     .help = "Refuses gRPC on every port."},
    {.group = "gRPC",
     .name = "grpc-max-message-size",
     .member = &ServeOptions::grpc_max_message_size,
     .metavar = "BYTES",
     .help = "Size of a client's message, unpacked; beyond it RESOURCE_EXHAUSTED.",
     .min = 1024,
     .max = 2147483647.0,
     .bytes = true},
    {.group = "gRPC",
     .name = "grpc-max-concurrent-streams",
     .member = &ServeOptions::grpc_max_concurrent_streams,
     .metavar = "N",
     .help = "Requests that an HTTP/2 connection may have open at once.",
     .min = 1,
     .max = 1000000},
    {.group = "gRPC",
     .name = "grpc-keepalive-time",
     .member = &ServeOptions::grpc_keepalive_time,
     .metavar = "SECONDS",
     .help = "An HTTP/2 client with open requests that has been silent for so long is pinged; 0 "
             "never pings.",
     .max = kDay},
    {.group = "gRPC",
     .name = "grpc-keepalive-timeout",
     .member = &ServeOptions::grpc_keepalive_timeout,
     .metavar = "SECONDS",
     .help = "How long such a client may take to answer before it is cut off.",
     .min = 0.05,
     .max = kDay},
    {.group = "gRPC",
     .name = "grpc-max-connection-age",
     .member = &ServeOptions::grpc_max_connection_age,
     .metavar = "SECONDS",
     .help = "After so long, a tenth more or less, an HTTP/2 connection takes no new requests and "
             "closes when it has none; 0 sets no limit.",
     .max = 30 * kDay},
    {.group = "gRPC",
     .name = "grpc-max-connection-age-grace",
     .member = &ServeOptions::grpc_max_connection_age_grace,
     .metavar = "SECONDS",
     .help = "How long requests may then go on; 0 sets no limit.",
     .max = 30 * kDay},

    {.group = "TLS",
     .name = "ssl-keyfile",
     .member = &ServeOptions::ssl_keyfile,
     .metavar = "FILE",
     .help = "The private key, PEM.",
     .shown_default = "no TLS"},
    {.group = "TLS",
     .name = "ssl-certfile",
     .member = &ServeOptions::ssl_certfile,
     .metavar = "FILE",
     .help = "The certificate with its chain, PEM.",
     .shown_default = "no TLS"},
    {.group = "TLS",
     .name = "ssl-keyfile-password",
     .member = &ServeOptions::ssl_keyfile_password,
     .metavar = "PASSWORD",
     .help = "Of an encrypted private key.",
     .shown_default = "none",
     .secret = true},
    {.group = "TLS",
     .name = "ssl-ca-certs",
     .member = &ServeOptions::ssl_ca_certs,
     .metavar = "FILE",
     .help = "Authorities, PEM: a client must show a certificate of one of them.",
     .shown_default = "clients need no certificate"},
    {.group = "TLS",
     .name = "enable-ssl-refresh",
     .member = &ServeOptions::enable_ssl_refresh,
     .help = "Uses changed files for new connections, without a restart; files that cannot be used "
             "leave the former in place."},

    {.group = "Logging",
     .name = "log-level",
     .member = &ServeOptions::log_level,
     .metavar = "LEVEL",
     .help = "Messages below this level are dropped; the others go to standard error.",
     .choices = "debug|info|warning|error|critical"},
    {.group = "Logging",
     .name = "log-requests",
     .member = &ServeOptions::log_requests,
     .help = "Logs each request's parameters and outcome."},
    {.group = "Logging",
     .name = "access-log",
     .member = &ServeOptions::access_log,
     .help = "Logs a line for each HTTP request."},

    {.group = "Mock engine",
     .name = "mock-ttft-ms",
     .member = &ServeOptions::mock_ttft_ms,
     .metavar = "MS",
     .help = "Time to the first token.",
     .max = 3600000},
    {.group = "Mock engine",
     .name = "mock-itl-ms",
     .member = &ServeOptions::mock_itl_ms,
     .metavar = "MS",
     .help = "Time between two steps of a stream.",
     .max = 3600000},
    {.group = "Mock engine",
     .name = "mock-tokens-per-step",
     .member = &ServeOptions::mock_tokens_per_step,
     .metavar = "N",
     .help = "Tokens that come at once.",
     .min = 1,
     .max = 64},
    {.group = "Mock engine",
     .name = "mock-fault",
     .member = &ServeOptions::mock_fault,
     .metavar = "SPEC",
     .help =
         "Share of requests that meet a fault: die (the whole engine), stall, error; for example "
         "die:0.01,stall:0.01,error:0.05.",
     .shown_default = "none"},
    {.group = "Mock engine",
     .name = "mock-seed",
     .member = &ServeOptions::mock_seed,
     .metavar = "SEED",
     .help = "Decides which requests meet a fault.",
     .max = kExactMax},
    {.group = "Mock engine",
     .name = "mock-labels",
     .member = &ServeOptions::mock_labels,
     .metavar = "N",
     .help = "Classifies texts, with so many labels; 0 does not.",
     .max = 1024},
};

// Insertions, deletions and replacements from one to the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string Dashed(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

}  // namespace

std::span<const Option> ServeOptionTable() { return kTable; }

const Option* FindOption(std::string_view name) {
  const std::string dashed = Dashed(name);
  for (const Option& option : kTable) {
    if (option.name == dashed || (!option.alias.empty() && option.alias == dashed)) return &option;
  }
  return nullptr;
}

std::string_view NearestOption(std::string_view name) {
  const std::string dashed = Dashed(name.substr(0, 64));
  std::string_view nearest;
  size_t best = std::max<size_t>(dashed.size() / 3, 2) + 1;
  for (const Option& option : kTable) {
    const size_t distance = EditDistance(dashed, option.name);
    if (distance < best) {
      best = distance;
      nearest = option.name;
    }
  }
  return nearest;
}

}  // namespace portico
