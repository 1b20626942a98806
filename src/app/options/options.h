// What `portico serve` can be told. options_table.cc is the one table behind the command line, the
// YAML file, --help, docs/config.md and /get_server_info.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/json.h"

namespace portico {

// What is told of one model. Values are in the ranges of the table; each member's meaning and default
// are there too.
struct ModelOptions {
  std::string model_path;                   // empty: the demo model
  std::string served_model_name;            // empty: "demo", or the model path as given
  std::string tokenizer_path;               // empty: beside the model
  std::string chat_template;                // a file or the template itself; empty: the model's own
  int32_t context_length = 0;               // 0: the model's own
  std::string dtype = "auto";               // auto, float32, bfloat16, float16
  std::string quantization;                 // empty: none
  std::string sampling_defaults = "model";  // model, openai
  std::string engine = "llama";             // llama, sglang, grpc, mock
  std::string tool_call_parser = "auto";    // a name, auto or none
  std::string reasoning_parser = "auto";    // a name, auto or none
  bool forward_unknown_tools = false;       // calls of tools that nobody offered are calls too
  bool is_embedding = false;                // the model gives vectors, whatever its folder says
  std::string pooling = "auto";             // auto, mean, cls, last

  // Engine
  int32_t threads = 0;               // 0: the cores, shared by the models that name none
  int32_t max_running_requests = 0;  // 0: the engine's choice
  int32_t max_queued_requests = 1024;
  int64_t max_total_tokens = 0;         // KV cells; 0: from the context length and the free memory
  std::string kv_cache_dtype = "auto";  // the engine knows the others
  int32_t chunked_prefill_size = 0;     // prompt tokens a step; 0: the engine's choice
  bool disable_radix_cache = false;
  bool return_original_logprob = false;
  bool enable_deterministic_inference = false;
  bool allow_auto_truncate = false;
  int32_t stream_interval = 1;            // tokens
  std::string preferred_sampling_params;  // JSON; empty: none
  std::string weight_version = "default";

  // SGLang engine
  std::string sglang_python = "python3";  // that has SGLang
  std::string sglang_launcher;            // empty: the one that comes with Portico
  std::string attach;           // files, separated by commas; empty: SGLang is started here
  int32_t sglang_replicas = 1;  // engines to start
  std::string sglang_transport = "ipc";  // ipc, tcp
  int32_t sglang_media_helpers = 1;      // processes a replica that read media
  bool restart_engine = false;
  std::string sglang_fallback = "none";           // none, http
  std::vector<std::string> engine_arguments;      // what stands behind -- on the command line
  std::vector<std::string> engine_options_taken;  // of these and of their file, options of Portico

  // Mock engine
  double mock_ttft_ms = 0;
  double mock_itl_ms = 0;
  int32_t mock_tokens_per_step = 1;
  std::string mock_fault;  // ParseMockFaults() takes it
  int64_t mock_seed = 0;
  int32_t mock_labels = 0;    // 0: the mock does not classify
  int64_t mock_kv_cells = 0;  // 0: the mock does not simulate a real engine's times
  double mock_step_ms = 8;
  double mock_prefill_us = 100;
  double mock_decode_us = 60;

  // Token workers (engine grpc)
  std::string worker_urls;               // separated by commas or spaces
  std::string policy = "cost";           // MakePolicy() takes it
  double worker_startup_timeout = 1800;  // seconds
};

// What requests call the model.
std::string ModelId(const ModelOptions& options);

struct ServeOptions {
  // At least one, no two with the same id; the first is the default one.
  std::vector<ModelOptions> models{1};

