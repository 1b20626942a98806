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

}  // namespace
}  // namespace portico::api::openai
