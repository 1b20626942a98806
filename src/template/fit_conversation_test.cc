#include "template/fit_conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace portico {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::shared_ptr<const ChatTemplate> TemplateOf(std::string source) {
  auto made = ChatTemplate::FromSource(std::move(source), {});
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

// The prompt of a conversation as a server renders it, or "error: " and why there is none.
std::string Prompted(const std::string& source, std::string_view conversation,
                     std::string_view tools = "null") {
  const auto chat = TemplateOf(source);
  Json messages = *Json::Parse(conversation);
  Json offered = *Json::Parse(tools);
  const TemplateFacts& facts = chat->facts(offered.is_array());
  if (const Status fitted = FitConversation(facts, &messages); !fitted.ok()) {
    EXPECT_EQ(FieldOf(fitted), "messages");
    return "error: " + std::string(MessageOf(fitted));
  }
  ChatTemplate::Request request;
  request.messages = &messages;
  request.add_generation_prompt = false;
  FitRequest(facts, &offered, &request);
  const auto text = chat->Render(request);
  return text.ok() ? *text : "error: " + std::string(MessageOf(text.status()));
}

// The messages alone.
std::string Fitted(const std::string& source, std::string_view conversation) {
  Json messages = *Json::Parse(conversation);
  const Status fitted = FitConversation(TemplateOf(source)->facts(false), &messages);
  return fitted.ok() ? messages.Dump() : "error: " + std::string(MessageOf(fitted));
}

// Everything as it comes; calls too.
constexpr char kAny[] =
    "{% for m in messages %}[{{ m.role }}]{{ m.content + '' }}"
    "{% for c in m.tool_calls or [] %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>"
    "{% endfor %}{% endfor %}";
// As Qwen3's: a system message in first place, no other role than these.
constexpr char kFirstSystem[] =
    "{% for m in messages %}"
    "{% if m.role == 'system' and loop.first %}[system]{{ m.content + '' }}"
    "{% elif m.role in ['user', 'assistant', 'tool'] %}[{{ m.role }}]{{ m.content + '' }}{% endif "
    "%}"
    "{% for c in m.tool_calls or [] %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>"
    "{% endfor %}{% endfor %}";
// As Falcon's.
constexpr char kNoSystem[] =
    "{% for m in messages %}{% if m.role in ['user', 'assistant'] %}[{{ m.role }}]{{ m.content }}"
    "{% endif %}{% endfor %}";

constexpr char kWeather[] = R"({"role":"user","content":"Weather?"},)";
constexpr char kSunny[] = R"({"role":"tool","tool_call_id":"a","content":"sunny"})";

std::string Calling(std::string_view content, std::string_view arguments = R"({\"a\": 1})") {
  std::string message = R"([{"role":"user","content":"Weather?"},{"role":"assistant",)";
  message.append(content).append(R"("tool_calls":[{"id":"a","type":"function","function":)");
  message.append(R"({"name":"f","arguments":")").append(arguments);
  return message.append("\"}}]},").append(kSunny).append("]");
}

TEST(FitConversation, AnOrdinaryConversationStaysAsItIs) {
  const std::string conversation =
      R"([{"role":"system","content":"A"},{"role":"user","content":"b"},)"
      R"({"role":"assistant","content":"c"},{"role":"user","content":"d"}])";
  for (const char* source : {kAny, kFirstSystem}) {
    EXPECT_EQ(Fitted(source, conversation), conversation);
  }
}

