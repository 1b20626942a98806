#include "template/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace portico {
namespace {

using testing::HasSubstr;

constexpr char kPlain[] =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

struct Rendered {
  std::shared_ptr<const ChatTemplate> chat;
  Json messages, tools, kwargs;
  ChatTemplate::Request request;

  explicit Rendered(std::string source, std::string_view conversation) {
    auto made = ChatTemplate::FromSource(std::move(source), {{"bos_token", "<s>"}});
    EXPECT_TRUE(made.ok());
    chat = *made;
    messages = *Json::Parse(conversation);
    request.messages = &messages;
    request.add_generation_prompt = false;
  }
  std::string Text() {
    auto text = chat->Render(request);
    return text.ok() ? *text : "error: " + std::string(MessageOf(text.status()));
  }
};

TEST(ChatTemplateTest, SpecialTokensAndKwargsAreVariablesAndKwargsWin) {
  Rendered r(kPlain, R"([{"role": "user", "content": "Hi"}])");
  r.request.add_generation_prompt = true;
  EXPECT_EQ(r.Text(), "<s>[user]Hi[assistant]");
  r.kwargs = *Json::Parse(R"({"bos_token": "!"})");
  r.request.kwargs = &r.kwargs;
  EXPECT_EQ(r.Text(), "![user]Hi[assistant]");
}

TEST(ChatTemplateTest, AMemberThatIsNullIsAsIfItWereNotThere) {
  Rendered r("{{ messages[0].content is defined }}{{ messages[0].role is defined }}",
             R"([{"role": "user", "content": null}])");
  EXPECT_EQ(r.Text(), "FalseTrue");
}

TEST(ChatTemplateTest, AContentThatIsNullStaysWhereItIsKept) {
  Rendered r("{{ messages[0].content is none }}{{ messages[0].name is defined }}",
             R"([{"role": "user", "content": null, "name": null}])");
  r.request.keep_null_content = true;
  EXPECT_EQ(r.Text(), "TrueFalse");
}

TEST(ChatTemplateTest, NamesOfReasoningStandForEachOther) {
  Rendered r("{{ messages[0] }}", R"([{"role": "assistant", "reasoning": "why"}])");
  EXPECT_EQ(r.Text(),
            "{'thinking': 'why', 'role': 'assistant', 'reasoning': 'why', "
            "'reasoning_content': 'why'}");
}

TEST(ChatTemplateTest, ContinuesTheFinalMessage) {
  Rendered r(kPlain, R"([{"role": "user", "content": "Q"}, {"role": "assistant",
                          "content": "Once upon "}])");
  r.request.continue_final_message = true;
  EXPECT_EQ(r.Text(), "<s>[user]Q[assistant]Once upon ");
  Rendered trimmed("{% for m in messages %}{{ m.content | trim }}.{% endfor %}",
                   R"([{"role": "assistant", "content": "Once upon "}])");
  trimmed.request.continue_final_message = true;
  EXPECT_EQ(trimmed.Text(), "Once upon");
  Rendered parts(
      "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}."
      "{% endfor %}",
      R"([{"role": "assistant", "content": [{"text": "a"}, {"type": "image"}]}])");
  parts.request.continue_final_message = true;
  EXPECT_EQ(parts.Text(), "a");
}

TEST(ChatTemplateTest, RefusesWhatCannotBeContinued) {
  Rendered both(kPlain, R"([{"role": "assistant", "content": "a"}])");
  both.request.continue_final_message = both.request.add_generation_prompt = true;
  EXPECT_THAT(both.Text(), HasSubstr("not compatible"));
  Rendered none(kPlain, R"([{"role": "assistant", "content": null}])");
  none.request.continue_final_message = true;
  EXPECT_THAT(none.Text(), HasSubstr("no \"content\" to continue"));
  Rendered dropped("{{ messages | length }} content", R"([{"role": "assistant", "content": "a"}])");
  dropped.request.continue_final_message = true;
  EXPECT_THAT(dropped.Text(), HasSubstr("does not appear"));
}

TEST(ChatTemplateTest, RefusesWrongRequestsNamingTheField) {
  Rendered empty(kPlain, "[]");
  EXPECT_EQ(FieldOf(empty.chat->Render(empty.request).status()), "messages");
  Rendered texts(kPlain, R"(["Hi"])");
  EXPECT_EQ(FieldOf(texts.chat->Render(texts.request).status()), "messages");
  Rendered tools(kPlain, R"([{"role": "user"}])");
  tools.tools = *Json::Parse(R"(["f"])");
  tools.request.tools = &tools.tools;
  EXPECT_EQ(FieldOf(tools.chat->Render(tools.request).status()), "tools");
}

TEST(ChatTemplateTest, ChoosesByNameThenToolsThenDefault) {
  auto chat = ChatTemplate::FromTemplates({{"default", "D"}, {"tool_use", "T"}, {"rag", "R"}}, {});
  ASSERT_TRUE(chat.ok());
  Json messages = *Json::Parse(R"([{"role": "user", "content": "x"}])");
  Json tools{JsonArray{}};
  ChatTemplate::Request request;
  request.messages = &messages;
  EXPECT_EQ(*(*chat)->Render(request), "D");
  request.tools = &tools;
  EXPECT_EQ(*(*chat)->Render(request), "T");
  request.chat_template = "rag";
  EXPECT_EQ(*(*chat)->Render(request), "R");
  request.chat_template = "{{ messages[0].content }}!";
  EXPECT_EQ(*(*chat)->Render(request), "x!");
  auto lone = ChatTemplate::FromSource("D", {});
  ASSERT_TRUE(lone.ok());
  request.chat_template = "default";
  EXPECT_EQ(*(*lone)->Render(request), "default");
  auto nameless = ChatTemplate::FromTemplates({{"a", "A"}, {"b", "B"}}, {});
  ASSERT_TRUE(nameless.ok());
  request.chat_template.clear();
  EXPECT_EQ(FieldOf((*nameless)->Render(request).status()), "chat_template");
}

}  // namespace
}  // namespace portico
