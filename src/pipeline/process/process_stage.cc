#include "pipeline/process/process_stage.h"

#include <algorithm>
#include <utility>

namespace portico::pipeline {
namespace {

class ProcessStage final : public Stage {
 public:
  ProcessStage(const StageConfig& config, std::unique_ptr<Stage> local, ProcessGroup* group,
               int replicas)
      : config_(config),
        local_(std::move(local)),
        group_(*group),
        max_running_(group->Facts(config.name).max_running * replicas),
        speech_fields_(group->Facts(config.name).speech_fields) {}

  Status Check(const Request& request) const override {
    if (local_ != nullptr) {
      PORTICO_RETURN_IF_ERROR(local_->Check(request));
    } else if (request.chat != nullptr && !request.chat->chat_template_kwargs.is_null()) {
      return InvalidArgument("chat_template_kwargs",
                             "chat_template_kwargs: stages of Python do not get it");
    }
    return group_.Available(config_.name);
  }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    return group_.NewRun(config_, request, std::move(output));
  }
  int max_running() const override { return max_running_; }
  // A stage of Python decides for itself.
  bool TakesParam(std::string_view name) const override {
    return local_ == nullptr || local_->TakesParam(name);
  }
  bool samples() const override { return local_ == nullptr || local_->samples(); }
  bool calls_tools() const override { return local_ == nullptr || local_->calls_tools(); }
  bool Answers(Task task) const override { return local_ == nullptr || local_->Answers(task); }
  bool translates() const override { return local_ == nullptr || local_->translates(); }
  bool sees_ends() const override { return local_ == nullptr; }
  bool TakesSpeechField(std::string_view field) const override {
    return std::find(speech_fields_.begin(), speech_fields_.end(), field) != speech_fields_.end();
  }
  std::vector<std::string> Voices() const override {
    return local_ != nullptr ? local_->Voices() : group_.Facts(config_.name).voices;
  }

 private:
  const StageConfig& config_;
  const std::unique_ptr<Stage> local_;
  ProcessGroup& group_;
  const int max_running_;
  const std::vector<std::string> speech_fields_;
};

}  // namespace

std::unique_ptr<Stage> NewProcessStage(const StageConfig& config, std::unique_ptr<Stage> local,
                                       ProcessGroup* group, int replicas) {
  return std::make_unique<ProcessStage>(config, std::move(local), group, replicas);
}

}  // namespace portico::pipeline
