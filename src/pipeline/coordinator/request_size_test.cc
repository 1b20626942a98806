#include "pipeline/coordinator/request_size.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace portico::pipeline {
namespace {

Request ChatOf(Json messages) {
  auto chat = std::make_shared<ChatRequest>();
  chat->messages = std::move(messages);
  Request request;
  request.chat = std::move(chat);
  return request;
}

TEST(RequestSize, CountsTheTextOfAllThatIsSent) {
  const Json text(std::string(kShortBytes / 2, 'x'));
  EXPECT_TRUE(IsShort(Request()));
  EXPECT_TRUE(IsShort(ChatOf(Json(JsonArray{text}))));
  EXPECT_FALSE(IsShort(ChatOf(Json(JsonArray{text, text}))));
  EXPECT_FALSE(IsShort(ChatOf(Json(JsonObject{{"a", text}, {"b", text}}))));
  Request both = ChatOf(text);
  both.stage_params = Json(JsonObject{{"a", text}});
  EXPECT_FALSE(IsShort(both));
  Request spoken;
  spoken.instructions.assign(kShortBytes, 'x');
  EXPECT_FALSE(IsShort(spoken));
}

TEST(RequestSize, CountsManySmallValues) {
  EXPECT_FALSE(IsShort(ChatOf(Json(JsonArray(kShortBytes / 2, Json(JsonArray{}))))));
}

TEST(RequestSize, IsLongWhereThereIsAVoiceToImitate) {
  Request request;
  request.references.emplace_back();
  EXPECT_FALSE(IsShort(request));
}

}  // namespace
}  // namespace portico::pipeline
