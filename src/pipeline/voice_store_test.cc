#include "pipeline/voice_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace portico::pipeline {
namespace {

using ::testing::HasSubstr;

UploadedVoice VoiceOf(std::string name, size_t samples = 100) {
  UploadedVoice voice;
  voice.name = std::move(name);
  media::Sound sound;
  sound.samples.resize(samples, 1);
  voice.sound = std::make_shared<const ReferenceSound>(std::move(sound));
  return voice;
}

TEST(VoiceStore, KeepsVoicesUntilTheyAreRemoved) {
  Registry registry;
  VoiceStore store(&registry);
  EXPECT_TRUE(store.Add(VoiceOf("b")).ok());
  EXPECT_TRUE(store.Add(VoiceOf("a")).ok());
  ASSERT_EQ(store.All().size(), 2U);
  EXPECT_EQ(store.All()[0]->name, "a");
  ASSERT_NE(store.Find("b"), nullptr);
  EXPECT_EQ(store.Find("b")->sound->samples.size(), 100U);
  const auto used = store.Find("b");
  EXPECT_TRUE(store.Remove("b"));
  EXPECT_FALSE(store.Remove("b"));
  EXPECT_EQ(store.Find("b"), nullptr);
  EXPECT_EQ(used->name, "b");  // who speaks with it goes on
}

TEST(VoiceStore, HasEachNameOnce) {
  Registry registry;
  VoiceStore store(&registry);
  EXPECT_TRUE(store.Add(VoiceOf("a")).ok());
  const Status again = store.Add(VoiceOf("a"));
  EXPECT_EQ(again.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(FieldOf(again), "name");
}

TEST(VoiceStore, RefusesWhatIsNoName) {
  for (const std::string_view name : {"", "a b", "../a", "-a", "a/b", "\xc3\xa4", "a\n"}) {
    EXPECT_EQ(FieldOf(VoiceStore::CheckName(name)), "name") << name;
  }
  EXPECT_FALSE(VoiceStore::CheckName(std::string(65, 'a')).ok());
  EXPECT_TRUE(VoiceStore::CheckName(std::string(64, 'a')).ok());
  EXPECT_TRUE(VoiceStore::CheckName("Anna_2.b-c").ok());
}

TEST(VoiceStore, IsBoundedInVoicesAndInBytes) {
  Registry registry;
  VoiceStore many(&registry);
  for (size_t i = 0; i < VoiceStore::kMostVoices; ++i) {
    ASSERT_TRUE(many.Add(VoiceOf("v" + std::to_string(i))).ok());
  }
  EXPECT_EQ(many.Add(VoiceOf("one-more")).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(many.Remove("v0"));
  EXPECT_TRUE(many.Add(VoiceOf("one-more")).ok());

  VoiceStore large(&registry);
  EXPECT_TRUE(large.Add(VoiceOf("whole", VoiceStore::kMostBytes / 2)).ok());
  const Status full = large.Add(VoiceOf("b"));
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(full), HasSubstr("delete one"));
  EXPECT_TRUE(large.Remove("whole"));
  EXPECT_TRUE(large.Add(VoiceOf("b")).ok());
}

}  // namespace
}  // namespace portico::pipeline
