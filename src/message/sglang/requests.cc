#include "message/sglang/requests.h"

#include <fmt/format.h>

#include <bit>

namespace portico::sglang {
namespace {

using W = msgpack::Writer*;

void TextOrNil(std::string_view text, W w) { text.empty() ? w->Nil() : w->Str(text); }
void IntOrNil(const std::optional<int64_t>& value, W w) { value ? w->Int(*value) : w->Nil(); }

// Token ids as a Python array of int64 in list form, which every release takes.
void WriteIds(std::span<const TokenId> ids, W w) {
  static_assert(std::endian::native == std::endian::little);
  w->Array(2);
  w->Str("q");
  w->BinHead(ids.size() * sizeof(int64_t));
  constexpr size_t kBlock = 256;
  int64_t wide[kBlock];
  for (size_t at = 0; at < ids.size(); at += kBlock) {
    const size_t count = std::min(kBlock, ids.size() - at);
    for (size_t i = 0; i < count; ++i) wide[i] = ids[at + i];
    w->Raw({reinterpret_cast<const char*>(wide), count * sizeof(int64_t)});
  }
}

void WriteRows(std::span<const float> values, size_t width, W w) {
  w->Array(values.size() / width);
  for (size_t at = 0; at + width <= values.size(); at += width) {
    w->Array(width);
    for (size_t i = 0; i < width; ++i) w->Float(static_cast<double>(values[at + i]));
  }
}

template <typename T>
bool Always(const T&) {
  return true;
}
template <typename T>
bool Never(const T&) {
  return false;
}
// A required field that is always nil.
template <typename T>
void Nothing(const T&, W w) {
  w->Nil();
}

constexpr std::string_view kText = "str|list<str|list<str>>|nil str|list<str>|nil";
constexpr std::string_view kTypedMedia = "struct:MultimodalProcessorOutput|nil";
constexpr std::string_view kMedia = "struct:MultimodalProcessorOutput|nil struct:PickleWrapper|nil";

constexpr PlanField<WireSession> kSessionTable[] = {
    {"id", "str|nil", Always<WireSession>, [](const WireSession& s, W w) { TextOrNil(s.id, w); }},
    {"rid", "str|nil", [](const WireSession& s) { return !s.rid.empty(); },
     [](const WireSession& s, W w) { w->Str(s.rid); }},
    {"offset", "int|nil", [](const WireSession& s) { return s.offset.has_value(); },
     [](const WireSession& s, W w) { w->Int(*s.offset); }},
    {"replace", "bool|nil", [](const WireSession& s) { return s.replace; },
     [](const WireSession&, W w) { w->Bool(true); }},
    {"drop_previous_output", "bool|nil",
     [](const WireSession& s) { return s.drop_previous_output; },
     [](const WireSession&, W w) { w->Bool(true); }},
};

}  // namespace

struct RequestTables {
  using G = RequestEncoder::Generate;
  using E = RequestEncoder::Embed;

  static constexpr PlanField<G> kGenerate[] = {
      {"rid", "str|nil", Always<G>, [](const G& g, W w) { w->Str(g.request->rid); }},
      {"input_text", kText, Never<G>, Nothing<G>},
      {"input_ids", "array|nil", Always<G>, [](const G& g, W w) { WriteIds(g.request->ids, w); }},
      {"input_embeds", "list<list<float>>|nil",
       [](const G& g) { return !g.request->input_embeddings.empty(); },
       [](const G& g, W w) {
         if (g.request->input_embeddings.empty()) return w->Nil();
         WriteRows(g.request->input_embeddings, g.request->embedding_size, w);
       }},
      {"mm_inputs", kMedia, [](const G& g) { return !g.request->media.empty(); },
       [](const G& g, W w) {
         if (g.request->media.empty()) return w->Nil();
         w->Raw(g.request->media);
       }},
      {"token_type_ids", "list<int>|nil", Never<G>, Nothing<G>},
      {"sampling_params", "struct:SamplingParams", Always<G>,
       [](const G& g, W w) { g.encoder->sampling_.Append(g.request->sampling, w); }},
      {"return_logprob", "bool", Always<G>,
       [](const G& g, W w) { w->Bool(g.request->return_logprob); }},
      {"logprob_start_len", "int", Always<G>,
       [](const G& g, W w) { w->Int(g.request->logprob_start); }},
      {"top_logprobs_num", "int", Always<G>,
       [](const G& g, W w) { w->Int(g.request->top_logprobs); }},
      {"token_ids_logprob", "list<int>|nil",
       [](const G& g) { return !g.request->logprob_ids.empty(); },
       [](const G& g, W w) {
         if (g.request->logprob_ids.empty()) return w->Nil();
         w->Array(g.request->logprob_ids.size());
         for (const TokenId id : g.request->logprob_ids) w->Int(id);
       }},
      {"stream", "bool", Always<G>, [](const G& g, W w) { w->Bool(g.request->stream); }},
      {"return_hidden_states", "bool|literal<\"last\"> bool",
       [](const G& g) { return g.request->return_hidden_states; },
       [](const G& g, W w) {
         if (g.request->only_last_hidden_state) return w->Str("last");
         w->Bool(true);
       }},
      {"return_routed_experts", "bool", [](const G& g) { return g.request->return_routed_experts; },
       [](const G&, W w) { w->Bool(true); }},
      {"session_params", "struct:SessionParams|nil",
       [](const G& g) { return g.request->session != nullptr; },
       [](const G& g, W w) { g.encoder->session_.Append(*g.request->session, w); }},
      {"lora_id", "str|nil", [](const G& g) { return !g.request->lora_id.empty(); },
       [](const G& g, W w) { w->Str(g.request->lora_id); }},
      {"lora_name", "str|nil",
       [](const G& g) { return !g.request->lora_name.empty() && g.encoder->takes_lora_name(); },
       [](const G& g, W w) { w->Str(g.request->lora_name); }},
      {"custom_logit_processor", "str|nil",
       [](const G& g) { return !g.request->custom_logit_processor.empty(); },
       [](const G& g, W w) { w->Str(g.request->custom_logit_processor); }},
      {"bootstrap_host", "str|nil", [](const G& g) { return !g.request->bootstrap_host.empty(); },
       [](const G& g, W w) { w->Str(g.request->bootstrap_host); }},
      {"bootstrap_port", "int|nil",
       [](const G& g) { return g.request->bootstrap_port.has_value(); },
       [](const G& g, W w) { IntOrNil(g.request->bootstrap_port, w); }},
      {"bootstrap_room", "int|nil",
       [](const G& g) { return g.request->bootstrap_room.has_value(); },
       [](const G& g, W w) { IntOrNil(g.request->bootstrap_room, w); }},
      {"routed_dp_rank", "int|nil",
       [](const G& g) { return g.request->data_parallel_rank.has_value(); },
       [](const G& g, W w) { IntOrNil(g.request->data_parallel_rank, w); }},
      {"require_reasoning", "bool", [](const G& g) { return g.request->require_reasoning; },
       [](const G&, W w) { w->Bool(true); }},
      {"priority", "int|nil", [](const G& g) { return g.request->priority.has_value(); },
       [](const G& g, W w) { IntOrNil(g.request->priority, w); }},
      {"extra_key", "str|nil", [](const G& g) { return !g.request->extra_key.empty(); },
       [](const G& g, W w) { w->Str(g.request->extra_key); }},
      {"cache_salt", "str|nil", [](const G& g) { return !g.request->cache_salt.empty(); },
       [](const G& g, W w) { w->Str(g.request->cache_salt); }},
  };

