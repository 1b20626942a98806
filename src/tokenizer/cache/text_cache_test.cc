#include "tokenizer/cache/text_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace portico::tokenizer {
namespace {

std::string Numbered(int n) {
  return std::string(150, 'a') + std::to_string(1'000'000 + n) + std::string(20, 'z');
}

void Note(TextCache* cache, const std::string& text, size_t bytes, std::vector<TokenId> ids) {
  const uint64_t hash = TextCache::HashOf(text.data());
  if (cache->Seen(hash)) cache->Store(text.data(), bytes, text.size() - bytes, hash, ids);
}

TextCache::Found Find(const TextCache& cache, const std::string& text) {
  return cache.Find(text.data(), text.size(), TextCache::HashOf(text.data()));
}

TEST(TextCache, FindsAStretchOnceItHasComeTwice) {
  ZeroedArray<TextCache::Slot> slots(TextCache::kSlots);
  TextCache cache(slots.data());
  std::string text = Numbered(1);
  EXPECT_EQ(Find(cache, text).bytes, 0u);
  Note(&cache, text, 160, {1, 2, 3});
  EXPECT_EQ(Find(cache, text).bytes, 0u);
  Note(&cache, text, 160, {1, 2, 3});
  TextCache::Found found = Find(cache, text);
  ASSERT_EQ(found.bytes, 160u);
  EXPECT_EQ(std::vector<TokenId>(found.ids.begin(), found.ids.end()),
            (std::vector<TokenId>{1, 2, 3}));
}

TEST(TextCache, GivesBackThePlacesThatWereKeptLast) {
  ZeroedArray<TextCache::Slot> slots(TextCache::kSlots);
  TextCache cache(slots.data());
  std::string text = Numbered(1);
  const std::vector<TokenId> ids = {1, 2, 3};
  const uint64_t hash = TextCache::HashOf(text.data());
  cache.Store(text.data(), 161, text.size() - 161, hash, ids);
  EXPECT_TRUE(Find(cache, text).places.empty());
  const std::vector<uint32_t> places = {7, 8, 9, 10};
  cache.Store(text.data(), 161, text.size() - 161, hash, ids, places);
  TextCache::Found found = Find(cache, text);
  ASSERT_EQ(found.bytes, 161u);
  EXPECT_EQ(std::vector<TokenId>(found.ids.begin(), found.ids.end()), ids);
  EXPECT_EQ(std::vector<uint32_t>(found.places.begin(), found.places.end()), places);
}

TEST(TextCache, WantsTheSameBytesInAndBehindTheStretch) {
  ZeroedArray<TextCache::Slot> slots(TextCache::kSlots);
  TextCache cache(slots.data());
  std::string text = Numbered(1);
  for (int i = 0; i < 2; ++i) Note(&cache, text, 160, {1});
  std::string other = text;
  other[159] = '!';
  EXPECT_EQ(Find(cache, other).bytes, 0u);
  other = text;
  other[167] = '!';
  EXPECT_EQ(Find(cache, other).bytes, 0u);
  other = text;
  other[168] = '!';
  EXPECT_EQ(Find(cache, other).bytes, 160u);
  EXPECT_EQ(Find(cache, text.substr(0, 167)).bytes, 0u);
}

TEST(TextCache, FindsTheEndOfATextOnlyAtAnEnd) {
  ZeroedArray<TextCache::Slot> slots(TextCache::kSlots);
  TextCache cache(slots.data());
  const std::string text = Numbered(1);
  for (int i = 0; i < 2; ++i) Note(&cache, text, text.size(), {1, 2});
  EXPECT_EQ(Find(cache, text).bytes, text.size());
  EXPECT_EQ(Find(cache, text + "!").bytes, 0u);
  EXPECT_EQ(Find(cache, text + " and more").bytes, 0u);
  EXPECT_EQ(Find(cache, text.substr(0, text.size() - 1)).bytes, 0u);
  // Beside it, the beginning of a longer one.
  const std::string longer = text + " and more";
  for (int i = 0; i < 2; ++i) Note(&cache, longer, text.size(), {1, 2, 3});
  EXPECT_EQ(Find(cache, text).ids.size(), 2u);
  EXPECT_EQ(Find(cache, longer).ids.size(), 3u);
}

TEST(TextCache, ForgetsTheOldestAtItsBound) {
  ZeroedArray<TextCache::Slot> slots(TextCache::kSlots);
  TextCache cache(slots.data());
  std::string first = "first " + Numbered(0);
  for (int i = 0; i < 2; ++i) Note(&cache, first, 160, {1});
  std::vector<TokenId> ids(1000, 5);
  for (int n = 0; n < 2000; ++n) {
    std::string text = std::to_string(n) + Numbered(n);
    for (int i = 0; i < 2; ++i) Note(&cache, text, 160, ids);
    TextCache::Found found = Find(cache, text);
    ASSERT_EQ(found.bytes, 160u);
    ASSERT_EQ(found.ids.size(), ids.size());
  }
  EXPECT_EQ(Find(cache, first).bytes, 0u);
}

}  // namespace
}  // namespace portico::tokenizer
