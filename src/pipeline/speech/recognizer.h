// Speech → English text by PocketSphinx (BSD), in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  // `samples` are at kSampleRate. Blocks for about a third of their length.
  // A whole utterance at once: its features are normalized over all of it, which hears one word in
  // a hundred more than piece by piece, and is the same whatever was heard before.
  virtual StatusOr<Heard> Hear(media::SampleSpan samples) = 0;
};

}  // namespace portico::pipeline
