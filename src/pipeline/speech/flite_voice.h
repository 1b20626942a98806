// English voices of flite (CMU, BSD-like), in this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "media/sound.h"

namespace portico::pipeline {

// A voice, loaded once and kept until the process ends. Thread safe: what changes is each
// utterance's own.
class FliteVoice {
 public:
  // "slt", "rms", "awb" or "kal16". INVALID_ARGUMENT (field "voice") for others, UNAVAILABLE naming
  // the Debian package if flite is not installed.
  static StatusOr<const FliteVoice*> Load(std::string_view name);
  static const std::vector<std::string>& Names();

  // Speaks one clause of ASCII text in slices of some 30 ms as they come, on this thread. `speed`
  // is 0.25 to 4 and keeps the pitch. `out` gives false to stop early, which is no error.
  Status Say(const std::string& text, double speed,
             absl::FunctionRef<bool(media::SampleSpan)> out) const;

  int32_t sample_rate() const { return sample_rate_; }

 private:
  FliteVoice() = default;
  static StatusOr<const FliteVoice*> LoadNew(std::string_view name);

  void* voice_ = nullptr;  // cst_voice
  int32_t sample_rate_ = 16000;
};

}  // namespace portico::pipeline
