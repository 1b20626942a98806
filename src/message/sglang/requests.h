// The two requests of the wire that carry tokens: TokenizedGenerateReqInput and TokenizedEmbeddingReqInput. Immutable
// once made; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "message/sglang/sampling.h"

namespace portico::sglang {

// SessionParams; empty texts and absent numbers are nil.
struct WireSession {
  std::string_view id;
  std::string_view rid;
  std::optional<int64_t> offset;
  bool replace = false;
  bool drop_previous_output = false;
};

// Views: what they show outlives the encoding. Empty texts and absent numbers are nil.
struct WireGenerate {
  std::string_view rid;
  std::span<const TokenId> ids;  // not empty
  std::string_view media;        // mm_inputs, as SGLang's codec wrote it
  WireSampling sampling;
  bool return_logprob = false;
  int64_t logprob_start = -1;  // -1: output only
  int64_t top_logprobs = 0;
  std::span<const TokenId> logprob_ids;
  bool stream = true;
  // Rows of `embedding_size`; empty: the model embeds the ids.
  std::span<const float> input_embeddings;
  size_t embedding_size = 0;
  bool return_hidden_states = false;
  bool only_last_hidden_state = false;
  bool return_routed_experts = false;
  const WireSession* session = nullptr;
  std::string_view lora_id;
  std::string_view lora_name;
  std::string_view custom_logit_processor;
  std::string_view bootstrap_host;
  std::optional<int64_t> bootstrap_port;
  std::optional<int64_t> bootstrap_room;
  std::optional<int64_t> data_parallel_rank;
  bool require_reasoning = false;
  std::optional<int64_t> priority;
  std::string_view extra_key;
  std::string_view cache_salt;
};

struct WireEmbed {
  std::string_view rid;
  std::span<const TokenId> ids;          // not empty
  std::span<const uint8_t> token_types;  // one an id, or empty
  WireSampling sampling;
  std::string_view lora_id;
  std::string_view lora_name;
  std::optional<int64_t> data_parallel_rank;
  std::optional<int64_t> priority;
};

class RequestEncoder {
 public:
  // FAILED_PRECONDITION names the fields of the package that Portico does not know. The schema outlives the encoder.
  static StatusOr<std::unique_ptr<RequestEncoder>> Make(const Schema& schema);

  // Appends one frame. FAILED_PRECONDITION: the package has no place for a field that the request gives, which it
  // names.
  Status Encode(const WireGenerate& request, std::string* out) const;
  Status Encode(const WireEmbed& request, std::string* out) const;

  // Whether `media` is typed, as from 0.5.20 on; before it is a pickle.
  bool takes_media() const { return takes_media_; }
  bool takes_lora_name() const { return generate_.Has("lora_name"); }
  bool embed_takes_lora_name() const { return embed_.Has("lora_name"); }

 private:
  struct Generate {
    const WireGenerate* request;
    const RequestEncoder* encoder;
  };
  struct Embed {
    const WireEmbed* request;
    const RequestEncoder* encoder;
  };
  friend struct RequestTables;

  StructPlan<WireSampling> sampling_;
  StructPlan<WireSession> session_;
  StructPlan<Generate> generate_;
  StructPlan<Embed> embed_;
  bool takes_media_ = false;
};

}  // namespace portico::sglang
