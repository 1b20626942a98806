#include "pipeline/speech/speech_filter.h"

#include <gtest/gtest.h>

namespace portico::pipeline {
namespace {

TEST(SpeechFilter, DropsThoughtsAtEverySplit) {
  const std::string text = "<think>no one hears</think>Hello <b>you";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    SpeechFilter filter;
    std::string out = filter.Feed(std::string_view(text).substr(0, cut));
    out += filter.Feed(std::string_view(text).substr(cut));
    out += filter.Finish();
    EXPECT_EQ(out, "Hello <b>you") << cut;
  }
}

std::string Filtered(std::string_view text, size_t piece) {
  SpeechFilter filter;
  std::string out;
  for (size_t at = 0; at < text.size(); at += piece) out += filter.Feed(text.substr(at, piece));
  return out + filter.Finish();
}

// "</think>Good morning." was said with its tag.
TEST(SpeechFilter, DropsThoughtsThatBeganBeforeTheText) {
  EXPECT_EQ(Filtered("I hide it.</think>Good morning.", 100), "Good morning.");
  EXPECT_EQ(Filtered("</think>Good morning.", 1), "Good morning.");
  EXPECT_EQ(Filtered("<think>a</think>b</think>c", 100), "bc");
}

TEST(SpeechFilter, DropsBlocksOfCode) {
  const std::string text =
      "So:\n```python\nx = 1. Or 2.\n``\n  ```  \nDone. `ls` lists.\n````\n```\n````\n```ls``` "
      "too\n```";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EXPECT_EQ(Filtered(text, piece), "So:\n\n\n\n\nDone. `ls` lists.\n\n\n\n```ls``` too\n")
        << piece;
  }
  const std::string indented = std::string(1000, ' ') + "a word";
  EXPECT_EQ(Filtered(indented, 7), indented);
}

}  // namespace
}  // namespace portico::pipeline
