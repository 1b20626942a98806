#include "api/openai/audio/speech/decode_speech.h"

#include <fmt/format.h>

#include <optional>

#include "api/common/field_reader.h"
#include "api/openai/audio/chat_stage_fields.h"
#include "text/json_element.h"

namespace portico::api::openai {
namespace {

struct Draft {
  std::string input;
  bool has_input = false;
  std::string model;
  std::string voice;
  std::string response_format = "wav";
  std::optional<float> speed;
  std::optional<int32_t> sample_rate;
  bool stream = false;
  std::string stream_format;
  std::string request_id;
  Json stage_params;
  Json sampling;
  Json voice_fields;
  std::string language;
  std::string instructions;
  std::string user;
};

Status ReadInput(std::string_view name, Element value, Draft* draft) {
  draft->has_input = true;
  return ReadString(name, value, &draft->input);
}

// A name, or OpenAI's object with one.
Status ReadVoice(std::string_view name, Element value, Draft* draft) {
  Element id;
  if (value.is_object() && !value["id"].get(id)) value = id;
  return ReadString(name, value, &draft->voice);
}

Status ReadSpeed(std::string_view name, Element value, Draft* draft) {
  constexpr NumberRange kSpeed{0.25, 4.0, false, "a number in 0.25..4"};
  return ReadNumber(name, value, kSpeed, &draft->speed);
}

Status ReadRate(std::string_view name, Element value, Draft* draft) {
  return ReadInt32(name, value, {kMinSpeechRate, kMaxSpeechRate}, &draft->sample_rate);
}

Status ReadStageParams(std::string_view name, Element value, Draft* draft) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  draft->stage_params = JsonOf(value);
  return OkStatus();
}

Status ReadSpeechSampling(std::string_view name, Element value, Draft* draft) {
  Json number = JsonOf(value);
  PORTICO_RETURN_IF_ERROR(CheckSamplingNumber(name, name, number));
  if (draft->sampling.is_null()) draft->sampling = Json(JsonObject{});
  draft->sampling.Set(name, std::move(number));
  return OkStatus();
}

// Of kSpeechFields; ReadVoiceFields() reads them when the voice is known.
Status KeepVoiceField(std::string_view name, Element value, Draft* draft) {
  if (draft->voice_fields.is_null()) draft->voice_fields = Json(JsonObject{});
  draft->voice_fields.Set(name, JsonOf(value));
  return OkStatus();
}

Status Refuse(std::string_view name, Element, Draft*) {
  return InvalidArgument(name, fmt::format("{}: no stage of this pipeline supports it", name));
}

constexpr FieldReader<Draft> kSpeech[] = {
    {"duration_tokens", KeepVoiceField},
    {"initial_codec_chunk_frames", KeepVoiceField},
    {"input", ReadInput},
    {"instructions", ReadText<Draft, &Draft::instructions>},
    {"language", ReadText<Draft, &Draft::language>},
    {"max_new_tokens", ReadSpeechSampling},
    {"min_p", ReadSpeechSampling},
    {"model", ReadText<Draft, &Draft::model>},
    {"ref_audio", KeepVoiceField},
    {"ref_text", KeepVoiceField},
    {"references", KeepVoiceField},
    {"repetition_penalty", ReadSpeechSampling},
    {"request_id", ReadName<Draft, &Draft::request_id>},
    {"response_format", ReadText<Draft, &Draft::response_format>},
    {"sample_rate", ReadRate},
    {"seed", ReadSpeechSampling},
    {"speaker", ReadVoice},
    {"speed", ReadSpeed},
    {"stage_params", ReadStageParams},
    {"stage_sampling", Refuse},
    {"stream", ReadFlag<Draft, &Draft::stream>},
    {"stream_format", ReadText<Draft, &Draft::stream_format>},
    {"task_type", KeepVoiceField},
    {"temperature", ReadSpeechSampling},
    {"token_count", KeepVoiceField},
    {"top_k", ReadSpeechSampling},
    {"top_p", ReadSpeechSampling},
    {"user", ReadText<Draft, &Draft::user>},
    {"voice", ReadVoice},
    {"x_vector_only_mode", KeepVoiceField},
};
static_assert(IsSortedByName(kSpeech));

}  // namespace

StatusOr<media::AudioFormat> ReadFormat(std::string_view field, const std::string& name) {
  const auto format = media::ParseAudioFormat(name);
  if (!format) {
    return InvalidArgument(field, fmt::format("{} must be wav, pcm, mp3, opus, flac or aac, got "
                                              "\"{}\"",
                                              field, name.substr(0, 64)));
  }
  if (const Status can = media::CanEncode(*format); !can.ok()) {
    return Error(can.code(), std::string(MessageOf(can)), field, ReasonOf(can));
  }
  return *format;
}

StatusOr<SpeechRequest> DecodeSpeech(const std::string& body, simdjson::dom::parser& parser,
                                     const pipeline::Pipeline& pipeline, std::string_view accept) {
  Draft draft;
  PORTICO_RETURN_IF_ERROR(
      ReadBody(body, parser, kSpeech, &draft, [](auto, auto) { return OkStatus(); }));
  if (!draft.has_input) return InvalidArgument("input", "input is required");
  if (draft.input.find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidArgument("input", "input must not be empty");
  }
  if (draft.input.size() > kMaxSpeechBytes) {
    return InvalidArgument("input", fmt::format("input has {} bytes; at most {} are spoken",
                                                draft.input.size(), kMaxSpeechBytes));
  }
  SpeechRequest speech;
  speech.model = draft.model;
  pipeline::Request& request = speech.request;
  request.task = pipeline::Task::kSpeech;
  request.id = draft.request_id;
  request.wants_audio = true;
  request.inputs.emplace_back(pipeline::TextPart{std::move(draft.input)});
  request.stage_params = std::move(draft.stage_params);
  request.sampling = std::move(draft.sampling);
  request.language = std::move(draft.language);
  request.instructions = std::move(draft.instructions);
  PORTICO_RETURN_IF_ERROR(pipeline.SetVoice(draft.voice, &request));
  PORTICO_RETURN_IF_ERROR(ReadVoiceFields(pipeline, draft.voice_fields, &request, &speech.sounds));
  PORTICO_ASSIGN_OR_RETURN(request.speech.format,
                           ReadFormat("response_format", draft.response_format));
  request.speech.speed = draft.speed.value_or(1.0F);
  request.speech.sample_rate =
      draft.sample_rate.value_or(request.speech.format == media::AudioFormat::kPcm ? kPcmRate : 0);
  if (draft.stream_format == "sse") {
    speech.events = true;
  } else if (draft.stream_format.empty()) {
    const bool bytes = accept.find("audio/") != std::string_view::npos ||
                       accept.find("application/octet-stream") != std::string_view::npos;
    speech.chunks = draft.stream && !bytes;
  } else if (draft.stream_format != "audio") {
    return InvalidArgument("stream_format",
                           fmt::format("stream_format must be \"audio\" or \"sse\", got \"{}\"",
                                       draft.stream_format.substr(0, 64)));
  }
  return speech;
}

}  // namespace portico::api::openai