// Kimi K2's template printed "Return of None" where a client had left the id out, as SGLang and vLLM let it.
TEST(FitConversation, TheResultOfAnOnlyCallGetsItsId) {
  constexpr char kIds[] =
      "{% for m in messages %}[{{ m.role }}]{{ m.content or '' }}"
      "{% for c in m.tool_calls or [] %}<{{ c.id }} {{ c.function.name }} "
      "{{ c.function.arguments | tojson }}>{% endfor %}"
      "{% if m.role == 'tool' %}<{{ m.tool_call_id }}>{% endif %}{% endfor %}";
  const std::string calling =
      R"([{"role":"user","content":"Weather?"},{"role":"assistant","content":"","tool_calls":[)";
  const std::string a = R"({"id":"a","type":"function","function":{"name":"f","arguments":"{}"}})";
  const std::string b = R"({"id":"b","type":"function","function":{"name":"f","arguments":"{}"}})";
  const std::string sunny = R"({"role":"tool","content":"sunny"})";
  EXPECT_EQ(Prompted(kIds, calling + a + "]}," + sunny + "]"),
            "[user]Weather?[assistant]<a f {}>[tool]sunny<a>");
  EXPECT_EQ(Prompted(kIds, calling + a + "]}," + kSunny + "]"),
            "[user]Weather?[assistant]<a f {}>[tool]sunny<a>");
  // Of several calls nobody knows which one it is of.
  EXPECT_EQ(Prompted(kIds, calling + a + "," + b + "]}," + sunny + "," + sunny + "]"),
            "[user]Weather?[assistant]<a f {}><b f {}>[tool]sunny<>[tool]sunny<>");
}

// The second turn of every conversation with tools: 59 of 258 templates failed on content that is null.
TEST(FitConversation, CallsWithoutContentGetTheContentThatShowsThem) {
  for (const char* content : {"", R"("content":null,)", R"("content":"",)", R"("content":[],)"}) {
    EXPECT_EQ(Prompted(kAny, Calling(content)),
              R"([user]Weather?[assistant]<f {"a": 1}>[tool]sunny)");
    // As DeepSeek V3's: calls are shown only where the content is none, and arguments must be text.
    EXPECT_EQ(Prompted("{% for m in messages %}{% if m.content is none %}"
                       "{% for c in m.tool_calls %}<{{ c.function.name + c.function.arguments }}>"
                       "{% endfor %}{% else %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}",
                       Calling(content)),
              R"([user]Weather?<f{"a": 1}>[tool]sunny)");
    EXPECT_EQ(Prompted("{% for m in messages %}{% if m.content is defined %}[{{ m.role }}]"
                       "{{ m.content }}{% else %}{{ m.tool_calls[0].function.arguments | tojson }}"
                       "{% endif %}{% endfor %}",
                       Calling(content)),
              R"([user]Weather?{"a": 1}[tool]sunny)");
  }
}

TEST(FitConversation, TextAndCallsComeApartWhereOneOfThemWouldBeLost) {
  constexpr char kEither[] =
      "{% for m in messages %}[{{ m.role }}]{% if m.tool_calls %}"
      "{{ m.tool_calls[0].function.arguments | tojson }}{% else %}{{ m.content }}{% endif %}"
      "{% endfor %}";
  const std::string conversation = Calling(R"("content":"Let me see.","reasoning_content":"hm",)");
  EXPECT_EQ(Prompted(kEither, conversation),
            R"([user]Weather?[assistant]Let me see.[assistant]{"a": 1}[tool]sunny)");
  EXPECT_EQ(Prompted(kAny, conversation),
            R"([user]Weather?[assistant]Let me see.<f {"a": 1}>[tool]sunny)");
  // Here two messages of the assistant in a row are refused.
  const std::string strict =
      std::string(
          "{% for m in messages %}{% if not loop.first and m.role == 'assistant' and "
          "loop.previtem.role == 'assistant' %}{{ raise_exception('twice') }}{% endif %}"
          "{% endfor %}") +
      kEither;
  EXPECT_EQ(
      Prompted(strict, conversation),
      "error: messages[1] (assistant): this model's chat template would leave out its content "
      "or its tool_calls");
}

