#include "api/common/refused_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace portico::api {
namespace {

constexpr RefusedField kRefused[] = {
    {"allowed_token_ids", ""},
    {"audio", ""},
    {"audios", "[]"},
    {"bad_words", "[]"},
    {"beam_width", "1"},
    {"bootstrap_host", R"("")", kPerPrompt},
    {"bootstrap_port", "", kPerPrompt},
    {"bootstrap_room", "", kPerPrompt},
    {"cache_salt", R"("")", kPerPrompt},
    {"chat_template", ""},
    {"custom_labels", "{}"},
    {"custom_logit_processor", R"("")", kPerPrompt},
    {"custom_params", "{}"},
    {"data_parallel_rank", "0"},
    {"disagg_prefill_dp_rank", ""},
    {"dry_multiplier", "0"},
    {"dynatemp_range", "0"},
    {"extra_key", R"("")", kPerPrompt},
    {"function_call", R"("none" "auto")"},
    {"functions", "[]"},
    {"grammar", R"("")", false, "ebnf"},
    {"guided_whitespace_pattern", ""},
    {"image_generation", ""},
    {"images", "[]"},
    {"images_config", "{}"},
    {"include_stop_str_in_output", "false", false, "no_stop_trim"},
    {"input_embeds", ""},
    {"input_ids", "", false, "",
     "prompt of /v1/completions and input_ids of /generate are token ids"},
    {"logits_processors", "[]"},
    {"lora_path", R"("")", kPerPrompt},
    {"max_dynamic_patch", ""},
    {"min_dynamic_patch", ""},
    {"mirostat", "0"},
    {"modalities", R"(["text"])"},
    {"n_predict", "-1", false, "max_tokens (of /generate, max_new_tokens)"},
    {"n_probs", "0"},
    {"ngram_corpus_id", ""},
    {"parallel_tool_calls", "true"},
    {"prediction", ""},
    {"priority", "0"},
    {"prompt_cache_retention", R"("in_memory" "in-memory")"},
    {"prompt_logprobs", "", false, "",
     "echo with logprobs of /v1/completions returns them, and logprob_start_len of /generate"},
    {"repeat_penalty", "1", false, "repetition_penalty"},
    {"return_cached_tokens_details", "false"},
    {"return_hidden_states", "false", kPerPrompt},
    {"return_meta_info", "false"},
    {"return_prompt_token_ids", "false"},
    {"return_routed_experts", "false"},
    {"return_tokens_as_token_ids", "false"},
    {"routed_dp_rank", "0"},
    {"routed_experts_start_len", "0"},
    {"samplers", ""},
    {"service_tier", R"("auto" "default")"},
    {"session_id", R"("")"},
    {"session_params", ""},
    {"spaces_between_special_tokens", "true"},
    {"stage_params", "{}"},
    {"stage_sampling", "{}"},
    {"stop_regex", "[]"},
    {"store", "false"},
    {"stream_interval", "1"},
    {"t_max_predict_ms", "0 -1"},
    {"talker_max_new_tokens", ""},
    {"talker_repetition_penalty", ""},
    {"talker_temperature", ""},
    {"talker_top_k", ""},
    {"talker_top_p", ""},
    {"task", ""},
    {"tfs_z", "1"},
    {"thinking_budget", "-1", false, "max_thinking_tokens"},
    {"thinking_token_budget", "-1", false, "max_thinking_tokens"},
    {"top_a", "0"},
    {"top_n_sigma", "-1"},
    {"truncate_prompt_tokens", ""},
    {"typical_p", "1"},
    {"use_audio_in_video", "false"},
    {"use_beam_search", "false"},
    {"verbosity", R"("medium")"},
    {"video_fps", ""},
    {"video_max_frames", ""},
    {"video_max_pixels", ""},
    {"video_min_pixels", ""},
    {"video_total_pixels", ""},
    {"videos", "[]"},
    {"watermark", R"({"enabled":false})"},
    {"web_search_options", ""},
    {"xtc_probability", "0"},
};
static_assert(IsSortedByName(kRefused));

// Whether a number is the same as the JSON text of one, however it is written: 0, 0.0 and -0.0.
bool IsNumber(Element value, std::string_view text) {
  double number = 0;
  double expected = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
  return value.is_number() && !value.get(number) && error == std::errc() &&
         end == text.data() + text.size() && number == expected;
}

bool IsDefault(Element value, const RefusedField& field) {
  if (field.defaults == "*" || value.is_null()) return true;
  if (field.per_prompt && value.is_array()) {
    const simdjson::dom::array items(value);
    return std::all_of(items.begin(), items.end(),
                       [&field](Element item) { return IsDefault(item, field); });
  }
  const std::string text = simdjson::minify(value);
  std::string_view defaults = field.defaults;
  while (!defaults.empty()) {
    size_t end = std::min(defaults.find(' '), defaults.size());
    const std::string_view one = defaults.substr(0, end);
    if (text == one || IsNumber(value, one)) return true;
    defaults.remove_prefix(std::min(end + 1, defaults.size()));
  }
  return false;
}

std::string Advice(const RefusedField& field) {
  if (!field.instead.empty()) return fmt::format("its name here is {}", field.instead);
  if (!field.advice.empty()) return std::string(field.advice);
  if (field.defaults.empty()) return "leave it out";
  std::string advice = "only ";
  for (char c : field.defaults) {
    if (c == ' ') {
      advice += " or ";
    } else {
      advice += c;
    }
  }
  return advice + " is accepted";
}

}  // namespace

bool IsRefusedField(std::span<const RefusedField> fields, std::string_view name, Element value,
                    Status* status) {
  auto found = std::lower_bound(
      fields.begin(), fields.end(), name,
      [](const RefusedField& field, std::string_view wanted) { return field.name < wanted; });
  if (found == fields.end() || found->name != name) return false;
  const bool is_default = IsDefault(value, *found);
  *status = is_default ? OkStatus()
                       : InvalidArgument(name, fmt::format("{} is not supported by this server: {}",
                                                           name, Advice(*found)));
  return true;
}

bool IsRefusedField(std::string_view name, Element value, Status* status) {
  return IsRefusedField(kRefused, name, value, status);
}

Status RefuseOrNote(std::string_view name, Element value,
                    std::vector<std::string>* unknown_fields) {
  Status status;
  if (!IsRefusedField(name, value, &status)) NoteUnknown(name, unknown_fields);
  return status;
}

}  // namespace portico::api
