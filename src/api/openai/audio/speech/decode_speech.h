// The body of POST /v1/audio/speech.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/openai/audio/voice/voice_fields.h"
#include "base/status.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/request.h"

namespace portico::api::openai {

struct SpeechRequest {
  pipeline::Request request;
  // Of request.references, one each, to be loaded before it runs; empty where none is missing.
  std::vector<WantedSound> sounds;
  std::string model;
  bool events = false;  // server-sent events of OpenAI's form
  bool chunks = false;  // those of `stream: true` alone
};

// What the bytes of an answer begin with, and what a sample rate may be.
inline constexpr int32_t kMinSpeechRate = 8000;
inline constexpr int32_t kMaxSpeechRate = 48000;
// The rate of raw samples, which nothing tells the client.
inline constexpr int32_t kPcmRate = 24000;
inline constexpr size_t kMaxSpeechBytes = 64 << 10;

// Strict, as all bodies are; errors name the field. `accept` is the header: with `stream: true` it
// chooses between bytes and events.
StatusOr<SpeechRequest> DecodeSpeech(const std::string& body, simdjson::dom::parser& parser,
                                     const pipeline::Pipeline& pipeline, std::string_view accept);

// A name of a format that can be encoded here; the errors that a request with it gets.
StatusOr<media::AudioFormat> ReadFormat(std::string_view field, const std::string& name);

}  // namespace portico::api::openai
