#include "parser/tool/call_forms.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "parser/collector.h"
#include "parser/output_parser.h"

namespace portico::parser {
namespace {

bool NoToken(std::string_view) { return false; }
bool EveryToken(std::string_view) { return true; }

std::string TwoCalls(const CallForm& form, std::string_view first, std::string_view second) {
  return form.section + WriteCall(form, "f", first, 0) + form.separator +
         WriteCall(form, "g", second, 1) + form.section_end;
}

void ExpectReadBack(const CallForm& form, std::string_view family, std::string_view before,
                    std::string_view first, std::string_view second) {
  OutputFormat format;
  format.tools = FindToolFamily(family);
  ASSERT_NE(format.tools, nullptr) << family;
  const ToolSet tools;
  Collector got;
  auto parser = OutputParser::Make(format, tools, &got);
  parser->Feed(std::string(before) + TwoCalls(form, first, second));
  parser->Finish();
  EXPECT_EQ(got.content, before) << family;
  ASSERT_EQ(got.calls.size(), 2u) << family << ": " << got.content;
  EXPECT_EQ(got.calls[0].name, "f") << family;
  EXPECT_EQ(got.calls[1].name, "g") << family;
  EXPECT_TRUE(got.calls[0].complete && got.calls[1].complete) << family;
  EXPECT_EQ(Json::Parse(got.calls[0].arguments).value(), Json::Parse(R"({"a": 1})").value())
      << family;
  EXPECT_EQ(Json::Parse(got.calls[1].arguments).value(), Json::Parse("{}").value()) << family;
}

// What a constraint makes a model write has to be what the model's parser reads.
TEST(CallForms, AreReadByTheirFamilies) {
  std::set<const ToolFamily*> seen;
  int forms = 0;
  for (const std::string& name : ToolFamilyNames()) {
    const ToolFamily* family = FindToolFamily(name);
    if (!seen.insert(family).second) continue;
    for (const auto& has : {NoToken, EveryToken}) {
      const CallForm* form = FindCallForm(family->name, has);
      if (form == nullptr || form->style != "json") continue;
      ++forms;
      ExpectReadBack(*form, family->name, "", R"({"a": 1})", "{}");
    }
  }
  EXPECT_GE(forms, 44);
}

TEST(CallForms, OfTagsAreReadByTheirFamilies) {
  for (const auto& [family, argument] :
       {std::pair("qwen3_coder", "<parameter=a>\n1\n</parameter>"),
        std::pair("seed_oss", "<parameter=a>\n1\n</parameter>"),
        std::pair("glm45", "<arg_key>a</arg_key><arg_value>1</arg_value>"),
        std::pair("minimax-m2", "<parameter name=\"a\">1</parameter>"),
        std::pair("deepseekv32",
                  "<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>"),
        std::pair("deepseekv4",
                  "<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>"),
        std::pair("deepseekv41",
                  "<｜DSML｜ parameter name=\"a\" string=\"false\">1</｜DSML｜ parameter>"),
        std::pair("iquest_q1", "<arg_key>a</arg_key><arg_value>1</arg_value>"),
        std::pair("pythonic", "a=1"), std::pair("lfm2", "a=1"), std::pair("olmo3", "a=1")}) {
    const CallForm* form = FindCallForm(family, NoToken);
    ASSERT_NE(form, nullptr) << family;
    ExpectReadBack(*form, family, "", argument, "");
  }
}

TEST(CallForms, TheListThatAnyModelCanWriteIsReadAsJson) {
  ExpectReadBack(JsonListForm(), "json", "", R"({"a": 1})", "{}");
}

TEST(CallForms, BeginWithTheTextThatTellsThemFromText) {
  for (const std::string& name : ToolFamilyNames()) {
    const CallForm* form = FindCallForm(name, NoToken);
    if (form == nullptr) continue;
    EXPECT_FALSE(form->begins.empty()) << name;
    EXPECT_TRUE((form->section + form->before_name).starts_with(form->begins)) << name;
  }
}

TEST(CallForms, QuoteNamesInJson) {
  EXPECT_EQ(WriteCall(JsonListForm(), "a\"b", "{}", 0), R"({"name": "a\"b", "parameters": {}})");
}

}  // namespace
}  // namespace portico::parser
