#include "parser/detect/detect.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "base/source_dir_for_test.h"
#include "text/json.h"

namespace portico::parser {
namespace {

namespace fs = std::filesystem;

DetectedFormat Detect(std::string_view source,
                      const std::set<std::string, std::less<>>& tokens = {}) {
  DetectionVocabulary vocabulary;
  vocabulary.has = [&](std::string_view token) { return tokens.contains(token); };
  for (const std::string& token : tokens) {
    if (token.starts_with('<')) vocabulary.markers.push_back(token);
  }
  return DetectFormat(source, vocabulary);
}

TEST(DetectTest, TheSwitchOfATemplateTellsItsMode) {
  DetectedFormat on =
      Detect("{%- if enable_thinking is defined and not enable_thinking %}x{% endif %}");
  EXPECT_EQ(on.reasoning_parser, "qwen3");
  EXPECT_EQ(on.tool_parser, "qwen");
  EXPECT_EQ(on.mode->enabled, true);
  DetectedFormat off = Detect("{%- set enable_thinking = enable_thinking | default(false) %}");
  EXPECT_EQ(off.reasoning_parser, "mimo");
  EXPECT_EQ(off.mode->enabled, false);
}

TEST(DetectTest, ADefaultInACommentOrAStringIsNone) {
  EXPECT_FALSE(Detect("{# enable_thinking | default(false) #}").mode);
  EXPECT_FALSE(Detect("{{ 'enable_thinking | default(false)' }}").mode);
  EXPECT_FALSE(Detect("{% raw %}{{ enable_thinking | default(false) }}{% endraw %}").mode);
  EXPECT_FALSE(Detect("{{ enable_thinking | default(true, true) }}").mode);
  EXPECT_TRUE(Detect("{{ enable_thinking | d(true) }}").mode);
}

TEST(DetectTest, TheVocabularyDecidesWhereTheTemplateDoesNot) {
  EXPECT_EQ(Detect("{{ messages }}", {"<|tool_calls_section_begin|>"}).tool_parser, "kimi_k2");
  EXPECT_EQ(Detect("{{ messages }}", {"<tool_calls:6124c78e>", "<tool_sep:6124c78e>"}).tool_parser,
            "hunyuan");
  EXPECT_EQ(Detect("{{ messages }}", {"<arg_key>", "<arg_value>"}).tool_parser, "glm45");
  EXPECT_EQ(Detect("{{ messages }}").tool_parser, "");
}

TEST(DetectTest, AnArchitectureStandsInForATemplate) {
  EXPECT_EQ(DetectFormatByArchitecture("DeepseekV3ForCausalLM", "deepseek_v3").tool_parser,
            "deepseekv32");
  EXPECT_EQ(DetectFormatByArchitecture("LlamaForCausalLM", "llama").tool_parser, "");
}

// SGLang's own answers for templates that were found in the wild.
TEST(DetectTest, TheAnswersAreSglangs) {
  const fs::path data = fs::path(SourceDir()) / "../shared/data";
  std::ifstream rows(data / "templates/detection.jsonl");
  if (!rows) GTEST_SKIP() << "the shared reference data is not here";
  // Of the vocabularies, the tokens that rules ask for.
  const std::map<std::string, std::set<std::string, std::less<>>> vocabularies = {
      {"tokenizers/kimi-k2", {"<|tool_calls_section_begin|>"}},
      {"tokenizers/qwen3", {"<tool_call>", "<|endoftext|>"}},
      {"tokenizers/gpt-oss", {"<|endoftext|>"}},
  };
  int compared = 0;
  for (std::string line; std::getline(rows, line);) {
    const Json row = *Json::Parse(line);
    std::ifstream file(data / row.GetString("template"));
    if (!file) continue;
    std::stringstream source;
    source << file.rdbuf();
    auto vocabulary = vocabularies.find(row.GetString("tokenizer"));
    DetectedFormat format =
        Detect(source.str(), vocabulary == vocabularies.end() ? std::set<std::string, std::less<>>()
                                                              : vocabulary->second);
    SCOPED_TRACE(row.GetString("template"));
    EXPECT_EQ(format.tool_parser, row.GetString("tool_call_parser"));
    EXPECT_EQ(format.reasoning_parser, row.GetString("reasoning_parser"));
    const Json* mode = row.Find("reasoning_mode");
    EXPECT_EQ(format.mode.has_value(), mode->is_object());
    if (mode->is_object() && format.mode) {
      EXPECT_EQ(format.mode->parameter, mode->GetString("toggle"));
      EXPECT_EQ(format.mode->special, mode->GetString("special"));
    }
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(DetectTest, CallsThatNoRuleKnowsAreNamedByTheirLook) {
  const auto like = [](std::string_view calls) {
    const std::string text =
        "{% for c in message.tool_calls %}" + std::string(calls) + "{% endfor %}";
    EXPECT_EQ(DetectFormat(text, {}).tool_parser, "") << text;
    return SuggestToolParser(text);
  };
  EXPECT_EQ(like("<tool_call>\n{\"name\": \"{{ c.name }}\"}\n</tool_call>"), "hermes");
  EXPECT_EQ(like("[TOOL_CALLS] [{\"name\": \"{{ c.name }}\"}]"), "mistral");
  EXPECT_EQ(like("{\"name\": \"{{ c.name }}\", \"parameters\": {{ c.arguments }}}"), "llama3");
  EXPECT_EQ(like("{{ c.name }}"), "");
  EXPECT_EQ(SuggestToolParser("The marker <tool_call> alone is no call."), "");
}

}  // namespace
}  // namespace portico::parser
