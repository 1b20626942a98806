// The session of /v1/realtime: what session.update sets (OpenAI's GA shape).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "pipeline/coordinator/pipeline.h"
#include "text/json.h"

namespace portico::api::openai {

struct RealtimeConfig {
  enum class Coding { kPcm, kMuLaw, kALaw };
  // Of semantic_vad.
  enum class Eagerness { kAuto, kLow, kMedium, kHigh };

  std::string id;  // "sess_…"
  std::string model;
  bool transcription = false;  // a session that only hears
  bool beta = false;           // the client speaks the beta's events (beta_events.h)
  std::string instructions;
  bool speaks = true;  // output_modalities ["audio"], else ["text"]
  std::optional<int64_t> max_output_tokens;
  std::optional<double> temperature;  // of the beta
  Json tools;                         // as the client gave them, an array; or null
  Json tool_choice = "auto";          // checked
  Coding input = Coding::kPcm;
  Coding output = Coding::kPcm;
  bool transcribes = false;  // tells what it heard
  // Of audio.input.transcription; empty: not told. What hears is the pipeline's, whatever the model.
  std::string heard_model;
  std::string heard_language;
  std::string heard_prompt;
  bool vad = true;
  std::optional<Eagerness> eagerness;  // with semantic_vad
  double threshold = 0.5;
  int32_t prefix_padding_ms = 300;
  int32_t silence_duration_ms = 500;
  int32_t idle_timeout_ms = 0;  // 0: none
  bool create_response = true;
  bool interrupt_response = true;
  std::string voice = "alloy";
  double speed = 1;

  int32_t input_rate() const { return input == Coding::kPcm ? 24000 : 8000; }
  int32_t output_rate() const { return output == Coding::kPcm ? 24000 : 8000; }

  // Turns end where the speaker seems to have finished (turn_end.h), else after the longest pause.
  bool semantic_vad() const { return vad && eagerness; }
  int64_t longest_pause_ms() const;

  // Takes what `session` has; on failure (INVALID_ARGUMENT, the field by its path, which begins with
  // `name`) nothing changes.
  Status Update(const Json& session, const pipeline::Pipeline& pipeline,
                std::string_view name = "session");
  // To hear a file as this session's transcription says.
  pipeline::Request HearingRequest() const;
  // As chat requests have them. `tools` is not null.
  Json ChatTools() const;
  Json ChatToolChoice() const;
  Json ToJson() const;
};

}  // namespace portico::api::openai
