// PipelineConfig: a graph of stages in YAML or JSON, with sglang-omni's names. Unknown keys, and
// known ones that this version does not do, are refused with their line.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/json.h"

namespace portico::pipeline {

struct StageConfig {
  std::string name;
  std::string factory_path;            // "portico.say"
  Json factory;                        // the factory's arguments, an object
  std::vector<std::string> next;       // their parts come when this stage has ended
  std::vector<std::string> stream_to;  // their parts come as they are made
  bool terminal = false;
  // Which of `next` and `stream_to` a request takes; of a stage of Python, a function that tells when
  // the stage has ended which of `next` go on.
  std::string route_fn;
  std::vector<std::string> wait_for;  // sources that must be complete before the stage begins
  std::string merge_fn;
  // Of stages of Python, functions: which of `wait_for` a request waits for; which of `stream_to`
  // are told at the stage's end that nothing more comes, where the others end without it.
  std::string wait_for_fn;
  std::string stream_done_to_fn;
  // `can_accept_stream_before_payload`: what other stages stream to it is not held back until that
  // is complete which comes by `next` or from `wait_for`.
  bool accepts_early = false;
  // Of a stage of Python: what an edge carries, by its target a function of what the stage sends.
  std::vector<std::pair<std::string, std::string>> project_payload;
  double timeout_s = 0;        // 0: none but the pipeline's
  double stall_timeout_s = 0;  // without progress while there is work; 0: none
  double hop_timeout_s = 0;    // a part waits for the stage; 0: none
  int32_t max_queued = 64;     // requests that wait for a stage of bounded concurrency
  std::string process;         // stages of one name share a process; "": the server's own
  bool restart = true;         // the process is started again when it ends
  bool replay = true;          // a request that shows nothing yet begins anew in another one
  std::string python;          // the interpreter of a stage of Python; "": python3
  std::vector<std::pair<std::string, std::string>> env;  // where the server has no such variable
  // Of the whole graph.
  bool python_behind = false;            // some stage behind it is one of Python
  bool gets_payload = false;             // something comes by `next`, or from the client
  std::vector<std::string> feeds_back;   // of `stream_to`, the stages that lead to it
  std::vector<std::string> fed_by;       // the stages behind it that stream back to it
  std::vector<std::string> streamed_by;  // the other stages that stream to it
  std::vector<std::string>
      beside;  // those that stream to it, beside what comes by `next` or `wait_for`
  int line = 0;

  // A path of Python: "package.module.Name".
  bool is_python() const { return IsPythonPath(factory_path); }
  static bool IsPythonPath(std::string_view path) {
    return !path.starts_with("portico.") && path.find('.') != std::string_view::npos;
  }
};

// What `processes` says of one.
struct ProcessConfig {
  std::string name;
  int32_t replicas = 1;
  std::vector<std::string> hosts;  // where `portico omni stage` serves it; empty: on this host
  bool tls = false;                // to these hosts
  std::string tls_ca;              // PEM; empty: the system's roots
};

struct PipelineConfig {
  std::string name = "omni";
  std::string model_path;
  std::string entry_stage;  // default: the first
  std::vector<StageConfig> stages;
  double timeout_s = 300;
  int32_t max_in_flight = 256;
  std::vector<std::pair<std::string, std::string>> env_defaults;  // of every stage of Python
  std::vector<std::pair<std::string, std::string>> voices;        // aliases: alloy → slt
  std::vector<ProcessConfig> processes;
  std::vector<std::vector<std::string>> fused_stages;  // groups that share a process

  // Where media of requests may be fetched from (service/upstream/media_rules.h); empty: nowhere.
  std::vector<std::string> allowed_media_domains;
  std::string allowed_local_media_path;

  std::string file;  // its name
  // Where the file says what: by dotted path, "say.factory.voice".
  std::map<std::string, int, std::less<>> lines;
  std::vector<std::string> flags;  // the command line's, as dotted paths

  // Null: nothing is said of it.
  const ProcessConfig* FindProcess(std::string_view process) const;
  int32_t ReplicasOf(std::string_view process) const;
  const StageConfig* Find(std::string_view stage) const;
};

// A dotted path and its text: {"say.factory.voice", "rms"} of a stage, {"timeout_s", "60"} or
// {"processes.voice.num_replicas", "2"} of the pipeline.
using Overrides = std::vector<std::pair<std::string, std::string>>;

// Reads and checks a configuration; `file` is its name in errors, which are INVALID_ARGUMENT, one
// line: "demo.yaml:12: unknown key `nxt`; did you mean `next`?", or "--say.nxt: unknown key …".
StatusOr<PipelineConfig> ParsePipelineConfig(const std::string& text, const std::string& file,
                                             const Overrides& overrides);

// " (with --say.factory.voice)": the flags that have set something of a stage, or of any for "". For
// faults of what is made of these values.
std::string WithFlags(const PipelineConfig& config, std::string_view stage = "");
// Every value as YAML, those of an override with a comment that says so.
std::string ResolvedConfig(const PipelineConfig& config, const Overrides& overrides);
// One value of it and where it is from; `path` is dotted. NOT_FOUND if there is none of that name.
StatusOr<std::string> ExplainValue(const PipelineConfig& config, std::string_view path,
                                   const Overrides& overrides);
// The graph in lines: "say → encode (stream)".
std::string GraphText(const PipelineConfig& config);

}  // namespace portico::pipeline
