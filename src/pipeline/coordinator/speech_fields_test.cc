// Fields of a speech that only some stages take, and voices that are uploaded for these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "pipeline/coordinator/pipeline.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

using ::testing::HasSubstr;

// Takes sounds, and the text of a sound where its factory says so.
class ImitatingStage final : public Stage {
 public:
  explicit ImitatingStage(bool text) : text_(text) {}
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput>) override {
    return nullptr;
  }
  bool TakesSpeechField(std::string_view field) const override {
    return field == "ref_audio" || field == "task_type" || (text_ && field == "ref_text");
  }

 private:
  const bool text_;
};

std::unique_ptr<Pipeline> StartImitating(const std::string& stages, Registry& registry) {
  Pipeline::Kinds kinds = NativeStages();
  kinds["imitate"] = [](const StageConfig& config) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(
        std::make_unique<ImitatingStage>(config.factory.GetBool("text", true)));
  };
  auto config = ParsePipelineConfig("stages:\n" + stages, "p", {});
  EXPECT_TRUE(config.ok()) << config.status();
  auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", &registry);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

Request SpeechWith(VoiceReference reference) {
  Request request;
  request.task = Task::kSpeech;
  request.wants_audio = true;
  request.references.push_back(std::move(reference));
  return request;
}

TEST(SpeechFields, AreRefusedWhereNoStageTakesThem) {
  Registry registry;
  const auto pipeline =
      StartImitating(" - {name: a, factory_path: portico.pass, terminal: true}\n", registry);
  EXPECT_FALSE(pipeline->TakesSpeechField(Task::kSpeech, "ref_audio"));
  EXPECT_EQ(FieldOf(pipeline->Check(SpeechWith({"ref_audio", "", nullptr}))), "ref_audio");
  Request request;
  request.speech_fields = *Json::Parse(R"({"task_type":"Base"})");
  EXPECT_EQ(FieldOf(pipeline->Check(request)), "task_type");
}

TEST(SpeechFields, AreTakenEachForItself) {
  Registry registry;
  const auto pipeline = StartImitating(
      " - {name: a, factory_path: imitate, factory: {text: false}, terminal: true}\n", registry);
  EXPECT_TRUE(pipeline->Check(SpeechWith({"ref_audio", "", nullptr})).ok());
  EXPECT_EQ(FieldOf(pipeline->Check(SpeechWith({"ref_audio", "hello", nullptr}))), "ref_text");
  EXPECT_EQ(FieldOf(pipeline->Check(SpeechWith({"references", "", nullptr}))), "references");
  Request request;
  request.speech_fields = *Json::Parse(R"({"task_type":"Base","token_count":5})");
  EXPECT_EQ(FieldOf(pipeline->Check(request)), "token_count");
}

TEST(SpeechFields, CountOnlyStagesThatTheRequestReaches) {
  Registry registry;
  const auto pipeline = StartImitating(
      " - {name: first, factory_path: portico.pass, stream_to: [say, think], "
      "route_fn: portico.first_by_task}\n"
      " - {name: say, factory_path: portico.pass, terminal: true}\n"
      " - {name: think, factory_path: imitate, terminal: true}\n",
      registry);
  const Status speech = pipeline->Check(SpeechWith({"ref_audio", "", nullptr}));
  EXPECT_EQ(FieldOf(speech), "ref_audio");
  EXPECT_THAT(MessageOf(speech), HasSubstr("supports it"));
  Request chat = SpeechWith({"audio", "", nullptr});
  chat.task = Task::kChat;
  EXPECT_TRUE(pipeline->Check(chat).ok());
}

TEST(SpeechFields, AnUploadedVoiceIsAReference) {
  Registry registry;
  const auto pipeline =
      StartImitating(" - {name: a, factory_path: imitate, terminal: true}\n", registry);
  UploadedVoice voice;
  voice.name = "anna";
  voice.ref_text = "hello";
  voice.sound = std::make_shared<const ReferenceSound>(media::Sound());
  ASSERT_TRUE(pipeline->voice_store().Add(voice).ok());
  EXPECT_EQ(pipeline->Voices(), std::vector<std::string>{"anna"});
  Request request;
  ASSERT_TRUE(pipeline->SetVoice("anna", &request).ok());
  EXPECT_EQ(request.speech.voice, "anna");
  ASSERT_EQ(request.references.size(), 1U);
  EXPECT_EQ(request.references[0].text, "hello");
  EXPECT_EQ(request.references[0].sound, voice.sound);
  EXPECT_EQ(request.speech_fields.GetString("task_type"), "Base");
  EXPECT_TRUE(pipeline->Check(request).ok());
  ASSERT_TRUE(pipeline->voice_store().Remove("anna"));
  Request later;
  EXPECT_EQ(FieldOf(pipeline->SetVoice("anna", &later)), "voice");
}

}  // namespace
}  // namespace portico::pipeline
