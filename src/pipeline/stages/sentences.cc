// portico.sentences: text as it comes → clauses that a voice can say.
#include "pipeline/speech/speakable.h"
#include "pipeline/speech/speech_filter.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

class SentencesRun final : public StageRun {
 public:
  SentencesRun(std::shared_ptr<StageOutput> output, bool clauses, bool english, bool is_speech)
      : output_(std::move(output)), splitter_(clauses), english_(english), is_speech_(is_speech) {}

  Status OnPart(Part part, std::string_view) override {
    const auto* text = std::get_if<TextPart>(&part);
    if (text == nullptr) return OkStatus();
    splitter_.Feed(filter_.Feed(text->text));
    return SendWhole();
  }

  void OnInputEnd() override {
    splitter_.Feed(filter_.Finish());
    splitter_.Finish();
    Status status = SendWhole();
    if (status.ok() && said_ == 0 && is_speech_) {
      status = InvalidArgument("input", "the text contains nothing that can be spoken");
    }
    output_->End(std::move(status));
  }

 private:
  Status SendWhole() {
    while (true) {
      std::string clause = splitter_.Next();
      if (clause.empty()) return OkStatus();
      std::string spoken = std::move(clause);
      if (english_) {
        PORTICO_ASSIGN_OR_RETURN(spoken, Speakable(spoken));
      }
      if (spoken.empty()) continue;
      ++said_;
      if (!output_->Emit(TextPart{std::move(spoken)})) return OkStatus();
    }
  }

  const std::shared_ptr<StageOutput> output_;
  SpeechFilter filter_;
  ClauseSplitter splitter_;
  const bool english_;
  const bool is_speech_;
  int said_ = 0;
};

class SentencesStage final : public Stage {
 public:
  SentencesStage(bool clauses, bool english) : clauses_(clauses), english_(english) {}

  // Speech is there as a whole: refuse it before anything is said. A process of its own gets the
  // text only as parts, after the server has checked it here.
  Status Check(const Request& request) const override {
    if (request.task != Task::kSpeech || !english_ || request.inputs.empty()) return OkStatus();
    bool says = false;
    for (const Part& part : request.inputs) {
      const auto* text = std::get_if<TextPart>(&part);
      if (text == nullptr) continue;
      SpeechFilter filter;
      std::string read = filter.Feed(text->text);
      read += filter.Finish();
      PORTICO_ASSIGN_OR_RETURN(const std::string spoken, Speakable(read));
      says = says || !spoken.empty();
    }
    if (says) return OkStatus();
    return InvalidArgument("input", "the text contains nothing that can be spoken");
  }

  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<SentencesRun>(std::move(output), clauses_, english_,
                                          request->task == Task::kSpeech);
  }

 private:
  const bool clauses_;
  const bool english_;
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeSentences(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"split_granularity", "language"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  std::string granularity = "sentence";
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "split_granularity", &granularity));
  if (granularity != "sentence" && granularity != "clause") {
    return Error(StatusCode::kInvalidArgument,
                 "factory.split_granularity must be sentence or clause");
  }
  // "any": the voice behind knows what to do with any text.
  std::string language = "en";
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "language", &language));
  if (language != "en" && language != "any") {
    return Error(StatusCode::kInvalidArgument, "factory.language must be en or any");
  }
  return std::unique_ptr<Stage>(
      std::make_unique<SentencesStage>(granularity == "clause", language == "en"));
}

}  // namespace portico::pipeline
