#include "api/openai/chat/chat_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace portico::api::openai {
namespace {

// The messages as templates get them, or "error: …".
std::string Normalized(std::string_view text) {
  auto messages = Json::Parse(text);
  EXPECT_TRUE(messages.ok()) << text;
  Status status = NormalizeMessages(&*messages);
  if (status.ok()) return messages->Dump();
  EXPECT_EQ(FieldOf(status), "messages") << text;
  return "error: " + std::string(MessageOf(status));
}

TEST(ChatMessages, RolesAreKnownInAnyCase) {
  for (const char* role : {"system", "user", "developer", "tool", "latest_reminder", "function"}) {
    std::string expected = std::string(R"([{"role":")") + role + R"(","content":"x"}])";
    EXPECT_EQ(Normalized(expected), expected);
  }
  EXPECT_EQ(Normalized(R"([{"role":"USER","content":"x"}])"), R"([{"role":"user","content":"x"}])");
}

TEST(ChatMessages, WrongShapesAreRefusedWithTheirPlace) {
  struct Case {
    const char* messages;
    const char* place;
  };
  for (const Case& c : {
           Case{"[]", "messages must not be empty"},
           Case{"7", "messages must be a list"},
           Case{"\"hello\"", "messages must be a list"},
           Case{"{}", "messages must be a list"},
           Case{"[7]", "messages[0] must be an object"},
           Case{"[null]", "messages[0] must be an object"},
           Case{R"([{"content":"x"}])", "messages[0].role is required"},
           Case{R"([{"role":null,"content":"x"}])", "messages[0].role is required"},
           Case{R"([{"role":7,"content":"x"}])", "messages[0].role must be a string"},
           Case{R"([{"role":"wizard","content":"x"}])", "messages[0].role"},
           Case{R"([{"role":"user"}])", "messages[0].content is required"},
           Case{R"([{"role":"user","content":null}])", "messages[0].content is required"},
           Case{R"([{"role":"user","content":7}])", "messages[0].content must be a string"},
           Case{R"([{"role":"user","content":{}}])", "messages[0].content"},
           Case{R"([{"role":"user","content":[]}])", "messages[0].content"},
           Case{R"([{"role":"user","content":["x"]}])", "messages[0].content[0]"},
           Case{R"([{"role":"user","content":[{"text":"x"}]}])",
                "messages[0].content[0].type is required"},
           Case{R"([{"role":"user","content":[{"type":"text"}]}])",
                "messages[0].content[0].text is required"},
           Case{R"([{"role":"user","content":[{"type":"text","text":7}]}])",
                "messages[0].content[0].text"},
           Case{R"([{"role":"user","content":[{"type":"refusal","refusal":"x"}]}])",
                "messages[0].content[0].type"},
           Case{R"([{"role":"user","content":[{"type":"odd","odd":"x"}]}])",
                "messages[0].content[0].type"},
           Case{R"([{"role":"user","content":"x"},{"role":"assistant"}])",
                "messages[1].content is required where"},
           Case{R"([{"role":"assistant","content":null,"tool_calls":[]}])", "messages[0].content"},
           Case{R"([{"role":"assistant","tool_calls":7}])", "messages[0].tool_calls"},
           Case{R"([{"role":"assistant","tool_calls":[7]}])", "messages[0].tool_calls[0]"},
           Case{R"([{"role":"assistant","tool_calls":[{"id":"1"}]}])",
                "messages[0].tool_calls[0].function"},
           Case{R"([{"role":"assistant","tool_calls":[{"id":7,"function":{"name":"f"}}]}])",
                "messages[0].tool_calls[0].id"},
           Case{R"([{"role":"assistant","tool_calls":[{"function":{"name":7}}]}])",
                "messages[0].tool_calls[0].function.name"},
           Case{R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}])",
                "messages[0].tool_calls[0].function.arguments"},
           Case{R"([{"role":"assistant","tool_calls":[{"type":"x","function":{"name":"f"}}]}])",
                "messages[0].tool_calls[0].type"},
           Case{R"([{"role":"tool","content":"x","tool_call_id":7}])", "messages[0].tool_call_id"},
           Case{R"([{"role":"user","content":"x","name":7}])", "messages[0].name"},
           Case{R"([{"role":"assistant","content":"x","reasoning_content":7}])",
                "messages[0].reasoning_content"},
       }) {
    EXPECT_EQ(Normalized(c.messages).rfind("error: " + std::string(c.place), 0), 0u)
        << c.messages << " gave " << Normalized(c.messages);
  }
}

TEST(ChatMessages, MediaIsRefusedByAModelOfText) {
  for (const char* type : {"image_url", "video_url", "audio_url", "input_audio", "file"}) {
    std::string got = Normalized(std::string(R"([{"role":"user","content":[{"type":")") + type +
                                 R"(","x":{"url":"data:"}}]}])");
    EXPECT_NE(got.find("text only"), std::string::npos) << got;
  }
}

