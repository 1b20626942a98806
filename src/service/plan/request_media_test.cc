#include "service/plan/request_media.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace portico {
namespace {

RequestMedia Naming(const std::vector<std::string>& urls) {
  RequestMedia media;
  for (const std::string& url : urls) {
    MediaItem& item = media.items.emplace_back();
    item.field = "image_data";
    item.place = "image_data[0]";
    item.url = url;
  }
  return media;
}

MediaLimits Limits() {
  MediaLimits limits;
  limits.rules.domains = {"example.org"};
  limits.rules.local_folder = "/pictures";
  return limits;
}

TEST(RequestMediaTest, WhatComesAlongIsDecodedAndTheRestNeedsAFetch) {
  // The base64 of a JPEG begins as a path does.
  for (const char* url : {"data:image/png;base64,QUJD", "data:;base64,QUJD", "QUJD", "/9j/4AAQ"}) {
    const auto read = ReadInlineMedia(Limits(), Naming({url}));
    ASSERT_TRUE(read.ok()) << url << read.status();
    EXPECT_FALSE(NeedsFetch(**read)) << url;
    EXPECT_FALSE((*read)->items[0].bytes->empty());
  }
  EXPECT_EQ(*(*ReadInlineMedia(Limits(), Naming({"QUJD"})))->items[0].bytes, "ABC");
  for (const char* url : {"http://example.org/a", "https://example.org/a.png", "/pictures/a.png",
                          "file:///pictures/a", "/pictures/A.JPEG"}) {
    const auto read = ReadInlineMedia(Limits(), Naming({"QUJD", url}));
    ASSERT_TRUE(read.ok()) << url << read.status();
    EXPECT_TRUE(NeedsFetch(**read)) << url;
    EXPECT_EQ((*read)->items[1].url, url);
  }
}

TEST(RequestMediaTest, WhatIsNotAllowedIsRefusedBeforeItIsLookedAt) {
  for (const char* url :
       {"http://example.com/a.png", "http://127.0.0.1/a.png", "ftp://example.org/a.png", "gopher:a",
        "data:image/png,abc", "data:image/png;base64,", "not base64!", "relative.png"}) {
    const auto read = ReadInlineMedia(Limits(), Naming({url}));
    ASSERT_FALSE(read.ok()) << url;
    EXPECT_EQ(FieldOf(read.status()), "image_data") << url;
  }
  MediaLimits none;
  EXPECT_FALSE(ReadInlineMedia(none, Naming({"http://example.org/a.png"})).ok());
  EXPECT_FALSE(ReadInlineMedia(none, Naming({"/pictures/a.png"})).ok());
}

TEST(RequestMediaTest, NumberAndBytesAreBounded) {
  MediaLimits limits = Limits();
  limits.Of(MediaKind::kImage).count = 2;
  limits.Of(MediaKind::kImage).item_bytes = 6;
  limits.Of(MediaKind::kImage).total_bytes = 9;
  EXPECT_TRUE(ReadInlineMedia(limits, Naming({"QUJD", "QUJDREVG"})).ok());
  EXPECT_FALSE(ReadInlineMedia(limits, Naming({"QUJDREVG", "QUJDREVG"})).ok());
  EXPECT_FALSE(ReadInlineMedia(limits, Naming({"QUJDREVGRw=="})).ok());
  EXPECT_FALSE(ReadInlineMedia(limits, Naming({"QUJD", "QUJD", "QUJD"})).ok());
}

TEST(RequestMediaTest, EachKindHasBoundsOfItsOwn) {
  MediaLimits limits = Limits();
  limits.Of(MediaKind::kImage).count = 1;
  limits.Of(MediaKind::kAudio).count = 1;
  limits.Of(MediaKind::kAudio).item_bytes = 3;
  RequestMedia media = Naming({"QUJDREVG", "QUJD"});
  media.items[1].kind = MediaKind::kAudio;
  media.items[1].field = "audio_data";
  EXPECT_TRUE(ReadInlineMedia(limits, media).ok());
  media.items[1].url = "QUJDREVG";
  EXPECT_EQ(FieldOf(ReadInlineMedia(limits, media).status()), "audio_data");
  media.items[1].url = "QUJD";
  media.items.push_back(media.items[1]);
  const auto many = ReadInlineMedia(limits, media);
  EXPECT_EQ(FieldOf(many.status()), "audio_data");
  EXPECT_EQ(MessageOf(many.status()), "at most 1 audio files are taken, got 2");
  EXPECT_EQ(media.field(), "");

  const MediaRules rules = limits.RulesOf(MediaKind::kVideo, 5);
  EXPECT_EQ(rules.kind, MediaKind::kVideo);
  EXPECT_EQ(rules.max_bytes, 5u);
  EXPECT_EQ(rules.domains, limits.rules.domains);
}

}  // namespace
}  // namespace portico
