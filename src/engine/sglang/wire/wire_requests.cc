#include "engine/sglang/wire/wire_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/sglang/wire/json_values.h"
#include "engine/sglang/wire/python_regex.h"
#include "message/choice_regex.h"
#include "text/utf8.h"

namespace portico::sglang {
namespace {

constexpr float kGreedyBelow = 1e-6f;  // SGLang: a lower temperature is greedy
// Computing fewer again costs less than a step more. SGLang's scheduler has the same bound for keeping back requests that
// share a prefix.
constexpr int64_t kMinSharedTokens = 32;
const std::string kAnyObject = R"({"type": "object"})";

Status CheckIds(std::span<const TokenId> ids, int32_t vocab_size, std::string_view field) {
  for (const TokenId id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    return InvalidArgument(field,
                           fmt::format("token ids must be in [0, {}), got {}", vocab_size, id));
  }
  return OkStatus();
}

// A life of the scheduler may have fewer ranks than the one before.
Status CheckRankOf(const Facts& facts, int32_t rank, std::string_view field) {
  if (rank >= 0 && rank < facts.ranks) return OkStatus();
  return InvalidArgument(field,
                         fmt::format("{} must be in [0, {}), got {}", field, facts.ranks, rank));
}

Status CheckFinite(double value, std::string_view field) {
  if (std::isfinite(value)) return OkStatus();
  return InvalidArgument(field, fmt::format("{} must be a finite number", field));
}

Status CheckText(std::string_view text, std::string_view field) {
  if (IsValidUtf8(text)) return OkStatus();
  return InvalidArgument(field, fmt::format("{} must be valid UTF-8", field));
}

// `choices` lives as long as the encoding.
Status AddConstraint(const Constraint& constraint, const Facts& facts, std::string* choices,
                     WireGenerate* wire) {
  PORTICO_RETURN_IF_ERROR(CheckText(constraint.text, constraint.field));
  if (constraint.max_thinking_tokens >= 0) {
    return InvalidArgument("max_thinking_tokens",
                           "max_thinking_tokens is not supported by this model's engine, sglang: "
                           "leave it out");
  }
  wire->require_reasoning = constraint.BeginsInReasoning();
  if (wire->require_reasoning && facts.reasoning_parser.empty() &&
      constraint.kind != ConstraintKind::kReasoning) {
    return InvalidArgument(constraint.field,
                           "the answer begins with reasoning, to which SGLang would apply the "
                           "grammar: it was started without a --reasoning-parser of its own");
  }
  switch (constraint.kind) {
    case ConstraintKind::kJsonSchema:
      wire->sampling.json_schema = &constraint.text;
      break;
    case ConstraintKind::kJsonObject:
      wire->sampling.json_schema = &kAnyObject;
      break;
    case ConstraintKind::kRegex:
      wire->sampling.regex = &constraint.text;
      break;
    case ConstraintKind::kEbnf:
      wire->sampling.ebnf = &constraint.text;
      break;
    case ConstraintKind::kStructuralTag:
      wire->sampling.structural_tag = &constraint.text;
      break;
    case ConstraintKind::kChoice: {
      PORTICO_ASSIGN_OR_RETURN(*choices, RegexOfChoices(constraint.text));
      wire->sampling.regex = choices;
      break;
    }
    case ConstraintKind::kReasoning:
      break;
  }
  return OkStatus();
}

Status AddSampling(const SamplingParams& from, const Facts& facts, WireSampling* to) {
  for (const auto& [value, field] : {std::pair{from.temperature, "temperature"},
                                     {from.top_p, "top_p"},
                                     {from.min_p, "min_p"},
                                     {from.frequency_penalty, "frequency_penalty"},
                                     {from.presence_penalty, "presence_penalty"},
                                     {from.repetition_penalty, "repetition_penalty"}}) {
    PORTICO_RETURN_IF_ERROR(CheckFinite(static_cast<double>(value), field));
  }
  const bool greedy = from.temperature < kGreedyBelow;
  to->temperature = greedy ? 1.0 : static_cast<double>(from.temperature);
  if (greedy) {
    to->top_k = 1;
  } else if (from.top_k > 0) {
    to->top_k = from.top_k;
  }
  to->top_p = static_cast<double>(from.top_p);
  to->min_p = static_cast<double>(from.min_p);
  to->frequency_penalty = static_cast<double>(from.frequency_penalty);
  to->presence_penalty = static_cast<double>(from.presence_penalty);
  to->repetition_penalty = static_cast<double>(from.repetition_penalty);
  to->min_new_tokens = from.min_new_tokens;
  to->ignore_eos = from.ignore_eos;
  to->stop_token_ids = from.stop_token_ids;
  to->logit_bias = from.logit_bias;
  PORTICO_RETURN_IF_ERROR(CheckIds(from.stop_token_ids, INT32_MAX, "stop_token_ids"));
  for (const auto& [id, bias] : from.logit_bias) {
    PORTICO_RETURN_IF_ERROR(CheckIds({&id, 1}, facts.vocab_size, "logit_bias"));
    PORTICO_RETURN_IF_ERROR(CheckFinite(static_cast<double>(bias), "logit_bias"));
  }
  return OkStatus();
}

// The bytes of custom_params, of the type that the package declares.
StatusOr<std::string> CustomParams(const Codec& codec, const std::string& json) {
  const StructLayout* layout = codec.schema->Find("SamplingParams");
  const Field* field = layout->Find("custom_params");
  if (field == nullptr) {
    return Error(StatusCode::kFailedPrecondition, "the installed SGLang has no custom_params",
                 "custom_params");
  }
  auto parsed = Json::Parse(json);
  if (!parsed.ok()) return InvalidArgument("custom_params", "custom_params must be JSON");
  PORTICO_ASSIGN_OR_RETURN(Value value, ValueOfJson(field->type, *parsed, "custom_params"));
  std::string encoded;
  const Status status = EncodeValue(*codec.schema, field->type, value, {}, &encoded);
  if (status.ok()) return encoded;
  return InvalidArgument("custom_params",
                         "custom_params must be an object of plain values, lists of them and flat "
                         "objects");
}

// {"callable": HEX}, in which the scheduler looks without a guard. What the bytes do is theirs: SGLang takes processors
// only where its operator lets clients run code.
Status CheckProcessor(const std::string& text) {
  if (text.empty()) return OkStatus();
  const auto json = Json::Parse(text);
  const Json* callable = json.ok() && json->is_object() ? json->Find("callable") : nullptr;
  const bool is_hex =
      callable != nullptr && callable->is_string() && !callable->as_string().empty() &&
      callable->as_string().size() % 2 == 0 &&
      callable->as_string().find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (is_hex) return OkStatus();
  return InvalidArgument("custom_logit_processor",
                         "custom_logit_processor must be what SGLang's to_str() makes: "
                         "{\"callable\": \"hexadecimal digits\"}");
}

Status AddExtras(const RequestExtras& extras, const Facts& facts, const WireNames& names,
                 WireSession* session, WireGenerate* wire) {
  // Without a tokenizer the scheduler cannot look for them; the service finds them in the text in any case.
  if (facts.has_tokenizer) {
    for (const std::string& text : extras.stop) {
      PORTICO_RETURN_IF_ERROR(CheckText(text, "stop"));
    }
    wire->sampling.stop_strs = extras.stop;
    for (const std::string& text : extras.stop_regex) {
      PORTICO_RETURN_IF_ERROR(CheckText(text, "stop_regex"));
      PORTICO_RETURN_IF_ERROR(CheckPythonRegex(text, "stop_regex"));
    }
    wire->sampling.stop_regex_strs = extras.stop_regex;
  }
  for (const auto& [text, field] :
       {std::pair<std::string_view, std::string_view>{extras.extra_key, "extra_key"},
        {extras.cache_salt, "cache_salt"},
        {extras.custom_logit_processor, "custom_logit_processor"},
        {extras.bootstrap_host, "bootstrap_host"}}) {
    PORTICO_RETURN_IF_ERROR(CheckText(text, field));
  }
  PORTICO_RETURN_IF_ERROR(CheckProcessor(extras.custom_logit_processor));
  if (extras.return_hidden_states && !extras.only_last_hidden_state &&
      facts.last_hidden_state_only) {
    return InvalidArgument("return_hidden_states",
                           "return_hidden_states: SGLang gives only the \"last\" one, as started");
  }
  if (extras.session) {
    PORTICO_RETURN_IF_ERROR(CheckText(extras.session->id, "session_params"));
    session->id = extras.session->id;
    session->rid = names.session_rid;
    if (extras.session->offset) session->offset = *extras.session->offset;
    session->replace = extras.session->replace;
    session->drop_previous_output = extras.session->drop_previous_output;
    wire->session = session;
  }
  if (extras.data_parallel_rank) {
    PORTICO_RETURN_IF_ERROR(CheckRankOf(facts, *extras.data_parallel_rank, extras.rank_field));
    wire->data_parallel_rank = *extras.data_parallel_rank;
  }
  wire->lora_id = names.lora_id;
  wire->lora_name = names.lora_name;
  wire->return_hidden_states = extras.return_hidden_states;
  wire->only_last_hidden_state = extras.only_last_hidden_state;
  wire->return_routed_experts = extras.return_routed_experts;
  wire->custom_logit_processor = extras.custom_logit_processor;
  wire->bootstrap_host = extras.bootstrap_host;
  if (extras.bootstrap_port) wire->bootstrap_port = *extras.bootstrap_port;
  if (extras.bootstrap_room) wire->bootstrap_room = *extras.bootstrap_room;
  wire->extra_key = extras.extra_key;
  wire->cache_salt = extras.cache_salt;
  if (!extras.input_embeddings.empty()) {
    for (const float value : extras.input_embeddings) {
      PORTICO_RETURN_IF_ERROR(CheckFinite(static_cast<double>(value), "input_embeds"));
    }
    const auto width = static_cast<size_t>(std::max(extras.embedding_size, 0));
    if (width == 0 || extras.input_embeddings.size() != width * wire->ids.size() ||
        (facts.hidden_size > 0 && width != static_cast<size_t>(facts.hidden_size))) {
      return InvalidArgument(
          "input_embeds",
          fmt::format("input_embeds must have rows of {} numbers", facts.hidden_size));
    }
    wire->input_embeddings = extras.input_embeddings;
    wire->embedding_size = width;
  }
  return OkStatus();
}

// The prompt has grown, and what is left of the context with it.
Status AddMedia(const MediaInputs& media, const RequestMedia& asked, const Facts& facts,
                WireGenerate* wire) {
  const auto tokens = static_cast<int64_t>(media.ids.size());
  const int64_t room = facts.context_length - tokens;
  if (media.ids.empty() || room <= 0) {
    return ContextExceeded(
        asked.field(),
        fmt::format("the prompt has {} tokens with its media, but the context length "
                    "is {}",
                    tokens, facts.context_length));
  }
  if (asked.limit_is_asked && *wire->sampling.max_new_tokens > room) {
    return ContextExceeded(
        asked.field(),
        fmt::format("the prompt has {} tokens with its media, which leaves {} of the context of {} "
                    "for the answer, but {} are asked for",
                    tokens, room, facts.context_length, *wire->sampling.max_new_tokens));
  }
  wire->sampling.max_new_tokens = std::min(*wire->sampling.max_new_tokens, room);
  wire->media = media.encoded;
  return OkStatus();
}

}  // namespace

StatusOr<std::string> EncodeRequest(const Codec& codec, const Facts& facts,
                                    const GenerateRequest& request, const WireNames& names,
                                    const MediaInputs* media) {
  if (request.prompt == nullptr || request.prompt->empty()) {
    return InvalidArgument("input_ids", "the prompt must have at least one token");
  }
  WireGenerate wire;
  wire.rid = names.rid;
  wire.ids = media == nullptr ? std::span<const TokenId>(*request.prompt) : media->ids;
  PORTICO_RETURN_IF_ERROR(CheckIds(wire.ids, facts.vocab_size, "input_ids"));
  PORTICO_RETURN_IF_ERROR(AddSampling(*request.sampling, facts, &wire.sampling));
  wire.sampling.max_new_tokens = std::max(request.max_new_tokens, 0);
  if (media != nullptr) {
    PORTICO_RETURN_IF_ERROR(AddMedia(*media, *request.extras->media, facts, &wire));
  }
  wire.sampling.min_new_tokens =
      std::clamp<int64_t>(wire.sampling.min_new_tokens, 0, *wire.sampling.max_new_tokens);
  if (request.sampling->seed) {
    // The scheduler has no choices: each gets a seed of its own, the first the client's.
    const uint64_t seed = *request.sampling->seed + static_cast<uint64_t>(request.choice);
    wire.sampling.seed = static_cast<int64_t>(seed);
  }
  wire.return_logprob = request.return_logprobs;
  if (request.return_logprobs) {
    wire.top_logprobs = request.top_logprobs;
    wire.logprob_start = request.prompt_logprobs_start;
    if (wire.logprob_start >= static_cast<int64_t>(wire.ids.size())) {
      return InvalidArgument("logprob_start_len", "must be within the prompt");
    }
    if (request.logprob_ids != nullptr) {
      PORTICO_RETURN_IF_ERROR(
          CheckIds(*request.logprob_ids, facts.vocab_size, "token_ids_logprob"));
      wire.logprob_ids = *request.logprob_ids;
    }
  }
  if (facts.priorities) wire.priority = request.priority;
  std::string choices;
  if (request.constraint != nullptr) {
    PORTICO_RETURN_IF_ERROR(AddConstraint(*request.constraint, facts, &choices, &wire));
  }
  WireSession session;
  std::string custom_params;
  if (request.extras != nullptr) {
    PORTICO_RETURN_IF_ERROR(AddExtras(*request.extras, facts, names, &session, &wire));
    if (wire.bootstrap_room) {
      const int64_t room = int64_t{request.choice} * request.extras->bootstrap_room_step;
      if (*wire.bootstrap_room > INT64_MAX - room) {
        return InvalidArgument("bootstrap_room", "bootstrap_room is too large for so many choices");
      }
      *wire.bootstrap_room += room;
    }
    if (!request.extras->custom_params.empty()) {
      PORTICO_ASSIGN_OR_RETURN(custom_params, CustomParams(codec, request.extras->custom_params));
      wire.sampling.custom_params = custom_params;
    }
  }
  std::string frame;
  frame.reserve(512 + 8 * wire.ids.size() + wire.media.size());
  PORTICO_RETURN_IF_ERROR(codec.requests->Encode(wire, &frame));
  return frame;
}

StatusOr<std::string> EncodeRequest(const Codec& codec, const Facts& facts,
                                    const PoolingRequest& request, const WireNames& names) {
  if (request.tokens == nullptr || request.tokens->empty()) {
    return InvalidArgument("input", "a text must have at least one token");
  }
  PORTICO_RETURN_IF_ERROR(CheckIds(*request.tokens, facts.vocab_size, "input"));
  // The scheduler dies of longer ones.
  if (request.tokens->size() >= static_cast<size_t>(facts.context_length)) {
    return ContextExceeded("input",
                           fmt::format("a text of {} tokens does not fit the context of {}",
                                       request.tokens->size(), facts.context_length));
  }
  WireEmbed wire;
  wire.rid = names.rid;
  wire.lora_id = names.lora_id;
  wire.lora_name = names.lora_name;
  wire.ids = *request.tokens;
  wire.token_types = request.token_types;
  if (request.data_parallel_rank >= 0) {
    PORTICO_RETURN_IF_ERROR(CheckRankOf(facts, request.data_parallel_rank, kRankField));
    wire.data_parallel_rank = request.data_parallel_rank;
  }
  wire.sampling.max_new_tokens = 0;
  std::string frame;
  frame.reserve(384 + 8 * wire.ids.size());
  PORTICO_RETURN_IF_ERROR(codec.requests->Encode(wire, &frame));
  return frame;
}

bool WantsPrefix(const Facts& facts, const GenerateRequest& request) {
  if (request.first_choice == 0 || !facts.caches_prefixes || facts.half_of_pair) return false;
  bool one_rank = facts.ranks == 1;
  if (const RequestExtras* extras = request.extras.get(); extras != nullptr) {
    // A request of a session is part of it. Cached tokens have no hidden states. Media come through a queue of their own.
    if (extras->session || extras->return_hidden_states || extras->media != nullptr) return false;
    one_rank = one_rank || extras->data_parallel_rank.has_value();
  }
  // The last token is computed in any case, and so is what log-probabilities are wanted of.
  auto shared = static_cast<int64_t>(request.prompt->size()) - 1;
  if (request.return_logprobs && request.prompt_logprobs_start >= 0) {
    shared = std::min<int64_t>(shared, request.prompt_logprobs_start);
  }
  return one_rank && shared - shared % facts.page_size >= kMinSharedTokens;
}

StatusOr<std::string> EncodePrefix(const Codec& codec, const Facts& facts,
                                   const GenerateRequest& request, const WireNames& names) {
  GenerateRequest prompt = request;
  prompt.max_new_tokens = 0;
  prompt.return_logprobs = false;
  return EncodeRequest(codec, facts, prompt, names);
}

}  // namespace portico::sglang
