#include "api/openai/realtime/beta_events.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "text/json.h"

namespace portico::api::openai {
namespace {

Json SessionFromBeta(std::string_view session) {
  Json event(JsonObject{{"type", "session.update"}});
  event.Set("session", *Json::Parse(session));
  return *FromBeta(std::move(event)).Find("session");
}

TEST(BetaEvents, FieldsOfTheBetaComeToTheirPlacesInTheSound) {
  EXPECT_EQ(SessionFromBeta(R"({"voice": "echo", "input_audio_format": "g711_ulaw"})"),
            *Json::Parse(R"({"audio": {"output": {"voice": "echo"},
                                       "input": {"format": {"type": "audio/pcmu"}}}})"));
}

// A client that mixed both forms ended the server: a member was set in what is no object.
TEST(BetaEvents, WhatIsNoObjectInThePlaceOfTheSoundIsLeftToBeRefused) {
  EXPECT_EQ(SessionFromBeta(R"({"audio": 5, "voice": "echo"})"), *Json::Parse(R"({"audio": 5})"));
  EXPECT_EQ(SessionFromBeta(R"({"audio": {"input": "pcm"}, "turn_detection": null})"),
            *Json::Parse(R"({"audio": {"input": "pcm"}})"));
  EXPECT_EQ(SessionFromBeta(R"({"voice": "echo", "audio": []})"), *Json::Parse(R"({"audio": []})"));
}

}  // namespace
}  // namespace portico::api::openai
