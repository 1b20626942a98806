// From an engine's requests to frames. All that the scheduler does not check is checked here once more, since what it
// cannot digest ends the whole engine: ids of the vocabulary, lengths, numbers that are none. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/sglang/launch/facts.h"
#include "engine/sglang/wire/codec.h"
#include "message/generate.h"
#include "message/pooling.h"

namespace portico::sglang {

// What a request refers to by its client's names, as the scheduler knows it.
struct WireNames {
  std::string_view rid;
  std::string_view lora_id;  // empty: no adapter
  std::string_view lora_name;
  std::string_view session_rid;  // of the request that is continued; empty: none
};

// What SGLang's processor made of a request's media.
struct MediaInputs {
  std::vector<TokenId>
      ids;              // the prompt with the places of the media; stands in the request's place
  std::string encoded;  // mm_inputs
};

// INVALID_ARGUMENT names the field. FAILED_PRECONDITION: this SGLang has no place for it.
StatusOr<std::string> EncodeRequest(const Codec& codec, const Facts& facts,
                                    const GenerateRequest& request, const WireNames& names,
                                    const MediaInputs* media = nullptr);
StatusOr<std::string> EncodeRequest(const Codec& codec, const Facts& facts,
                                    const PoolingRequest& request, const WireNames& names);

// Whether the choices of a request wait for one that computes the prompt alone, so that they find it in the prefix cache.
// SGLang's own front end sends that before every request with n > 1; here only where the choices can use it: with a
// cache, and the same one for all choices, whose pages hold what they may take of the prompt.
bool WantsPrefix(const Facts& facts, const GenerateRequest& request);
// That one: as the choice itself, ending with the prompt.
StatusOr<std::string> EncodePrefix(const Codec& codec, const Facts& facts,
                                   const GenerateRequest& request, const WireNames& names);

}  // namespace portico::sglang
