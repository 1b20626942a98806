#include "service/output/output_format.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "service/output/declared_format.h"

namespace portico {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

class OutputFormatTest : public testing::Test {
 protected:
  OutputFormatTest() {
    std::string added;
    TokenId id = 1;
    for (const char* text : {"<|im_end|>", "[CALL]", "[OTHER]", "<seed:tool_call>", "<think>",
                             "</think>", "<tool_call>", "</tool_call>"}) {
      added += fmt::format(
          R"({}{{"id":{},"content":"{}","special":true,"single_word":false,"lstrip":false,)"
          R"("rstrip":false,"normalized":false}})",
          added.empty() ? "" : ",", id++, text);
    }
    tokenizer_ = *Tokenizer::FromJson(
        R"({"version":"1.0","truncation":null,"padding":null,"normalizer":null,)"
        R"("post_processor":null,"decoder":null,"added_tokens":[)" +
        added +
        R"(],"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"u","vocab":{"u":0}}})");
  }

  // The special tokens that reach the parsers.
  std::vector<std::string> Markers(const std::string& tools, const Json& declared = Json(),
                                   const std::string& reasoning = "none") const {
    OutputFormatSource source;
    source.tool_call_parser = tools;
    source.reasoning_parser = reasoning;
    const auto format = MakeOutputFormat(source, declared, *tokenizer_);
    EXPECT_TRUE(format.ok()) << format.status();
    std::vector<std::string> texts;
    if (!format.ok()) return texts;
    for (const TokenId id : format->markers) texts.emplace_back(tokenizer_->IdToToken(id));
    return texts;
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(OutputFormatTest, OnlyTheTokensOfAFamilysTagsReachItsParser) {
  EXPECT_THAT(Markers("seed_oss"), UnorderedElementsAre("<seed:tool_call>"));
  EXPECT_THAT(Markers("minimax-m2"), IsEmpty());
  EXPECT_THAT(Markers("deepseekv32"), IsEmpty());
}

// The tag that ends reasoning was shown, that which ends the call was not.
TEST_F(OutputFormatTest, CallsThatNobodyReadsAreShownWithBothTheirTags) {
  EXPECT_THAT(Markers("none", Json(), "qwen3"),
              UnorderedElementsAre("<think>", "</think>", "<tool_call>", "</tool_call>"));
  EXPECT_THAT(Markers("none", Json(), "deepseek-r1"), UnorderedElementsAre("<think>", "</think>"));
}

// A delimiter of one character made every token that holds it a part of the format: hidden ones were shown.
TEST_F(OutputFormatTest, ADeclaredDelimiterOfOneCharacterMakesNoOtherTokenAMarker) {
  const Json declared = *Json::Parse(
      R"({"start_anchor":"assistant:","fields":{"content":{},"tool_calls":{"open":"[CALL]",)"
      R"("close":"]","content":"json","transform":{"type":"function","function":{"name":"{content.name}",)"
      R"("arguments":"{content.arguments}"}}}}})");
  EXPECT_THAT(Markers("response_template", declared), UnorderedElementsAre("[CALL]"));
}

}  // namespace
}  // namespace portico
