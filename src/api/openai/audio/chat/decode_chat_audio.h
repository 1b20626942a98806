// Chat requests that are heard or answered aloud.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/request.h"
#include "service/upstream/media_rules.h"

namespace portico::api::openai {

// False if the body can be none of these: it has no field or part that is for a pipeline, and no request_id,
// which a chat of text alone may have too.
bool MayHaveAudio(std::string_view body);

// Media that must be fetched before the request runs: the bytes of request.inputs[input].
struct WantedMedia {
  size_t input = 0;
  std::string field;
  std::string place;  // "audios[0]"
  MediaUrl url;
};

struct AudioChat {
  pipeline::Request request;  // its `chat` is null where a served model shall answer alone
  std::string text_body;      // the body for that model
  std::vector<WantedMedia> media;
  std::string clip_field;  // the body's field with the sounds: "messages", or "audios" alone
};

// What the pipeline's file and the command line allow.
MediaRules MediaRulesOf(const pipeline::Pipeline& pipeline);

// Takes modalities, audio, audios, fields of single stages and parts of sound out of the body; the
// rest is a chat as any other (api/openai/chat/decode_chat.h). `has_models`: models are served beside the pipeline;
// a chat of text alone is theirs unless it names the pipeline. Answers with sound that come back are looked up in the
// pipeline's transcripts. Errors name the field. Any thread.
StatusOr<AudioChat> DecodeAudioChat(const std::string& body, simdjson::dom::parser& parser,
                                    const pipeline::Pipeline& pipeline, bool has_models);

}  // namespace portico::api::openai