// As DeepSeek R1's and gpt-oss's: the text of all but the first calls is left out, and of calls that were answered.
TEST(FitConversation, TextThatOnlySomeCallsShowComesApartAtTheOthers) {
  constexpr char kFirstOnly[] =
      "{% set ns = namespace(called=false) %}{% for m in messages %}[{{ m.role }}]"
      "{% if m.tool_calls %}{{ m.content if not ns.called }}<{{ m.tool_calls[0].id }}>"
      "{{ m.tool_calls[0].function.arguments | tojson }}{% set ns.called = true %}"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}";
  const auto caller = [](std::string_view text, std::string_view id) {
    std::string message = R"({"role":"assistant","content":")";
    message.append(text).append(R"(","tool_calls":[{"id":")").append(id);
    return message.append(R"(","function":{"name":"f","arguments":"{}"}}]},)").append(kSunny);
  };
  const std::string twice =
      std::string("[") + kWeather + caller("First.", "a") + "," + caller("Second.", "a") + "]";
  EXPECT_EQ(Prompted(kFirstOnly, twice),
            "[user]Weather?[assistant]First.<a>{}[tool]sunny[assistant]Second.[assistant]<a>{}"
            "[tool]sunny");
  constexpr char kNotAnswered[] =
      "{% set ns = namespace(last=-1) %}{% for m in messages %}"
      "{% if m.role == 'assistant' and not m.tool_calls %}{% set ns.last = loop.index0 %}{% endif "
      "%}"
      "{% endfor %}{% for m in messages %}[{{ m.role }}]{% if m.tool_calls %}"
      "{{ m.content if loop.index0 > ns.last }}{{ m.tool_calls[0].function.arguments | tojson }}"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}";
  const std::string once = std::string("[") + kWeather + caller("First.", "a");
  EXPECT_EQ(Prompted(kNotAnswered, once + "]"), "[user]Weather?[assistant]First.{}[tool]sunny");
  EXPECT_EQ(Prompted(kNotAnswered, once + R"(,{"role":"assistant","content":"Sun."}])"),
            "[user]Weather?[assistant]First.[assistant]{}[tool]sunny[assistant]Sun.");
}

TEST(FitConversation, ArgumentsAreTextWhereAnObjectWouldBePrintedAsPythonDoes) {
  constexpr char kRaw[] =
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
      "<{{ c.function.arguments }}>{% endfor %}{% endfor %}";
  EXPECT_EQ(Prompted(kRaw, Calling("")), R"(Weather?<{"a": 1}>sunny)");
  EXPECT_EQ(Prompted(kRaw, Calling("", "")), "Weather?<{}>sunny");
  EXPECT_EQ(Prompted(kAny, Calling("", "")), "[user]Weather?[assistant]<f {}>[tool]sunny");
  // What is no object stays as it was sent.
  EXPECT_EQ(Prompted(kAny, Calling("", "[1]")), R"([user]Weather?[assistant]<f "[1]">[tool]sunny)");
}

