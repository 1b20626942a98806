#include "api/openai/realtime/conversation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace portico::api::openai {
namespace {

RealtimeItem ItemNamed(std::string id, std::string text = "x") {
  RealtimeItem item;
  item.id = std::move(id);
  item.role = "user";
  item.type = "input_text";
  item.text = std::move(text);
  return item;
}

Conversation FullOfItems() {
  Conversation conversation;
  for (size_t i = 0; i < Conversation::kMaxItems; ++i) {
    conversation.Append(ItemNamed(fmt::format("item-{}", i)));
  }
  return conversation;
}

// The new item was itself the first, so it went at once, and telling of it ended the server.
TEST(RealtimeConversation, AnItemThatComesFirstInAFullConversationStays) {
  Conversation conversation = FullOfItems();
  ASSERT_TRUE(conversation.Insert(ItemNamed("new"), "root").ok());
  EXPECT_EQ(conversation.items().size(), Conversation::kMaxItems);
  EXPECT_EQ(conversation.items().front().id, "new");
  EXPECT_EQ(conversation.items()[1].id, "item-1");
}

TEST(RealtimeConversation, AnItemBehindTheOldestOfAFullConversationTakesItsPlace) {
  Conversation conversation = FullOfItems();
  ASSERT_TRUE(conversation.Insert(ItemNamed("new"), "item-0").ok());
  EXPECT_EQ(conversation.items().front().id, "new");
  ASSERT_TRUE(conversation.Insert(ItemNamed("newer"), "item-511").ok());
  EXPECT_EQ(conversation.items().back().id, "newer");
  EXPECT_EQ(conversation.items().size(), Conversation::kMaxItems);
}

TEST(RealtimeConversation, TheOldestGoWhereTheTextsAreTooLong) {
  Conversation conversation;
  const std::string text(Conversation::kMaxBytes / 4, 'x');
  for (int i = 0; i < 6; ++i) conversation.Append(ItemNamed(fmt::format("item-{}", i), text));
  EXPECT_EQ(conversation.items().size(), 4U);
  EXPECT_EQ(conversation.items().front().id, "item-2");
  ASSERT_TRUE(conversation.Insert(ItemNamed("new", text), "item-3").ok());
  EXPECT_EQ(conversation.bytes(), Conversation::kMaxBytes);
  EXPECT_EQ(conversation.items()[1].id, "new");
}

size_t SumOfBytes(const Conversation& conversation) {
  size_t sum = 0;
  for (const RealtimeItem& item : conversation.items()) sum += item.bytes();
  return sum;
}

TEST(RealtimeConversation, AnItemThatGrowsInAFullConversationPushesOutOlderOnes) {
  Conversation conversation;
  conversation.Append(ItemNamed("old", std::string(1000, 'x')));
  conversation.Append(ItemNamed("kept", "y"));
  conversation.Append(ItemNamed("grows", ""));
  conversation.Append(ItemNamed("newer", "z"));
  const RealtimeItem* grown = conversation.Change("grows", [](RealtimeItem& item) {
    item.text = std::string(Conversation::kMaxBytes - 500, 'x');
  });
  ASSERT_NE(grown, nullptr);
  EXPECT_EQ(grown->id, "grows");
  ASSERT_EQ(conversation.items().size(), 3U);
  EXPECT_EQ(conversation.items()[0].id, "kept");
  EXPECT_EQ(conversation.bytes(), SumOfBytes(conversation));
  EXPECT_LE(conversation.bytes(), Conversation::kMaxBytes);
}

// Each item of response.input had the texts of all items before it added up again.
TEST(RealtimeConversation, TheTotalOfTheTextsFollowsEveryChangeOfAnItem) {
  Conversation conversation;
  for (int i = 0; i < 4; ++i)
    conversation.Append(ItemNamed(fmt::format("item-{}", i), "some words"));
  ASSERT_TRUE(conversation.Insert(ItemNamed("first", "one two three"), "root").ok());
  EXPECT_EQ(conversation.bytes(), SumOfBytes(conversation));
  EXPECT_NE(conversation.Change("item-1", [](RealtimeItem& item) { item.text += " more"; }),
            nullptr);
  EXPECT_NE(conversation.Change("item-2", [](RealtimeItem& item) { item.text.clear(); }), nullptr);
  EXPECT_EQ(conversation.Change("absent", [](RealtimeItem& item) { item.text = "x"; }), nullptr);
  EXPECT_EQ(conversation.bytes(), SumOfBytes(conversation));
  EXPECT_TRUE(conversation.Remove("item-0"));
  EXPECT_FALSE(conversation.Remove("item-0"));
  EXPECT_EQ(conversation.bytes(), 38U);
  EXPECT_EQ(conversation.bytes(), SumOfBytes(conversation));
  conversation.Append(ItemNamed("long", std::string(Conversation::kMaxBytes - 12, 'x')));
  EXPECT_EQ(conversation.bytes(), Conversation::kMaxBytes - 2);
  EXPECT_EQ(conversation.bytes(), SumOfBytes(conversation));
}

RealtimeItem Spoken(const std::string& text) {
  RealtimeItem item = ItemNamed("spoken", text);
  item.role = "assistant";
  item.type = "output_audio";
  item.audio_ms = 1000;
  return item;
}

// All of it was forgotten: it has no spaces.
TEST(RealtimeConversation, ATruncatedItemOfALanguageWithoutSpacesKeepsWholeCharacters) {
  Conversation conversation;
  conversation.Append(Spoken("日本の首都は東京です"));
  ASSERT_TRUE(
      Truncate(conversation, conversation.items().front(), *Json::Parse(R"({"audio_end_ms": 480})"))
          .ok());
  EXPECT_EQ(conversation.items().front().text, "日本の首");
}

TEST(RealtimeConversation, ATruncatedItemCountsTheWordsThatItKeeps) {
  Conversation conversation;
  conversation.Append(Spoken("one two three four"));
  const auto end = Truncate(conversation, conversation.items().front(),
                            *Json::Parse(R"({"audio_end_ms": 500})"));
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, 500);
  EXPECT_EQ(conversation.items().front().text, "one two");
  EXPECT_EQ(conversation.bytes(), 7U);
}

