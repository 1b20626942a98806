// What few requests carry. Behind one pointer, null for all others, so that plain requests do not pay for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/request_media.h"

namespace portico {

// What requests call a rank; SGLang's newer name is "routed_dp_rank".
inline constexpr std::string_view kRankField = "data_parallel_rank";

// SGLang's session_params: a request continues an earlier one of the same session.
struct SessionParams {
  std::string id;
  std::string rid;                // the request that is continued; empty: the last one
  std::optional<int32_t> offset;  // tokens of it that are kept; negative: from its end
  bool replace = false;
  bool drop_previous_output = false;
};

// Immutable once submitted; shared between the choices of a request. An engine honours a member only if its
// EngineCapabilities say so; the service refuses the others before Submit (service/plan/capability_checks.h).
struct RequestExtras {
  // Where the engine must know them, because it stops by itself. The service finds them in the text in any case.
  std::vector<std::string> stop;
  std::vector<std::string> stop_regex;

  std::optional<SessionParams> session;
  std::string lora_path;  // the adapter's name; empty: none
  std::string lora_id;    // its id, where the client knows that instead
  bool return_hidden_states = false;
  bool only_last_hidden_state = false;  // with it: of the last token alone
  bool return_routed_experts = false;
  std::optional<int32_t> data_parallel_rank;
  std::string_view rank_field =
      kRankField;  // what the client calls it, for errors; of static storage

  // Of a prefill/decode pair: where the other half of it waits.
  std::string bootstrap_host;
  std::optional<int32_t> bootstrap_port;
  std::optional<int64_t> bootstrap_room;  // of choice 0
  int32_t bootstrap_room_step = 1;        // to the room of the next choice

  std::string custom_logit_processor;  // as the client sent it
  std::string custom_params;           // JSON
  std::string extra_key;               // separates prefixes in the cache
  std::string cache_salt;              // likewise

  // In place of token ids: rows of `embedding_size` floats.
  std::vector<float> input_embeddings;
  int32_t embedding_size = 0;
  std::shared_ptr<const RequestMedia> media;  // null: none
};

// Adds them to those that `extras`, which may be null, has. None leave it as it is.
inline void AddMedia(std::vector<MediaItem> items, std::shared_ptr<const RequestExtras>* extras) {
  if (items.empty()) return;
  auto made = *extras == nullptr ? std::make_shared<RequestExtras>()
                                 : std::make_shared<RequestExtras>(**extras);
  auto media = made->media == nullptr ? std::make_shared<RequestMedia>()
                                      : std::make_shared<RequestMedia>(*made->media);
  for (MediaItem& item : items) media->items.push_back(std::move(item));
  made->media = std::move(media);
  *extras = std::move(made);
}

}  // namespace portico