TEST(FitConversation, WhatATemplateShowsOfCallsIsWhatItIsGiven) {
  constexpr char kNoCalls[] = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
  EXPECT_EQ(
      Prompted(kNoCalls, Calling("")),
      "error: messages[1].tool_calls (assistant): this model's chat template would leave them "
      "out");
  constexpr char kOneCall[] =
      "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}"
      "{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}";
  const std::string two = std::string("[") + kWeather +
                          R"({"role":"assistant","content":null,"tool_calls":[
      {"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"g"}}]},)" +
                          kSunny + "]";
  EXPECT_EQ(Prompted(kOneCall, two),
            "error: messages[1].tool_calls (assistant): this model's chat template would leave out "
            "all but one");
  EXPECT_EQ(Prompted(kAny, two), "[user]Weather?[assistant]<f {}><g {}>[tool]sunny");
  const std::string old = std::string("[") + kWeather +
                          R"({"role":"assistant","content":null,"function_call":{"name":"f"}}])";
  EXPECT_THAT(Prompted(kAny, old), HasSubstr("messages[1].function_call (assistant)"));
  EXPECT_EQ(Prompted("{% for m in messages %}[{{ m.role }}]{{ m.content + '' }}"
                     "{{ m.function_call | tojson if m.function_call }}{% endfor %}",
                     old),
            R"([user]Weather?[assistant]{"name": "f"})");
}

TEST(FitConversation, AToolsMessageIsNamedWhereTheTemplateNeedsIt) {
  constexpr char kNamed[] =
      "{% for m in messages %}{% if m.role == 'tool' %}{{ m.name + ': ' }}{% endif %}"
      "{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}"
      "{% endfor %} {% endfor %}";
  EXPECT_EQ(Prompted(kNamed, Calling("")), R"(Weather? {"a": 1} f: sunny )");
}

// 88 of 217 templates that show a system message left the developer's out without a word, 64 failed.
TEST(FitConversation, ADeveloperIsTheSystemWhereTheTemplateDoesNotShowTheRole) {
  const std::string first = R"([{"role":"developer","content":"A"},{"role":"user","content":"b"}])";
  EXPECT_EQ(Prompted(kAny, first), "[developer]A[user]b");
  EXPECT_EQ(Prompted(kFirstSystem, first), "[system]A[user]b");
  const std::string refuses = std::string(
                                  "{% for m in messages %}{% if m.role == 'developer' %}"
                                  "{{ raise_exception('who?') }}{% endif %}{% endfor %}") +
                              kAny;
  EXPECT_EQ(Prompted(refuses, first), "[system]A[user]b");
  const std::string later = R"([{"role":"user","content":"b"},{"role":"assistant","content":"c"},)"
                            R"({"role":"developer","content":"A"},{"role":"user","content":"d"}])";
  EXPECT_EQ(Prompted(kAny, later), "[user]b[assistant]c[developer]A[user]d");
  EXPECT_EQ(Prompted(refuses, later), "[user]b[assistant]c[system]A[user]d");
  EXPECT_EQ(Prompted(kFirstSystem, later),
            "error: messages[2] (developer): this model's chat template would leave it out here");
}

TEST(FitConversation, LeadingSystemMessagesBecomeOneWhereTheSecondWouldBeLost) {
  const std::string two =
      R"([{"role":"system","content":"A"},{"role":"developer","content":[{"type":"text",)"
      R"("text":"B"},{"type":"text","text":"C"}]},{"role":"user","content":"d"}])";
  EXPECT_EQ(Prompted(kAny, two), "[system]A[developer]B C[user]d");
  EXPECT_EQ(Prompted(kFirstSystem, two), "[system]A\n\nB C[user]d");
  const std::string three =
      R"([{"role":"developer","content":"A"},{"role":"system","content":"B"},)"
      R"({"role":"system","content":"C"},{"role":"user","content":"d"}])";
  EXPECT_EQ(Prompted(kFirstSystem, three), "[system]A\n\nB\n\nC[user]d");
  EXPECT_EQ(Prompted(kNoSystem, three), "[user]A\n\nB\n\nC\n\nd");
}

TEST(FitConversation, ATemplateWithoutSystemMessagesHasThemBeforeTheFirstUserMessage) {
  EXPECT_TRUE(MovesSystem(TemplateOf(kNoSystem)->facts(false)));
  EXPECT_FALSE(MovesSystem(TemplateOf(kFirstSystem)->facts(false)));
  EXPECT_EQ(Prompted(kNoSystem, R"([{"role":"system","content":"A"},{"role":"user","content":"b"},
      {"role":"assistant","content":"c"},{"role":"user","content":"d"}])"),
            "[user]A\n\nb[assistant]c[user]d");
  EXPECT_EQ(Prompted(kNoSystem, R"([{"role":"system","content":"A"}])"),
            "error: messages[0] (system): this model's chat template would leave it out here");
  EXPECT_EQ(Prompted(kNoSystem, R"([{"role":"user","content":"b"},{"role":"system","content":"A"},
      {"role":"user","content":"d"}])"),
            "error: messages[1] (system): this model's chat template would leave it out here");
}

// As Mistral's: the system message goes with the last message, if that is the user's.
TEST(FitConversation, ASystemMessageThatOnlySomeConversationsShowIsShownInAll) {
  constexpr char kWithLastUser[] =
      "{% set system = messages[0].content if messages[0].role == 'system' else none %}"
      "{% for m in messages if m.role != 'system' %}"
      "{% if m.role == 'user' and loop.last and system is not none %}({{ system }}){% endif %}"
      "[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
  EXPECT_EQ(Prompted(kWithLastUser, R"([{"role":"system","content":"A"},
      {"role":"user","content":"b"}])"),
            "(A)[user]b");
  EXPECT_EQ(Prompted(kWithLastUser, R"([{"role":"system","content":"A"},)" + Calling("").substr(1)),
            "[user]A\n\nWeather?[assistant]{\"a\": 1}[tool]sunny");
}

