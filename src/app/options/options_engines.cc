// Options of engines that compute nothing here: the mock, token workers, and some of SGLang's.
#include "app/options/options_table.h"

namespace portico {
namespace {

// Whole numbers up to here are exact in a double, as the ranges are.
constexpr double kExactMax = 9007199254740992.0;
constexpr double kDay = 86400;

constexpr Option kTable[] = {
    {.group = "SGLang engine",
     .name = "attach",
     .member = &ModelOptions::attach,
     .metavar = "FILE",
     .help =
         "Joins a running SGLang: the file that its launcher wrote with --facts. Several files, "
         "separated by commas, are engines of one model, between which --policy chooses.",
     .shown_default = "SGLang is started and ends with this server",
     .engines = "sglang"},
    {.group = "SGLang engine",
     .name = "sglang-replicas",
     .member = &ModelOptions::sglang_replicas,
     .metavar = "N",
     .help = "Number of engines of the model to start, each on its own GPUs; --policy chooses "
             "between them.",
     .min = 1,
     .max = 64,
     .engines = "sglang"},
    {.group = "SGLang engine",
     .name = "sglang-transport",
     .member = &ModelOptions::sglang_transport,
     .metavar = "WHAT",
     .help = "Sockets between Portico and SGLang's schedulers: ipc, Unix sockets in a folder that "
             "only this user can enter; or tcp, ports of 127.0.0.1 to which every user of the "
             "machine can connect: other users' connections are refused, but can keep the "
             "schedulers from connecting. --attach takes what the launcher's file says. shm, "
             "shared memory, is refused.",
     .choices = "ipc|tcp|shm",
     .engines = "sglang"},
    {.group = "SGLang engine",
     .name = "sglang-fallback",
     .member = &ModelOptions::sglang_fallback,
     .metavar = "WHAT",
     .help = "What to do with an SGLang whose scheduler messages Portico does not support: none "
             "refuses "
             "to start, http starts SGLang's own server and acts as a gateway in front of it.",
     .choices = "none|http",
     .engines = "sglang"},

    {.group = "Mock engine",
     .name = "mock-ttft-ms",
     .member = &ModelOptions::mock_ttft_ms,
     .metavar = "MS",
     .help = "Time to the first token.",
     .max = 3600000,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-itl-ms",
     .member = &ModelOptions::mock_itl_ms,
     .metavar = "MS",
     .help = "Time between two steps of a stream.",
     .max = 3600000,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-tokens-per-step",
     .member = &ModelOptions::mock_tokens_per_step,
     .metavar = "N",
     .help = "Tokens in each step of a stream.",
     .min = 1,
     .max = 64,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-fault",
     .member = &ModelOptions::mock_fault,
     .metavar = "SPEC",
     .help = "Fractions of requests with injected faults: die (the whole engine), stall, error; "
             "for example die:0.01,stall:0.01,error:0.05.",
     .shown_default = "none",
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-seed",
     .member = &ModelOptions::mock_seed,
     .metavar = "SEED",
     .help = "Seed that selects the requests with faults.",
     .max = kExactMax,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-labels",
     .member = &ModelOptions::mock_labels,
     .metavar = "N",
     .help = "Number of labels of a mock classifier; 0 is none.",
     .max = 1024,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-kv-cells",
     .member = &ModelOptions::mock_kv_cells,
     .metavar = "N",
     .help = "Simulates a prefix cache of this many KV cells, and steps that take the times below "
             "instead of --mock-ttft-ms and --mock-itl-ms; 0 disables it. Reports no "
             "log-probabilities.",
     .max = 1 << 30,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-step-ms",
     .member = &ModelOptions::mock_step_ms,
     .metavar = "MS",
     .help = "With --mock-kv-cells: time of each step.",
     .max = 3600000,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-prefill-us",
     .member = &ModelOptions::mock_prefill_us,
     .metavar = "US",
     .help = "With --mock-kv-cells: additional time for each uncached prompt token.",
     .max = 3600000,
     .engines = "mock"},
    {.group = "Mock engine",
     .name = "mock-decode-us",
     .member = &ModelOptions::mock_decode_us,
     .metavar = "US",
     .help = "With --mock-kv-cells: additional time for each decoding sequence.",
     .max = 3600000,
     .engines = "mock"},

    {.group = "Token workers",
     .name = "worker-urls",
     .member = &ModelOptions::worker_urls,
     .metavar = "URLS",
     .help = "With --engine grpc: workers that take token ids over gRPC (sglang.grpc.scheduler), "
             "as grpc://host:port, separated by commas.",
     .shown_default = "none",
     .engines = "grpc"},
    {.group = "Token workers",
     .name = "policy",
     .member = &ModelOptions::policy,
     .metavar = "POLICY",
     .help = "Routing policy (docs/routing.md).",
     .choices = "cost|cache_aware|round_robin|random|power_of_two|least_load|consistent_hashing|"
                "prefix_hash|manual|bucket",
     .engines = "sglang|grpc"},
    {.group = "Token workers",
     .name = "worker-startup-timeout",
     .member = &ModelOptions::worker_startup_timeout,
     .metavar = "SECONDS",
     .help = "How long the first worker may take to answer.",
     .min = 1,
     .max = kDay,
     .engines = "grpc"},

    {.group = "Profiles",
     .name = "profile-dir",
     .member = &ServeOptions::profile_dir,
     .metavar = "PATH",
     .help = "The folder below which profiles are written, whatever a request says "
             "(docs/profiling.md).",
     .shown_default = "$SGLANG_TORCH_PROFILER_DIR, else in the cache folder"},
    {.group = "Profiles",
     .name = "profile-max-bytes",
     .member = &ServeOptions::profile_max_bytes,
     .metavar = "BYTES",
     .help =
         "Maximum size of the files of one profile and process; what exceeds it is only counted.",
     .min = 1 << 20,
     .max = 1ll << 40,
     .bytes = true},
};

}  // namespace

std::span<const Option> OtherEngineOptions() { return kTable; }

}  // namespace portico