  static constexpr PlanField<E> kEmbed[] = {
      {"rid", "str|nil", Always<E>, [](const E& e, W w) { w->Str(e.request->rid); }},
      {"input_text", kText, Never<E>, Nothing<E>},
      {"input_ids", "array|nil", Always<E>, [](const E& e, W w) { WriteIds(e.request->ids, w); }},
      {"mm_inputs", kMedia, Never<E>, Nothing<E>},
      {"token_type_ids", "list<int>|nil",
       [](const E& e) { return !e.request->token_types.empty(); },
       [](const E& e, W w) {
         if (e.request->token_types.empty()) return w->Nil();
         w->Array(e.request->token_types.size());
         for (const uint8_t type : e.request->token_types) w->Int(type);
       }},
      {"sampling_params", "struct:SamplingParams", Always<E>,
       [](const E& e, W w) { e.encoder->sampling_.Append(e.request->sampling, w); }},
      {"lora_id", "str|nil", [](const E& e) { return !e.request->lora_id.empty(); },
       [](const E& e, W w) { w->Str(e.request->lora_id); }},
      {"lora_name", "str|nil",
       [](const E& e) {
         return !e.request->lora_name.empty() && e.encoder->embed_takes_lora_name();
       },
       [](const E& e, W w) { w->Str(e.request->lora_name); }},
      {"routed_dp_rank", "int|nil",
       [](const E& e) { return e.request->data_parallel_rank.has_value(); },
       [](const E& e, W w) { IntOrNil(e.request->data_parallel_rank, w); }},
      {"priority", "int|nil", [](const E& e) { return e.request->priority.has_value(); },
       [](const E& e, W w) { IntOrNil(e.request->priority, w); }},
  };
};

StatusOr<std::unique_ptr<RequestEncoder>> RequestEncoder::Make(const Schema& schema) {
  auto encoder = std::make_unique<RequestEncoder>();
  PORTICO_ASSIGN_OR_RETURN(encoder->sampling_, SamplingPlan(schema));
  PORTICO_ASSIGN_OR_RETURN(encoder->session_,
                           StructPlan<WireSession>::Make(schema, "SessionParams", kSessionTable));
  PORTICO_ASSIGN_OR_RETURN(
      encoder->generate_,
      StructPlan<Generate>::Make(schema, "TokenizedGenerateReqInput", RequestTables::kGenerate));
  PORTICO_ASSIGN_OR_RETURN(
      encoder->embed_,
      StructPlan<Embed>::Make(schema, "TokenizedEmbeddingReqInput", RequestTables::kEmbed));
  const Field* media = schema.Find("TokenizedGenerateReqInput")->Find("mm_inputs");
  encoder->takes_media_ = media != nullptr && media->type_text == kTypedMedia;
  return encoder;
}

namespace {

Status NoPlaceFor(std::string_view field) {
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("the installed SGLang has no {}", field), field);
}

}  // namespace

Status RequestEncoder::Encode(const WireGenerate& request, std::string* out) const {
  const Generate from{&request, this};
  for (const std::string_view field :
       {generate_.Missing(from), sampling_.Missing(request.sampling)}) {
    if (!field.empty()) return NoPlaceFor(field);
  }
  if (request.session != nullptr && !session_.Missing(*request.session).empty()) {
    return NoPlaceFor("session_params." + std::string(session_.Missing(*request.session)));
  }
  msgpack::Writer writer(out);
  generate_.Append(from, &writer);
  return OkStatus();
}

Status RequestEncoder::Encode(const WireEmbed& request, std::string* out) const {
  const Embed from{&request, this};
  for (const std::string_view field : {embed_.Missing(from), sampling_.Missing(request.sampling)}) {
    if (!field.empty()) return NoPlaceFor(field);
  }
  msgpack::Writer writer(out);
  embed_.Append(from, &writer);
  return OkStatus();
}

}  // namespace portico::sglang