TEST(FitConversation, WhatWouldBeLeftOutIsRefusedWithPlaceAndRole) {
  for (const char* role : {"function", "latest_reminder"}) {
    const std::string conversation =
        std::string("[") + kWeather + R"({"role":")" + role + R"(","content":"x"}])";
    EXPECT_EQ(Prompted(kFirstSystem, conversation),
              "error: messages[1] (" + std::string(role) +
                  "): this model's chat template would leave it out here");
    EXPECT_EQ(Prompted(kAny, conversation), "[user]Weather?[" + std::string(role) + "]x");
  }
  EXPECT_THAT(Prompted(kNoSystem, std::string("[") + kWeather + kSunny + "]"),
              HasSubstr("messages[1] (tool)"));
  // The last system message wins here, so that the first is lost.
  constexpr char kLastSystem[] =
      "{% set ns = namespace(s='') %}{% for m in messages if m.role == 'system' %}"
      "{% set ns.s = m.content %}{% endfor %}{{ ns.s }}"
      "{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}";
  EXPECT_EQ(Prompted(kLastSystem, R"([{"role":"user","content":"b"},
      {"role":"assistant","content":"c"},{"role":"system","content":"A"},
      {"role":"user","content":"d"}])"),
            "A[user]b[assistant]c[user]d");
  EXPECT_EQ(Prompted(kLastSystem, R"([{"role":"system","content":"A"},{"role":"user","content":"b"},
      {"role":"assistant","content":"c"},{"role":"system","content":"B"},
      {"role":"user","content":"d"}])"),
            "error: messages[0] (system): this model's chat template would leave it out because of "
            "messages[3], another one");
  // What a template refuses itself is its own to say.
  EXPECT_EQ(Prompted("{{ raise_exception('only cats') }}", R"([{"role":"user","content":"b"}])"),
            "error: only cats");
}

constexpr char kTwoParts[] =
    R"([{"role":"user","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]}])";

TEST(FitConversation, PartsAreJoinedWhereTheTemplatePrintsRefusesOrLosesThem) {
  EXPECT_EQ(Prompted("{{ messages[0].content }}", kTwoParts), "A B");
  EXPECT_EQ(Prompted("{{ messages[0].content + '' }}", kTwoParts), "A B");
  EXPECT_EQ(Prompted("{% if messages[0].content is string %}{{ messages[0].content }}{% else %}"
                     "{{ messages[0].content[0].text }}{% endif %}",
                     kTwoParts),
            "A B");
  EXPECT_EQ(Prompted("{% for m in messages %}{{ m.content | tojson }}{% endfor %}", kTwoParts),
            "\"A B\"");
  EXPECT_EQ(Prompted("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
                     "{% for p in m.content %}({{ p.text }}){% endfor %}{% endif %}{% endfor %}",
                     kTwoParts),
            "(A)(B)");
}

TEST(FitConversation, PartsOfAToolsMessageAreAlwaysJoined) {
  std::string conversation = Calling("");
  const std::string text = R"("content":"sunny")";
  conversation.replace(
      conversation.find(text), text.size(),
      R"("content":[{"type":"text","text":"sunny"},{"type":"text","text":"hot"}])");
  const std::string lists =
      "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
      "{% for p in m.content %}({{ p.text }}){% endfor %}{% endif %}"
      "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor "
      "%}";
  for (const std::string& source : {std::string(kAny), lists}) {
    EXPECT_THAT(Prompted(source, conversation), HasSubstr("sunny hot"));
  }
}

TEST(FitConversation, ATextBecomesAPartWhereOnlyPartsAreShown) {
  constexpr char kOnlyParts[] =
      "{% for m in messages %}[{{ m.role }}]{% for p in m.content %}{% if p.type == 'text' %}"
      "{{ p.text }}{% elif p.type == 'image' %}<image>{% endif %}{% endfor %}{% endfor %}";
  EXPECT_EQ(Prompted(kOnlyParts, R"([{"role":"system","content":"A"},{"role":"user",
      "content":"b"}])"),
            "[system]A[user]b");
  EXPECT_EQ(Prompted("{{ messages[0].content[0].text }}", kTwoParts), "A B");
}

