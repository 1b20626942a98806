#include "engine/sglang/launch/facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico::sglang {
namespace {

int32_t Int32(const Json& json, std::string_view key) {
  const int64_t value = json.GetInt(key, 0);
  return value < 0 || value > INT32_MAX ? 0 : static_cast<int32_t>(value);
}

std::vector<std::string> Texts(const Json& json, std::string_view key) {
  std::vector<std::string> texts;
  const Json* list = json.Find(key);
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& each : list->as_array()) {
    if (each.is_string()) texts.push_back(each.as_string());
  }
  return texts;
}

void ReadModel(const Json& model, Facts* facts) {
  facts->model_path = model.GetString("path");
  facts->tokenizer_path = model.GetString("tokenizer_path");
  facts->architecture = model.GetString("architecture");
  facts->architectures = Texts(model, "architectures");
  facts->dtype = model.GetString("dtype");
  facts->vocab_size = Int32(model, "vocab_size");
  facts->context_length = Int32(model, "context_length");
  facts->hidden_size = Int32(model, "hidden_size");
  facts->is_generation = model.GetBool("is_generation", true);
  facts->labels = Texts(model, "labels");
  facts->problem_type = model.GetString("problem_type");
  if (const Json* ids = model.Find("eos_token_ids"); ids != nullptr && ids->is_array()) {
    for (const Json& id : ids->as_array()) {
      if (id.is_int()) facts->eos_token_ids.push_back(static_cast<int32_t>(id.as_int()));
    }
  }
}

// What SGLang's flags have made of the scheduler.
void ReadFlags(const Json& json, Facts* facts) {
  facts->ranks = std::max(Int32(json, "dp_size"), 1);
  facts->tensor_parallel_size = std::max(Int32(json, "tp_size"), 1);
  facts->has_tokenizer = !json.GetBool("skip_tokenizer_init", false);
  facts->caches_prefixes = !json.GetBool("disable_radix_cache", false);
  facts->page_size = std::max(Int32(json, "page_size"), 1);
  facts->lora = json.GetBool("enable_lora", false);
  facts->max_loaded_loras = Int32(json, "max_loaded_loras");
  facts->device = json.GetString("device");
  facts->new_profiler = json.GetBool("profile_v2", false);
  facts->records_experts = json.GetBool("records_experts", false);
  // Releases before 0.5.22 have a flag instead of the mode.
  const std::string mode = json.GetString("return_hidden_states_mode");
  facts->hidden_states = json.GetBool("enable_return_hidden_states", false) || !mode.empty();
  facts->last_hidden_state_only = mode == "last";
  facts->custom_logit_processors = json.GetBool("enable_custom_logit_processor", false);
  facts->priorities = json.GetBool("enable_priority_scheduling", false);
  const std::string half = json.GetString("disaggregation_mode");
  facts->half_of_pair = half == "prefill" || half == "decode";
  facts->draft_tokens = Int32(json, "speculative_num_draft_tokens");
  facts->grammar_backend = json.GetString("grammar_backend");
  facts->reasoning_parser = json.GetString("reasoning_parser");
  facts->load_format = json.GetString("load_format", "auto");
  facts->weight_loaders = Texts(json, "custom_weight_loaders");
  facts->weight_version = json.GetString("weight_version", "default");
}

void ReadAdapters(const Json& json, Facts* facts) {
  const Json* loras = json.Find("lora_paths");
  if (loras == nullptr || !loras->is_array()) return;
  for (const Json& each : loras->as_array()) {
    facts->loras.push_back({each.GetString("lora_id"), each.GetString("lora_name"),
                            each.GetString("lora_path"), each.GetBool("pinned", false)});
  }
}

void ReadMedia(const Json& json, Facts* facts) {
  const Json* media = json.Find("media");
  if (media == nullptr) return;
  facts->media_socket = media->GetString("address");
  facts->media_helpers = std::clamp(Int32(*media, "helpers"), 1, 64);
  const std::string reason = media->GetString("reason");  // of all kinds
  const Json* kinds = media->Find("kinds");
  if (!facts->media_socket.empty() && (kinds == nullptr || !kinds->is_object())) {
    // It would not understand what is said to it now.
    facts->media_socket.clear();
    facts->no_media.fill("the launcher of the engine is of an older Portico");
    return;
  }
  for (const MediaKind kind : kEachMediaKind) {
    const auto i = static_cast<size_t>(kind);
    const Json* why = kinds == nullptr ? nullptr : kinds->Find(NameOf(kind));
    const bool told = why != nullptr && why->is_string();
    facts->no_media[i] = told ? why->as_string() : reason;
    facts->takes_media[i] = !facts->media_socket.empty() && told && facts->no_media[i].empty();
  }
}

void ReadKvEvents(const Json& json, Facts* facts) {
  const Json* events = json.Find("kv_events");
  if (events == nullptr || !events->is_array()) return;
  for (const Json& each : events->as_array()) {
    facts->kv_events.push_back(
        {each.GetString("endpoint"), each.GetString("topic"), each.GetString("replay")});
  }
}

}  // namespace

StatusOr<Facts> Facts::Parse(const Json& json) {
  const auto lacks = [](std::string_view what) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("the facts that SGLang's launcher printed lack {}", what));
  };
  const Json* addresses = json.Find("addresses");
  const Json* model = json.Find("model");
  const Json* limits = json.Find("limits");
  if (addresses == nullptr) return lacks("addresses");
  if (model == nullptr) return lacks("model");
  if (limits == nullptr) return lacks("limits");
  Facts facts;
  facts.version = json.GetString("sglang_version");
  facts.pid = json.GetInt("pid", 0);
  facts.started = json.GetInt("started", 0);
  facts.proof_socket = json.GetString("proof_socket");
  facts.listeners = json.GetString("listeners");
  facts.load_snapshot = json.GetString("load_snapshot");
  facts.scheduler_input = addresses->GetString("scheduler_input");
  facts.tokenizer = addresses->GetString("tokenizer");
  facts.detokenizer = addresses->GetString("detokenizer");
  if (facts.scheduler_input.empty() || facts.tokenizer.empty() || facts.detokenizer.empty()) {
    return lacks("the names of the sockets");
  }
  ReadModel(*model, &facts);
  if (facts.vocab_size <= 0) return lacks("the size of the vocabulary");
  if (facts.context_length <= 0) return lacks("the context length");
  facts.max_total_tokens = limits->GetInt("max_total_num_tokens", 0);
  facts.max_input_tokens = Int32(*limits, "max_req_input_len");
  facts.max_running_requests = Int32(*limits, "max_running_requests");
  ReadFlags(json, &facts);
  ReadAdapters(json, &facts);
  ReadMedia(json, &facts);
  ReadKvEvents(json, &facts);
  return facts;
}

}  // namespace portico::sglang
