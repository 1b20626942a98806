#include "router/index/text_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace portico::router {
namespace {

TEST(TextTreeTest, FindsTheLongestPrefixAndWhoUsedItLast) {
  TextTree tree(1 << 20);
  tree.Insert("hello world", 1);
  tree.Insert("hello there", 2);
  TextTree::Match match = tree.Find("hello wonder");
  EXPECT_TRUE(match.found);
  EXPECT_EQ(match.worker, 1u);
  EXPECT_EQ(match.matched_chars, 8u);
  EXPECT_EQ(match.total_chars, 12u);
  match = tree.Find("hello");
  EXPECT_EQ(match.worker, 2u) << "the later of the two";
  EXPECT_DOUBLE_EQ(match.ratio(), 1.0);
  EXPECT_FALSE(tree.Find("x").found);
  EXPECT_DOUBLE_EQ(tree.Find("").ratio(), 0.0);
}

TEST(TextTreeTest, CountsCharactersNotBytes) {
  TextTree tree(1 << 20);
  tree.Insert("中国人", 1);
  // 中 and 丮 share two of three bytes.
  EXPECT_EQ(tree.Find("丮").matched_chars, 0u);
  EXPECT_EQ(tree.Find("中国話").matched_chars, 2u);
  EXPECT_EQ(tree.Find("中国話").total_chars, 3u);
  tree.Insert("中国話", 1);
  EXPECT_EQ(tree.chars_of(1), 4u) << "two that are shared, and one each";
}

TEST(TextTreeTest, ARemovedWorkerIsNoAnswerAnyMore) {
  TextTree tree(1 << 20);
  tree.Insert("abcdef", 1);
  tree.Insert("abc", 2);
  tree.RemoveWorker(1);
  const TextTree::Match match = tree.Find("abcdef");
  EXPECT_EQ(match.worker, 2u);
  EXPECT_EQ(match.matched_chars, 3u);
}

TEST(TextTreeTest, StaysWithinItsBytes) {
  constexpr size_t kBytes = 1 << 20;
  TextTree tree(kBytes);
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string text = "a common beginning ";
    for (int word = 0; word < 50; ++word) text += std::to_string(random() % 100000) + " ";
    tree.Insert(text, i % 3);
    ASSERT_LE(tree.bytes(), kBytes);
    ASSERT_DOUBLE_EQ(tree.Find(text).ratio(), 1.0);
  }
  EXPECT_GT(tree.bytes(), kBytes / 2);
}

TEST(TextTreeTest, TrimsEachWorkerToItsSize) {
  TextTree tree(1 << 20);
  for (int i = 0; i < 100; ++i) {
    tree.Insert(std::to_string(1000 + i) + std::string(96, 'x'), 1);
  }
  tree.Insert("short", 2);
  tree.Trim(1000);
  EXPECT_LE(tree.chars_of(1), 1000u);
  EXPECT_GT(tree.chars_of(1), 800u);
  EXPECT_EQ(tree.chars_of(2), 5u);
  EXPECT_DOUBLE_EQ(tree.Find("1099" + std::string(96, 'x')).ratio(), 1.0);
  EXPECT_LT(tree.Find("1000" + std::string(96, 'x')).ratio(), 0.1) << "the oldest went";
  tree.Trim(0);
  EXPECT_EQ(tree.nodes(), 0u);
  EXPECT_EQ(tree.bytes(), 0u);
}

TEST(TextTreeTest, AgreesWithAListOfTextsUnderRandomUse) {
  std::mt19937_64 random(5);
  TextTree tree(64 << 20);
  std::multimap<uint64_t, std::string> model;
  auto any_text = [&] {
    std::string text;
    const size_t size = random() % 12;
    for (size_t i = 0; i < size; ++i) text += "ab"[random() % 2];
    return text;
  };
  uint64_t numbers[] = {1, 2, 3};
  uint64_t next_number = 4;
  for (int step = 0; step < 3000; ++step) {
    uint64_t& worker = numbers[random() % 3];
    const std::string text = any_text();
    if (random() % 50 == 0) {
      tree.RemoveWorker(worker);
      model.erase(worker);
      worker = next_number++;
    } else {
      tree.Insert(text, worker);
      if (!text.empty()) model.emplace(worker, text);
    }
    const std::string probe = any_text();
    size_t best = 0;
    for (const auto& [w, known] : model) {
      size_t common = 0;
      while (common < std::min(known.size(), probe.size()) && known[common] == probe[common]) {
        ++common;
      }
      best = std::max(best, common);
    }
    ASSERT_EQ(tree.Find(probe).matched_chars, best) << "step " << step;
  }
}

}  // namespace
}  // namespace portico::router
