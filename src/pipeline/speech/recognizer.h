// Speech → English text by PocketSphinx (BSD), in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "media/sound.h"

namespace portico::pipeline {

struct HeardWord {
  std::string word;
  double begin = 0;  // seconds since the utterance began
  double end = 0;
};

struct Heard {
  std::vector<HeardWord> words;
};

// One utterance at a time, one thread at a time. Takes 104 MB.
class Recognizer {
 public:
  static constexpr int32_t kSampleRate = 16000;

  // Loads library and model, some 0.7 s. UNAVAILABLE names the Debian package that is missing.
  static StatusOr<std::unique_ptr<Recognizer>> Load();
  // What Load() would be missing, without the work.
  static Status Installed();

  virtual ~Recognizer() = default;

  // What is said follows this grammar in JSGF, "" for the language model. INVALID_ARGUMENT if it
  // cannot be read.
  virtual Status SetGrammar(const std::string& jsgf) = 0;
  // `samples` are at kSampleRate. Blocks for up to a third of their length. `stop` is asked every 50
  // ms of sound; where it is true, the rest is not heard, and the answer is CANCELLED.
  // The features of an utterance are normalized over all of it, which hears one word in a hundred
  // more than piece by piece, and is the same whatever was heard before.
  virtual StatusOr<Heard> Hear(media::SampleSpan samples, absl::FunctionRef<bool()> stop) = 0;
  // False: after a failure; or Hear() was stopped so late that to end the utterance, which searches all of
  // it once more, would take longer than to load another recognizer.
  virtual bool usable() const = 0;
};

}  // namespace portico::pipeline
