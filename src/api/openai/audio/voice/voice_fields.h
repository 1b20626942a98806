// The fields of a speech that voices take which imitate others (pipeline::kSpeechFields).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/request.h"
#include "service/upstream/media_rules.h"
#include "text/json.h"

namespace portico::api::openai {

// The sound of a reference, which must be loaded before the request runs (reference_load.h).
struct WantedSound {
  std::string field;  // of the body
  std::string place;  // "references[0].audio_path"
  std::optional<MediaUrl> url;
  std::shared_ptr<const std::string> file;  // its bytes, where there is no url
};

inline constexpr size_t kMostReferences = 4;
inline constexpr size_t kMaxReferenceText = 4096;

// Reads the members of `given` into the request, which has its voice already: it gets a reference
// without sound for each of `wanted`. INVALID_ARGUMENT names the field, also where no stage takes it.
Status ReadVoiceFields(const pipeline::Pipeline& pipeline, const Json& given,
                       pipeline::Request* request, std::vector<WantedSound>* wanted);

}  // namespace portico::api::openai