  // Serving
  std::string host = "127.0.0.1";
  int32_t port = 30000;                   // 0: any free one
  int32_t shards = 0;                     // 0: a quarter of the cores, at least 1
  std::string api_key;                    // secret; empty: no authentication
  std::string admin_api_key;              // secret; empty: api_key
  std::string limit_mm_data_per_request;  // JSON: {"image": most of a prompt}
  std::string allowed_media_domain;       // separated by commas or spaces; empty: none is fetched
  std::string allowed_local_media_path;   // a folder; empty: no files are read
  bool grpc_mode = false;                 // has no effect
  bool smg_grpc_mode = false;             // has no effect
  std::string cors_origin;
  std::string
      allowed_host;  // separated by commas or spaces; counts where host is a loopback address
  bool enable_metrics = true;                         // cannot be false
  std::string reasoning_field = "reasoning_content";  // reasoning_content, reasoning
  bool accept_any_model = false;  // requests with a name that is not served go to the default model
  std::optional<bool> incremental_streaming_output;  // absent: over gRPC, not over HTTP
  bool speech = false;                               // a pipeline runs beside the models
  std::string pipeline;  // its file; empty with `speech`: the bundled one
  std::vector<std::pair<std::string, std::string>> pipeline_overrides;  // not of the table
  double drain_timeout = 30;                                            // seconds
  int64_t model_cache_bytes = int64_t{64} << 30;

  // Limits
  int32_t max_client_batch_size = 8192;  // texts of one request
  int32_t max_connections = 65536;
  int64_t max_body_bytes = int64_t{32} << 20;
  int64_t max_inflight_body_bytes = int64_t{512} << 20;
  int64_t max_request_cost_bytes = int64_t{1} << 30;
  int64_t max_head_bytes = int64_t{64} << 10;
  int64_t max_unsent_bytes = int64_t{4} << 20;
  double idle_timeout = 75;    // seconds
  double read_timeout = 30;    // seconds
  double grammar_timeout = 5;  // seconds
  int64_t grammar_memory_bytes = int64_t{1} << 30;
  int64_t grammar_cache_bytes = int64_t{512} << 20;
  int64_t grammar_text_bytes = int64_t{256} << 10;
  int32_t grammar_depth = 64;
  int32_t grammar_branches = 2000;
  int32_t grammar_rules = 20000;

  // gRPC; the first four hold for every HTTP/2 connection
  double grpc_keepalive_time = 60;           // seconds; 0: never
  double grpc_keepalive_timeout = 20;        // seconds
  double grpc_max_connection_age = 0;        // seconds; 0: no limit
  double grpc_max_connection_age_grace = 0;  // seconds; 0: no limit
  int32_t grpc_max_concurrent_streams = 1024;
  int64_t grpc_max_message_size = int64_t{64} << 20;
  int32_t grpc_port = 0;  // 0: the shared port alone
  bool disable_grpc = false;

  // TLS: key and certificate or none
  std::string ssl_keyfile;
  std::string ssl_certfile;
  std::string ssl_keyfile_password;  // secret
  std::string ssl_ca_certs;          // empty: clients show no certificate
  bool enable_ssl_refresh = true;

  // Logging
  std::string profile_dir;  // empty: the environment's, or the cache folder's
  int64_t profile_max_bytes = int64_t{256} << 20;
  std::string log_level = "info";  // debug, info, warning, error, critical
  bool log_requests = false;
  bool access_log = false;
};

struct ParsedOptions {
  ServeOptions options;
  // Set when help was asked for: print it on standard output and exit with status 0.
  std::optional<std::string> print_and_exit;
  bool check_only = false;  // --check: nothing is to be started
};

// Reads the command line and the file that --config names; the command line wins. argv[0] is the
// program's or the command's name and is skipped. Every --model-path begins a model, whose options
// follow it; those before the first, and the file's outside its list `models`, are every model's.
// Every error is INVALID_ARGUMENT (NOT_FOUND for the file), one line that names the flag (unknown
// ones all), or the file, line and key.
StatusOr<ParsedOptions> ParseServeOptions(int argc, const char* const* argv);

// What `portico serve --help` prints, and docs/config.md.
std::string OptionsHelp();
std::string OptionsMarkdown();

// All options but secrets, keys as in Python ("max_running_requests"): at the top those of the server
// and of the default model, and `models` with the options of each.
Json OptionsAsJson(const ServeOptions& options);

}  // namespace portico
