// What the launcher says of a running SGLang (python/portico/sglang_launch.py, event "ready").
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/request_media.h"
#include "text/json.h"

namespace portico::sglang {

struct LoraFact {
  std::string id;
  std::string name;
  std::string path;
  bool pinned = false;
};

// Where a data-parallel rank publishes its KV cache events.
struct KvEventAddress {
  std::string endpoint;
  std::string topic;
  std::string replay;  // empty: none
};

struct Facts {
  std::string version;
  int64_t pid = 0;           // of the launcher
  int64_t started = 0;       // when it was (ProcessStart); 0: it has not said
  std::string proof_socket;  // where it proves messages to later front ends; empty: nowhere
  std::string
      listeners;  // where it hands its sockets over, to one front end at a time; empty: nowhere
  std::string scheduler_input;
  std::string tokenizer;
  std::string detokenizer;
  std::string load_snapshot;  // a file; empty: there is none

  std::string model_path;
  std::string tokenizer_path;
  std::string architecture;
  std::string dtype;
  int32_t vocab_size = 0;
  int32_t context_length = 0;
  int32_t hidden_size = 0;
  bool is_generation = true;
  std::vector<int32_t> eos_token_ids;
  std::vector<std::string> labels;
  std::string problem_type;
  std::vector<std::string> architectures;

  int64_t max_total_tokens = 0;
  int32_t max_input_tokens = 0;
  int32_t max_running_requests = 0;  // 0: it has not said
  int32_t ranks = 1;
  int32_t tensor_parallel_size = 1;
  bool has_tokenizer = true;  // the scheduler's; without it there are no stop strings
  bool caches_prefixes = true;
  int32_t page_size = 1;  // tokens of a page of the prefix cache
  bool lora = false;
  int32_t max_loaded_loras = 0;  // 0: any number
  std::string device;            // "cuda", "cpu" …
  bool records_experts = false;
  bool new_profiler = false;  // which profiles stages only
  bool hidden_states = false;
  bool last_hidden_state_only = false;
  bool custom_logit_processors = false;
  bool priorities = false;
  bool half_of_pair = false;  // it prefills, or decodes what another has prefilled
  int32_t draft_tokens = 0;   // of a step of speculation, with the model's own; 0: there is none
  std::string grammar_backend;
  std::string
      reasoning_parser;  // whose reasoning a grammar comes after; empty: it holds from the first token
  std::string load_format;
  std::vector<std::string>
      weight_loaders;  // of the operator, that an update may name as its format
  std::string weight_version;
  std::vector<LoraFact> loras;
  std::string media_socket;  // of the helpers that read media; empty: there are none
  int32_t media_helpers = 0;
  std::array<bool, kMediaKinds> takes_media{};    // by MediaKind: what they read for this model
  std::array<std::string, kMediaKinds> no_media;  // why they do not read that
  std::vector<KvEventAddress> kv_events;          // by rank; empty: none are published

  // INVALID_ARGUMENT for facts that lack what Portico needs.
  static StatusOr<Facts> Parse(const Json& json);
};

}  // namespace portico::sglang
