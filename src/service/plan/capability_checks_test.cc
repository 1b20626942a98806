#include "service/plan/capability_checks.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace portico {
namespace {

EngineInfo Engine() {
  EngineInfo info;
  info.name = "plain";
  return info;
}

std::string Refused(const EngineInfo& engine, const std::function<void(RequestExtras*)>& set) {
  RequestExtras extras;
  set(&extras);
  return FieldOf(CheckCapabilities(engine, nullptr, &extras, 0));
}

void AddImage(RequestExtras* extras) {
  auto media = std::make_shared<RequestMedia>();
  MediaItem& item = media->items.emplace_back();
  item.field = "image_data";
  item.place = "image_data[0]";
  extras->media = std::move(media);
}

TEST(CheckCapabilities, PlainRequestsPassEverywhere) {
  EXPECT_TRUE(CheckCapabilities(Engine(), nullptr, nullptr, 0).ok());
  const RequestExtras none;
  EXPECT_TRUE(CheckCapabilities(Engine(), nullptr, &none, 0).ok());
}

TEST(CheckCapabilities, WhatTheEngineLacksIsNamed) {
  EXPECT_EQ(Refused(Engine(), [](auto* e) { e->lora_path = "a"; }), "lora_path");
  EXPECT_EQ(Refused(Engine(), [](auto* e) { e->session.emplace(); }), "session_params");
  EXPECT_EQ(Refused(Engine(), [](auto* e) { e->return_hidden_states = true; }),
            "return_hidden_states");
  EXPECT_EQ(Refused(Engine(), [](auto* e) { e->bootstrap_room = 1; }), "bootstrap_room");
  EXPECT_EQ(Refused(Engine(), AddImage), "image_data");
  EXPECT_EQ(FieldOf(CheckCapabilities(Engine(), nullptr, nullptr, 1)), "priority");
}

TEST(CheckCapabilities, WhatTheEngineCanPasses) {
  EngineInfo engine = Engine();
  engine.can.lora = engine.can.sessions = true;
  engine.can.media = {true, false, false};
  EXPECT_EQ(Refused(engine, AddImage), "");
  EXPECT_EQ(Refused(engine, [](auto* e) { e->lora_path = "a"; }), "");
  EXPECT_EQ(Refused(engine, [](auto* e) { e->session.emplace(); }), "");
  EXPECT_EQ(Refused(engine, [](auto* e) { e->return_hidden_states = true; }),
            "return_hidden_states");
}

TEST(CheckCapabilities, MediaOfAKindThatIsNotTakenNameTheirPlaceAndTheReason) {
  RequestMedia media;
  media.items.resize(2);
  media.items[0].field = "image_data";
  media.items[0].place = "image_data[0]";
  media.items[1].kind = MediaKind::kAudio;
  media.items[1].field = "audio_data";
  media.items[1].place = "audio_data[0]";
  EngineInfo engine = Engine();
  engine.no_media[static_cast<size_t>(MediaKind::kAudio)] = "no decoder is there";
  Status refused = CheckMedia(engine, &media);
  EXPECT_EQ(FieldOf(refused), "image_data");
  EXPECT_EQ(MessageOf(refused), "image_data[0] is an image, but this model takes text only");
  engine.can.media = {true, false, false};
  refused = CheckMedia(engine, &media);
  EXPECT_EQ(FieldOf(refused), "audio_data");
  EXPECT_EQ(MessageOf(refused),
            "audio_data[0] is audio, which this model's engine does not take: no decoder is there");
  engine.can.media = {true, false, true};
  EXPECT_TRUE(CheckMedia(engine, &media).ok());
}

TEST(CheckCapabilities, RanksAreCountedFromZero) {
  EngineInfo engine = Engine();
  EXPECT_EQ(Refused(engine, [](auto* e) { e->data_parallel_rank = 0; }), "");
  EXPECT_EQ(Refused(engine, [](auto* e) { e->data_parallel_rank = 1; }), "data_parallel_rank");
  EXPECT_EQ(Refused(engine, [](auto* e) { e->data_parallel_rank = -1; }), "data_parallel_rank");
  engine.can.data_parallel_ranks = 2;
  EXPECT_EQ(Refused(engine, [](auto* e) { e->data_parallel_rank = 1; }), "");
  const auto by_its_newer_name = [](auto* e) {
    e->data_parallel_rank = 2;
    e->rank_field = "routed_dp_rank";
  };
  EXPECT_EQ(Refused(engine, by_its_newer_name), "routed_dp_rank");
}

// The simulated engine of --mock-kv-cells answered requests for them with 200 and none.
TEST(CheckCapabilities, LogProbabilitiesWantAnEngineThatReportsThem) {
  EngineInfo engine = Engine();
  const Status none = CheckLogprobs(engine, "return_logprob", false);
  EXPECT_EQ(FieldOf(none), "return_logprob");
  EXPECT_EQ(MessageOf(none),
            "return_logprob: this model's engine, plain, reports no log-probabilities");
  engine.can.logprobs = true;
  EXPECT_TRUE(CheckLogprobs(engine, "logprobs", false).ok());
  EXPECT_EQ(MessageOf(CheckLogprobs(engine, "logprobs", true)),
            "logprobs: this model's engine, plain, reports no log-probabilities of prompts");
  engine.can.prompt_logprobs = true;
  EXPECT_TRUE(CheckLogprobs(engine, "logprobs", true).ok());
}

class Compiled final : public CompiledConstraint {};

TEST(CheckCapabilities, AConstraintWantsAnEngineThatMasksAndWhatItCompilesToMask) {
  EngineInfo engine = Engine();
  Constraint constraint;
  constraint.kind = ConstraintKind::kRegex;
  constraint.text = "a+";
  EXPECT_EQ(FieldOf(CheckCapabilities(engine, &constraint, nullptr, 0)), "regex");
  engine.can.grammars = true;
  EXPECT_EQ(FieldOf(CheckCapabilities(engine, &constraint, nullptr, 0)), "regex");
  constraint.compiled = std::make_shared<Compiled>();
  EXPECT_TRUE(CheckCapabilities(engine, &constraint, nullptr, 0).ok());
  constraint.compiled = nullptr;
  engine.can.compiles_grammars = true;
  EXPECT_TRUE(CheckCapabilities(engine, &constraint, nullptr, 0).ok());
}

}  // namespace
}  // namespace portico