RealtimeItem SoundItem(std::string id, std::string role, std::string text) {
  RealtimeItem item = ItemNamed(std::move(id), std::move(text));
  item.type = role == "user" ? "input_audio" : "output_audio";
  item.role = std::move(role);
  return item;
}

// "user: text | assistant: text"
std::string RolesAndTexts(const Conversation& conversation) {
  const Json messages = conversation.Messages("");
  std::string script;
  for (const Json& message : messages.as_array()) {
    if (!script.empty()) script += " | ";
    script += message.GetString("role") + ": " + message.GetString("content");
  }
  return script;
}

// The silence was left out, so that two answers stood side by side, and templates that want the roles to alternate
// refused every later response.
TEST(RealtimeConversation, ASilenceBetweenTwoAnswersIsAMessageOfTheUser) {
  Conversation conversation;
  conversation.Append(SoundItem("1", "user", "Hello."));
  conversation.Append(SoundItem("2", "assistant", "Good morning."));
  conversation.Append(SoundItem("3", "user", ""));
  conversation.Append(SoundItem("4", "assistant", "Are you there?"));
  conversation.Append(SoundItem("5", "user", ""));
  EXPECT_EQ(
      RolesAndTexts(conversation),
      "user: Hello. | assistant: Good morning. | user: (silence) | assistant: Are you there? | "
      "user: (silence)");
}

TEST(RealtimeConversation, ATurnWithoutWordsBesideOneWithWordsIsNoMessage) {
  Conversation conversation;
  conversation.Append(SoundItem("1", "user", ""));
  conversation.Append(SoundItem("2", "user", ""));
  conversation.Append(SoundItem("3", "user", "Hello."));
  conversation.Append(SoundItem("4", "user", ""));
  conversation.Append(SoundItem("5", "assistant", ""));  // it was cancelled before its first word
  conversation.Append(SoundItem("6", "user", ""));
  conversation.Append(SoundItem("7", "assistant", "Good morning."));
  conversation.Append(SoundItem("8", "user", ""));
  RealtimeItem unheard = SoundItem("9", "user", "");
  unheard.unheard = true;
  conversation.Append(std::move(unheard));
  EXPECT_EQ(RolesAndTexts(conversation),
            "user: Hello. | assistant: Good morning. | user: (silence)");
}

}  // namespace
}  // namespace portico::api::openai
