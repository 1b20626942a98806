#include "parser/tool/call_forms.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "parser/collector.h"
#include "parser/declared/declared_parser.h"
#include "parser/declared/families.h"
#include "parser/output_parser.h"

namespace portico::parser {
namespace {

bool NoToken(std::string_view) { return false; }
bool EveryToken(std::string_view) { return true; }

std::string TwoCalls(const CallForm& form, std::string_view first, std::string_view second) {
  return form.lead + form.section + WriteCall(form, "f", first, 0) + form.separator +
         WriteCall(form, "g", second, 1) + form.section_end;
}

void ExpectReadBack(const CallForm& form, const ToolFamily& family, std::string_view before,
                    std::string_view first, std::string_view second) {
  OutputFormat format;
  format.tools = &family;
  const ToolSet tools;
  Collector got;
  auto parser = OutputParser::Make(format, tools, &got);
  parser->Feed(std::string(before) + TwoCalls(form, first, second));
  parser->Finish();
  EXPECT_EQ(got.content, before) << family.name;
  ASSERT_EQ(got.calls.size(), 2u) << family.name << ": " << got.content;
  EXPECT_EQ(got.calls[0].name, "f") << family.name;
  EXPECT_EQ(got.calls[1].name, "g") << family.name;
  EXPECT_TRUE(got.calls[0].complete && got.calls[1].complete) << family.name;
  EXPECT_EQ(Json::Parse(got.calls[0].arguments).value(), Json::Parse(R"({"a": 1})").value())
      << family.name;
  EXPECT_EQ(Json::Parse(got.calls[1].arguments).value(), Json::Parse("{}").value()) << family.name;
}

void ExpectReadBack(const CallForm& form, std::string_view name, std::string_view before,
                    std::string_view first, std::string_view second) {
  const ToolFamily* const family = FindToolFamily(name);
  ASSERT_NE(family, nullptr) << name;
  ExpectReadBack(form, *family, before, first, second);
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
        std::pair("mimo", "<parameter=a>1</parameter>"),
        std::pair("hunyuan", "<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n"),
        std::pair("step3", "<steptml:parameter name=\"a\">1</steptml:parameter>"),
        std::pair("minicpm5", "<param name=\"a\">1</param>"),
        std::pair("kimi_k3",
                  "<|open|>argument key=\"a\" type=\"number\"<|sep|>1<|close|>argument<|sep|>"),
        std::pair("minimax-m3", "]<]minimax[>[<a>1]<]minimax[>[</a>"),
        std::pair("gemma4", "a:1"),
        std::pair("functiongemma", "a:1"),
        std::pair("muse", "<atem:parameter name=\"a\">1</atem:parameter>"),
        std::pair("pythonic", "a=1"),
        std::pair("lfm2", "a=1"),
        std::pair("olmo3", "a=1")}) {
    const CallForm* form = FindCallForm(family, NoToken);
    ASSERT_NE(form, nullptr) << family;
    ExpectReadBack(*form, family, "", argument, "");
  }
}

// Special tokens cannot be in a style of the grammar library.
TEST(CallForms, OfTagsAreReadWithoutAStyleToo) {
  for (const auto& [family, argument] :
       {std::pair("qwen3_coder", "<parameter=a>\n1\n</parameter>\n"),
        std::pair("seed_oss", "<parameter=a>\n1\n</parameter>\n"),
        std::pair("glm45", "<arg_key>a</arg_key><arg_value>1</arg_value>"),
        std::pair("iquest_q1", "<arg_key>a</arg_key><arg_value>1</arg_value>"),
        std::pair("minimax-m2", "<parameter name=\"a\">1</parameter>\n"),
        std::pair("deepseekv4",
                  "<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>\n")}) {
    const CallForm* form = FindMemberCallForm(family);
    ASSERT_NE(form, nullptr) << family;
    EXPECT_EQ(form->style, kMemberStyle);
    ExpectReadBack(*form, family, "", argument, "");
  }
  EXPECT_EQ(FindMemberCallForm("hermes"), nullptr);
}

TEST(CallForms, EveryFamilyWhoseCallsAreReadHasOne) {
  for (const std::string& name : ToolFamilyNames()) {
    const ToolFamily* family = FindToolFamily(name);
    if (family->harmony || name == "passthrough") continue;
    EXPECT_NE(FindCallForm(family->name, NoToken), nullptr) << name;
  }
}

std::shared_ptr<const ResponseTemplate> DeclaredJson(const char* more) {
  return *ResponseTemplate::Load(*Json::Parse(
      std::string(
          R"({"start_anchor":"assistant:","fields":{"content":{},"tool_calls":{"open":"[CALL]",)"
          R"("close":"[/CALL]","repeats":true,"content":"json","transform":)"
          R"({"type":"function","function":{"name":"{content.tool}","arguments":"{content.args}"}})") +
      more + "}}}"));
}

// Required calls of such models were a JSON list, and `parallel_tool_calls: false` was a 400.
TEST(CallForms, OfJsonThatACheckpointDeclaresAreReadBack) {
  const auto format = DeclaredJson("");
  const auto form = DeclaredCallForm(*format);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->begins, "[CALL]");
  ExpectReadBack(*form, DeclaredTools("response_template", format), "", R"({"a": 1})", "{}");
  EXPECT_FALSE(DeclaredCallForm(*DeclaredJson(R"(,"content_args":{"unquoted_keys":true})")));
  EXPECT_FALSE(DeclaredCallForm(*MuseTemplate()));
}

TEST(CallForms, HaveTheTagsOfACheckpoint) {
  const CallForm form = WithTags(*FindCallForm("hunyuan", NoToken),
                                 {{"<tool_call>", "<tool_call:x>"}, {"<tool_sep>", ""}});
  EXPECT_EQ(form.before_name, "<tool_call:x>");
  EXPECT_EQ(form.after_name, "\n");
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