TEST(FitConversation, AnImageNeedsAPlaceInTheTemplate) {
  constexpr char kImage[] =
      R"([{"role":"user","content":[{"type":"image"},{"type":"text","text":"A"}]}])";
  EXPECT_EQ(Prompted("{% for p in messages[0].content %}{% if p is string %}{{ p }}{% elif p.type "
                     "== 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}",
                     kImage),
            "<image>A");
  for (const char* source :
       {"{{ messages[0].content }}",
        "{% for p in messages[0].content %}{% if p is string %}{{ p }}{% else %}{{ p.text }}"
        "{% endif %}{% endfor %}"}) {
    EXPECT_EQ(Prompted(source, kImage),
              "error: messages[0].content[0] is an image, but this model's chat template has no "
              "place for one in a message of the role user");
  }
}

TEST(FitConversation, EachKindOfMediaNeedsAPlaceOfItsOwn) {
  constexpr char kHears[] =
      "{% for p in messages[0].content %}{% if p is string %}{{ p }}{% elif p.type == 'audio' %}"
      "<audio>{% elif p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}";
  const auto with = [](std::string_view type) {
    return R"([{"role":"user","content":[{"type":"text","text":"A"},{"type":")" +
           std::string(type) + R"("}]}])";
  };
  EXPECT_EQ(Prompted(kHears, with("audio")), "A<audio>");
  EXPECT_EQ(Prompted(kHears, with("video")),
            "error: messages[0].content[1] is a video, but this model's chat template has no place "
            "for one in a message of the role user");
  EXPECT_EQ(Prompted("{{ messages[0].content }}", with("audio")),
            "error: messages[0].content[1] is audio, but this model's chat template has no place "
            "for it in a message of the role user");
}

TEST(FitConversation, ToolsMayMakeAnotherTemplateOfIt) {
  constexpr char kSystemWithTools[] =
      "{% for m in messages %}{% if m.role != 'system' or tools %}{{ m.content }}|{% endif %}"
      "{% endfor %}";
  const std::string conversation =
      R"([{"role":"system","content":"A"},{"role":"user","content":"b"}])";
  EXPECT_EQ(Prompted(kSystemWithTools, conversation), "A\n\nb|");
  EXPECT_EQ(Prompted(kSystemWithTools, conversation, R"([{"type":"function","function":{}}])"),
            "A|b|");
}

TEST(FitConversation, ToolsAreFunctionsWhereTheTemplateFailsOnTools) {
  const auto facts = [](std::string source) { return TemplateOf(std::move(source))->facts(true); };
  EXPECT_FALSE(facts("{{ tools[0].function.name }}").tools_are_functions);
  EXPECT_TRUE(facts("{{ tools[0].name + '' }}").tools_are_functions);
  EXPECT_EQ(facts("{{ messages[0].content }}").tools, Shown::kNo);
}

TEST(FitConversation, ATemplateThatNeverEndsIsGivenUpAndNothingIsKnown) {
  const auto chat = TemplateOf(
      "{% for i in range(100000) %}{% for j in range(100000) %}{{ j }}{% endfor %}{% endfor %}");
  EXPECT_EQ(chat->facts(false).leading[0][1], Shown::kUnknown);
  EXPECT_EQ(DescribeFacts(chat->facts(true)).Find("roles")->GetString("user"), "unknown");
}

TEST(FitConversation, TheFactsAreDescribedForOperators) {
  const Json told = DescribeFacts(TemplateOf(kFirstSystem)->facts(false));
  EXPECT_EQ(told.Find("roles")->Dump(),
            R"({"system":"shown","developer":"left out","user":"shown","assistant":"shown",)"
            R"("tool":"shown","function":"left out","latest_reminder":"left out"})");
  EXPECT_EQ(told.Find("sequences")->GetString("system, system"), "left out");
  EXPECT_EQ(told.Find("tool_calls")->GetString("content"), "empty");
  EXPECT_EQ(told.Find("content")->GetString("user"), "text");
}

}  // namespace
}  // namespace portico
