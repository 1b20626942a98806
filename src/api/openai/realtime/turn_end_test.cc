#include "api/openai/realtime/turn_end.h"

#include <gtest/gtest.h>

namespace portico::api::openai {
namespace {

TEST(TurnEnd, ASentenceIsFinished) {
  for (const char* text :
       {"what is the capital of japan", "Yes.", "Really?", "stop", "where are you from",
        "what is that", "turn it on", "\u7d42\u308f\u308a\u3002"}) {
    EXPECT_TRUE(LooksFinished(text)) << text;
  }
}

TEST(TurnEnd, WhoHesitatesOrLeadsOnHasNotFinished) {
  for (const char* text : {"", "  ", "what is the", "I would like to ", "and", "it costs, ",
                           "well um", "Because", "so ...", "one \u2014"}) {
    EXPECT_FALSE(LooksFinished(text)) << text;
  }
}

}  // namespace
}  // namespace portico::api::openai