TEST(ChatMessages, MediaAreTakenOutAndLeaveAMark) {
  const auto taken = [](std::string_view parts) {
    Json messages = *Json::Parse(fmt::format(R"([{{"role":"user","content":[{}]}}])", parts));
    std::vector<MediaItem> media;
    const Status status = NormalizeMessages(&messages, &media);
    if (!status.ok()) return std::string(MessageOf(status));
    std::string all = messages.as_array()[0].Find("content")->Dump();
    for (const MediaItem& item : media) {
      all += fmt::format(" {}={}({})", item.place, item.url, item.detail);
    }
    return all;
  };
  EXPECT_EQ(taken(R"({"type":"text","text":"a"},{"type":"image_url","image_url":"u"},)"
                  R"({"type":"image_url","image_url":{"url":"v","detail":"high"}})"),
            R"([{"type":"text","text":"a"},{"type":"image"},{"type":"image"}])"
            " messages[0].content[1].image_url=u() messages[0].content[2].image_url=v(high)");
  EXPECT_EQ(taken(R"({"type":"audio_url","audio_url":{"url":"u"}},{"type":"text","text":"a"},)"
                  R"({"type":"input_audio","input_audio":{"data":"QUJD","format":"mp3"}})"),
            R"([{"type":"audio"},{"type":"text","text":"a"},{"type":"audio"}])"
            " messages[0].content[0].audio_url=u()"
            " messages[0].content[2].input_audio=data:audio/mpeg;base64,QUJD()");
  EXPECT_EQ(taken(R"({"type":"video_url","video_url":{"url":"u"}})"),
            R"([{"type":"video"}] messages[0].content[0].video_url=u())");
  for (const char* wrong :
       {R"({"type":"image_url"})", R"({"type":"image_url","image_url":{"url":7}})",
        R"({"type":"image_url","image_url":{"url":"u","max_dynamic_patch":2}})",
        R"({"type":"audio_url","audio_url":{"url":"u","detail":"low"}})", R"({"type":"audio_url"})",
        R"({"type":"input_audio","input_audio":"QUJD"})",
        R"({"type":"input_audio","input_audio":{"data":"QUJD"}})",
        R"({"type":"input_audio","input_audio":{"data":"QUJD","format":"ogg"}})",
        R"({"type":"input_audio","input_audio":{"data":7,"format":"wav"}})",
        R"({"type":"video_url","video_url":{"url":"u","fps":2}})", R"({"type":"image"})"}) {
    EXPECT_TRUE(taken(wrong).starts_with("messages[0].content[0]")) << taken(wrong);
  }
}

TEST(ChatMessages, PartsStayAListAndEmptyTextIsText) {
  const char* parts =
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}])";
  EXPECT_EQ(Normalized(parts), parts);
  const char* empty = R"([{"role":"user","content":""}])";
  EXPECT_EQ(Normalized(empty), empty);
}

TEST(ChatMessages, NullMembersAreLeftOut) {
  EXPECT_EQ(Normalized(R"([{"role":"assistant","content":"x","tool_calls":null,"refusal":null,
                            "audio":null,"function_call":null,"extra":1}])"),
            R"([{"role":"assistant","content":"x","extra":1}])");
}

TEST(ChatMessages, AnAssistantThatOnlyCallsToolsHasNullContent) {
  for (const char* content : {"", R"("content":null,)", R"("content":[],)"}) {
    const std::string got = Normalized(
        std::string(R"([{"role":"assistant",)") + content +
        R"("tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}])");
    const auto message = Json::Parse(got);
    ASSERT_TRUE(message.ok()) << got;
    EXPECT_TRUE(message->as_array()[0].Find("content")->is_null()) << got;
  }
}

TEST(ChatMessages, ArgumentsStayAsTheyWereSent) {
  auto arguments = [](const std::string& sent) {
    std::string got =
        Normalized(R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f")" +
                   (sent.empty() ? "" : ",\"arguments\":" + sent) + "}}]}]");
    auto parsed = Json::Parse(got);
    if (!parsed.ok()) return got;
    const Json& call = parsed->as_array()[0].Find("tool_calls")->as_array()[0];
    const Json* found = call.Find("function")->Find("arguments");
    return found == nullptr ? std::string() : found->Dump();
  };
  for (const char* same :
       {R"("{\"a\": [1, \"é\"]}")", R"({"a":1})", R"("{\"a\": ")", R"("")", ""}) {
    EXPECT_EQ(arguments(same), same);
  }
  EXPECT_EQ(arguments("null"), "");
}

TEST(ChatMessages, RefusalsAndThinkingOfAssistantsFindTheirPlace) {
  EXPECT_EQ(
      Normalized(R"([{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},
      {"type":"text","text":"a"},{"type":"refusal","refusal":"no"}]}])"),
      R"([{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"no"}],"reasoning_content":"hm"}])");
  EXPECT_EQ(Normalized(R"([{"role":"assistant","content":null,"refusal":"no"}])"),
            R"([{"role":"assistant","content":"no","refusal":"no"}])");
  EXPECT_EQ(Normalized(R"([{"role":"assistant","content":[{"type":"reasoning","text":"hm"}]}])"),
            R"([{"role":"assistant","content":"","reasoning_content":"hm"}])");
}

TEST(ChatMessages, MediaAreCountedAsTheyAreRead) {
  const Json part(JsonObject{{"type", "image_url"}, {"image_url", "x"}});
  const auto read = [&part](size_t count) {
    Json messages(
        JsonArray{Json(JsonObject{{"role", "user"}, {"content", Json(JsonArray(count, part))}})});
    std::vector<MediaItem> media;
    return NormalizeMessages(&messages, &media);
  };
  EXPECT_TRUE(read(3072).ok());
  EXPECT_EQ(FieldOf(read(3073)), "messages");
}

}  // namespace
}  // namespace portico::api::openai
