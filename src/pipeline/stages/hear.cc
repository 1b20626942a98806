// portico.hear: sound → what is said, by PocketSphinx in this process.
//
// Speech is cut at silences into stretches of at most 12 s, each an utterance of its own, so that
// long audio takes no more memory than short and what is heard comes while the rest is heard. A
// request that ends leaves the recognizer within some 50 ms of its work. A recognizer is
// loaded by the first request that finds none idle, so that a server that hears nobody starts at
// once and takes no memory for it.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_join.h"
#include "base/mutex.h"
#include "media/voice_activity.h"
#include "pipeline/speech/jsgf_bounds.h"
#include "pipeline/speech/recognizer.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/manner.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

constexpr double kMaxUtterance = 12;  // seconds

// The recognizers that no request has now. Thread safe.
class RecognizerPool {
 public:
  StatusOr<std::unique_ptr<Recognizer>> Take() {
    {
      const MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        auto recognizer = std::move(idle_.back());
        idle_.pop_back();
        return recognizer;
      }
    }
    return Recognizer::Load();
  }
  void Give(std::unique_ptr<Recognizer> recognizer) {
    const MutexLock lock(&mutex_);
    idle_.push_back(std::move(recognizer));
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Recognizer>> idle_ ABSL_GUARDED_BY(mutex_);
};

class HearRun final : public StageRun {
 public:
  HearRun(std::shared_ptr<const Request> request, std::shared_ptr<StageOutput> output,
          RecognizerPool* pool, std::string grammar)
      : request_(std::move(request)),
        output_(std::move(output)),
        pool_(pool),
        grammar_(std::move(grammar)) {}
  ~HearRun() override {
    if (recognizer_ != nullptr && recognizer_->usable()) pool_->Give(std::move(recognizer_));
  }

  Status OnPart(Part part, std::string_view) override {
    auto* audio = std::get_if<AudioPart>(&part);
    if (audio == nullptr) {
      output_->Emit(std::move(part));
      return OkStatus();
    }
    if (audio->sample_rate != Recognizer::kSampleRate) {
      return Error(StatusCode::kInternal, "the recognizer needs sound at 16000 samples a second");
    }
    sound_.sample_rate = audio->sample_rate;
    sound_.samples.insert(sound_.samples.end(), audio->samples.begin(), audio->samples.end());
    if (!audio->last && sound_.seconds() < 3 * kMaxUtterance) return OkStatus();
    PORTICO_RETURN_IF_ERROR(Hear(audio->clip, audio->last));
    if (!audio->last) return OkStatus();
    output_->Emit(ClipEndPart{audio->clip, offset_});
    offset_ = 0;
    return OkStatus();
  }

  void OnInputEnd() override { output_->End(OkStatus()); }
  bool loading() const override { return loading_; }

 private:
  // Hears what has gathered; unless it is the clip's end, the last stretch waits for more.
  Status Hear(int32_t clip, bool last) {
    std::vector<media::Stretch> stretches = media::SpeechStretches(sound_, kMaxUtterance);
    auto done = static_cast<int64_t>(sound_.samples.size());
    if (!last && !stretches.empty()) {
      done = stretches.back().begin;
      stretches.pop_back();
    }
    for (const media::Stretch& stretch : stretches) {
      PORTICO_RETURN_IF_ERROR(HearStretch(clip, stretch));
      if (output_->aborted()) return OkStatus();
    }
    offset_ += static_cast<double>(done) / Recognizer::kSampleRate;
    sound_.samples.erase(sound_.samples.begin(), sound_.samples.begin() + done);
    return OkStatus();
  }

  Status HearStretch(int32_t clip, const media::Stretch& stretch) {
    if (recognizer_ == nullptr) {
      loading_ = true;
      auto taken = pool_->Take();
      loading_ = false;
      PORTICO_ASSIGN_OR_RETURN(recognizer_, std::move(taken));
      PORTICO_RETURN_IF_ERROR(recognizer_->SetGrammar(grammar_));
    }
    const auto samples = media::SampleSpan(sound_.samples)
                             .subspan(static_cast<size_t>(stretch.begin),
                                      static_cast<size_t>(stretch.end - stretch.begin));
    PORTICO_ASSIGN_OR_RETURN(Heard heard,
                             recognizer_->Hear(samples, [this] { return output_->aborted(); }));
    if (heard.words.empty()) return OkStatus();
    const double begin = offset_ + static_cast<double>(stretch.begin) / Recognizer::kSampleRate;
    HeardPart part;
    part.clip = clip;
    std::vector<std::string> words;
    for (const HeardWord& word : heard.words) {
      words.push_back(word.word);
      part.words.push_back({word.word, begin + word.begin, begin + word.end});
    }
    part.text = absl::StrJoin(words, " ");
    part.begin = part.words.front().begin;
    part.end = part.words.back().end;
    output_->Emit(std::move(part));
    return OkStatus();
  }

  const std::shared_ptr<const Request> request_;
  const std::shared_ptr<StageOutput> output_;
  RecognizerPool* const pool_;
  const std::string grammar_;
  std::unique_ptr<Recognizer> recognizer_;
  std::atomic<bool> loading_{false};
  media::Sound sound_;
  double offset_ = 0;  // seconds of the clip before sound_
};

// The model's language is English, and nothing can be told to it beforehand.
Status CheckSpoken(const Request& request) {
  if (!request.language.empty() && !IsEnglish(request.language)) {
    return InvalidArgument("language", "language: this pipeline recognizes English only");
  }
  if (request.translate) {
    return InvalidArgument("model",
                           "no stage of this pipeline translates; /v1/audio/transcriptions returns "
                           "the text in the language of the audio");
  }
  if (request.instructions.empty()) return OkStatus();
  return InvalidArgument("prompt", "prompt: no stage of this pipeline supports it");
}

class HearStage final : public Stage {
 public:
  HearStage(std::string name, int recognizers)
      : name_(std::move(name)), recognizers_(recognizers) {}

  Status Ready() const override { return Recognizer::Installed(); }
  int max_running() const override { return recognizers_; }
  bool own_threads() const override { return true; }

  bool TakesParam(std::string_view name) const override { return name == "grammar"; }
  bool Answers(Task task) const override { return task == Task::kTranscription; }

  Status Check(const Request& request) const override {
    if (request.task == Task::kTranscription) PORTICO_RETURN_IF_ERROR(CheckSpoken(request));
    const Json* grammar = request.Param(name_, "grammar");
    if (grammar == nullptr) return OkStatus();
    if (!grammar->is_string()) {
      return InvalidArgument("stage_params", "the grammar must be a text in JSGF");
    }
    if (grammar->as_string().empty()) return OkStatus();
    return BoundedJsgf(grammar->as_string()).status();
  }

  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    const Json* grammar = request->Param(name_, "grammar");
    std::string jsgf = grammar == nullptr ? "" : grammar->as_string();
    return std::make_unique<HearRun>(std::move(request), std::move(output), &pool_,
                                     std::move(jsgf));
  }

 private:
  const std::string name_;
  const int recognizers_;
  RecognizerPool pool_;
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeHear(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"recognizers"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  double recognizers = 2;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "recognizers", 1, 64, &recognizers));
  return std::unique_ptr<Stage>(
      std::make_unique<HearStage>(config.name, static_cast<int>(recognizers)));
}

}  // namespace portico::pipeline
