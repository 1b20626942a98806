#include "parser/tool/families.h"

#include <algorithm>
#include <map>
#include <utility>

#include "parser/declared/declared_parser.h"
#include "parser/declared/families.h"
#include "parser/harmony/harmony_parser.h"
#include "parser/tool/brace_calls.h"
#include "parser/tool/json_calls.h"
#include "parser/tool/named_calls.h"
#include "parser/tool/nested_calls.h"
#include "parser/tool/pair_calls.h"
#include "parser/tool/python_calls.h"
#include "parser/tool/tagged_calls.h"

namespace portico::parser {
namespace {

using Names = std::vector<std::string>;
using FamilyPtr = std::shared_ptr<ToolFamily>;

struct Registry {
  std::map<std::string, FamilyPtr, std::less<>> by_name;
  Names names;

  ToolFamily& Add(const Names& names_of, std::vector<std::string> markers) {
    auto family = std::make_shared<ToolFamily>();
    family->name = names_of.front();
    // A single character is a part of every other family's markers too.
    std::erase_if(markers, [](const std::string& marker) { return marker.size() < 2; });
    family->markers = std::move(markers);
    for (const std::string& name : names_of) by_name[name] = family;
    return *family;
  }

  template <typename Parser, typename Description>
  ToolFamily& AddShape(const Names& names_of, std::vector<std::string> markers,
                       Description description) {
    auto compiled = std::make_shared<const typename Parser::Compiled>(std::move(description));
    ToolFamily& family = Add(names_of, std::move(markers));
    family.make = [compiled](const ToolSet& tools, Sink* sink) {
      return std::make_unique<Parser>(compiled, tools, sink);
    };
    return family;
  }

  ToolFamily& Json(const Names& names_of, JsonFamily family) {
    std::vector<std::string> markers = family.starts;
    for (const auto* more : {&family.ends, &family.dropped, &family.name_ends}) {
      markers.insert(markers.end(), more->begin(), more->end());
    }
    markers.push_back(family.header_end);
    return AddShape<JsonCalls>(names_of, std::move(markers), std::move(family));
  }
  ToolFamily& Tagged(const Names& names_of, TaggedFamily family) {
    std::vector<std::string> markers = {family.call, family.call_end, family.parameter,
                                        family.parameter_end, family.head_end};
    for (const auto* more : {&family.starts, &family.ends, &family.noise, &family.dropped}) {
      markers.insert(markers.end(), more->begin(), more->end());
    }
    return AddShape<TaggedCalls>(names_of, std::move(markers), std::move(family));
  }
  ToolFamily& Pair(const Names& names_of, PairFamily family) {
    std::vector<std::string> markers = {family.call,     family.call_end, family.separator,
                                        family.key,      family.key_end,  family.type,
                                        family.type_end, family.value,    family.value_end};
    for (const auto* more : {&family.sections, &family.section_ends, &family.dropped}) {
      markers.insert(markers.end(), more->begin(), more->end());
    }
    return AddShape<PairCalls>(names_of, std::move(markers), std::move(family));
  }
  ToolFamily& Named(const Names& names_of, NamedFamily family) {
    std::vector<std::string> markers = {family.section, family.section_end, family.call,
                                        family.call_end, family.before_name};
    for (const auto* more : {&family.separators, &family.dropped}) {
      markers.insert(markers.end(), more->begin(), more->end());
    }
    return AddShape<NamedCalls>(names_of, std::move(markers), std::move(family));
  }
  ToolFamily& Python(const Names& names_of, PythonFamily family) {
    std::vector<std::string> markers = family.starts;
    for (const auto* more : {&family.ends, &family.dropped}) {
      markers.insert(markers.end(), more->begin(), more->end());
    }
    return AddShape<PythonCalls>(names_of, std::move(markers), std::move(family));
  }
  ToolFamily& Brace(const Names& names_of, BraceFamily family) {
    std::vector<std::string> markers = {family.start, family.end, family.quote};
    markers.insert(markers.end(), family.dropped.begin(), family.dropped.end());
    return AddShape<BraceCalls>(names_of, std::move(markers), std::move(family));
  }
};

void AddJsonFamilies(Registry* r) {
  JsonFamily hermes = {.starts = {"<tool_call>"}, .ends = {"</tool_call>"}, .fence = true};
  r->Json({"hermes", "qwen3_json"}, hermes);
  r->Json({"trinity"}, hermes).inside_reasoning = true;
  r->Json({"granite4"}, hermes);
  hermes.needs_end = true;  // as SGLang's qwen25 and smg's qwen, unlike SGLang's and vLLM's hermes
  r->Json({"qwen", "qwen25"}, hermes);
  r->Json({"longcat"}, {.starts = {"<longcat_tool_call>"}, .ends = {"</longcat_tool_call>"}});
  r->Json({"ernie45"}, {.starts = {"<tool_call>"},
                        .ends = {"</tool_call>"},
                        .dropped = {"<response>", "</response>", "<response>\n", "\n</response>\n",
                                    "\n</response>"}})
      .frames = true;
  r->Json({"mistral"}, {.starts = {"[TOOL_CALLS]"},
                        .dropped = {"</s>"},
                        .bare_first = true,
                        .name_ends = {"[ARGS]", "[CALL_ID]"}})
      .ids = CallIds::kNineCharacters;
  r->Json({"llama3", "llama3_json", "llama4_json", "llama"},
          {.starts = {"<|python_tag|>"}, .bare = true});
  r->Json({"json"}, {.bare = true, .fence = true});
  r->Json({"passthrough"}, {});  // smg's name for none
  r->Json({"interns1", "internlm"},
          {.starts = {"<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"},
           .ends = {"<|action_end|>"}});
  r->Json(
      {"granite"},
      {.starts = {"<|tool_call|>", "<tool_call>"}, .ends = {"</tool_call>"}, .bare_first = true});
  r->Json({"granite-20b-fc"}, {.starts = {"<function_call>"}, .ends = {"</function_call>"}});
  r->Json({"jamba", "hunyuan_a13b"}, {.starts = {"<tool_calls>"}, .ends = {"</tool_calls>"}});
  r->Json({"phi4_mini_json"},
          {.starts = {"functools", "<|tool_call|>"}, .ends = {"<|/tool_call|>"}});
  r->Json({"xlam"}, {.starts = {"[TOOL_CALLS]", "<tool_call>", "```json", "```", "</think>"},
                     .ends = {"</tool_call>", "```"},
                     .bare_first = true,
                     .fence = true});
  r->Json({"cohere_command4", "cohere_command3", "cohere"},
          {.starts = {"<|START_ACTION|>"},
           .ends = {"<|END_ACTION|>"},
           .dropped = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
           .tool_name = true})
      .frames = true;
  r->Json({"apertus2509", "apertus"},
          {.starts = {"<|tools_prefix|>"}, .ends = {"<|tools_suffix|>"}, .key_is_name = true})
      .inside_reasoning = true;
  r->Json({"gigachat3"}, {.starts = {"<|function_call|>", "function call<|role_sep|>"},
                          .dropped = {"<|message_sep|>", "</s>"}})
      .frames = true;
  r->Json({"inkling"},
          {.starts = {"<|message_model|>", "<|content_invoke_tool_json|>"},
           .ends = {"<|end_message|>"},
           .dropped = {"<|content_text|>", "<|end_message|>", "<|content_model_end_sampling|>",
                       "<|content_invoke_tool_text|>"},
           .header_end = "<|content_invoke_tool_json|>"})
      .frames = true;
  r->Json({"sarashina"}, {.starts = {"<|tool_calls|>"}, .bare_first = true, .python = true});
}

void AddNamedFamilies(Registry* r) {
  const std::vector<std::string> end_of_sentence = {"<｜end▁of▁sentence｜>"};
  NamedFamily deepseek = {.section = "<｜tool▁calls▁begin｜>",
                          .section_end = "<｜tool▁calls▁end｜>",
                          .call = "<｜tool▁call▁begin｜>",
                          .call_end = "<｜tool▁call▁end｜>",
                          .separators = {"<｜tool▁sep｜>"},
                          .dropped = end_of_sentence};
  // One reads the other's calls: SGLang's rules take the templates of V3 and R1 for V3.1's.
  deepseek.before_name = "function<｜tool▁sep｜>";
  deepseek.separators = {"\n", "```json", "<｜tool▁sep｜>"};
  deepseek.fence = true;
  r->Named({"deepseekv31", "deepseek_v31", "deepseek31"}, deepseek);
  r->Named({"deepseekv3", "deepseek_v3", "deepseek"}, deepseek);
  r->Named({"kimi_k2", "kimik2"}, {.section = "<|tool_calls_section_begin|>",
                                   .section_end = "<|tool_calls_section_end|>",
                                   .call = "<|tool_call_begin|>",
                                   .call_end = "<|tool_call_end|>",
                                   .separators = {"<|tool_call_argument_begin|>"},
                                   .counted = true})
      .ids = CallIds::kFunctionsCounter;
  auto plamo = [](const std::string& word) { return "<|plamo:" + word + ":plamo|>"; };
  r->Named({"plamo3"}, {.section = plamo("begin_tool_requests"),
                        .section_end = plamo("end_tool_requests"),
                        .call = plamo("begin_tool_request"),
                        .call_end = plamo("end_tool_arguments"),
                        .before_name = plamo("begin_tool_name"),
                        .separators = {plamo("end_tool_name") + plamo("begin_tool_arguments") +
                                           "<|plamo:constrain|>json<|plamo:msg|>",
                                       plamo("end_tool_name") + plamo("begin_tool_arguments")},
                        .noise = {plamo("end_tool_request")},
                        .dropped = {"<|plamo:tag|>"}});
}

void AddPairFamilies(Registry* r) {
  const PairFamily glm;
  r->Pair({"glm45", "glm", "glm47", "glm45_moe", "glm47_moe", "ling3", "poolside_v1", "spark25"},
          glm);
  r->Pair({"iquest_q1"}, {.call = "<iquest_tool_call>", .call_end = "</iquest_tool_call>"});
  r->Pair({"hunyuan", "hy_v3", "hy_v4"}, {.sections = {"<tool_calls>"},
                                          .section_ends = {"</tool_calls>"},
                                          .separator = "<tool_sep>",
                                          .suffixed = true});
  r->Pair({"k2_horizon"}, {.sections = {"<ifm|tool_calls>"},
                           .section_ends = {"</ifm|tool_calls>"},
                           .call = "<ifm|tool_call>",
                           .call_end = "</ifm|tool_call>",
                           .key = "<ifm|arg_key>",
                           .key_end = "</ifm|arg_key>",
                           .type = "<ifm|arg_type>",
                           .type_end = "</ifm|arg_type>",
                           .value = "<ifm|arg_value>",
                           .value_end = "</ifm|arg_value>",
                           .json_body = true});
}

void AddTaggedFamilies(Registry* r) {
  TaggedFamily qwen = {.starts = {"<tool_call>"},
                       .ends = {"</tool_call>"},
                       .bare_calls = true,
                       .call = "<function=",
                       .call_end = "</function>",
                       .parameter = "<parameter=",
                       .parameter_end = "</parameter>",
                       .equals = true,
                       .trim_newline = true,
                       .json_body = true};
  r->Tagged({"qwen3_coder", "qwen3_xml", "qwen_xml", "qwen_coder", "nemotron", "nanbeige",
             "step3p5", "step5"},
            qwen);
  qwen.trim_newline = false;
  r->Tagged({"mimo"}, qwen);
  qwen.trim_newline = true;
  qwen.starts = {"<seed:tool_call>"};
  qwen.ends = {"</seed:tool_call>"};
  r->Tagged({"seed_oss"}, qwen);

  auto dsml = [](const std::string& mark, const std::string& section, const std::string& gap) {
    return TaggedFamily{.starts = {"<" + mark + gap + section + ">"},
                        .ends = {"</" + mark + gap + section + ">"},
                        .bare_calls = true,
                        .call = "<" + mark + gap + "invoke",
                        .call_end = "</" + mark + gap + "invoke>",
                        .parameter = "<" + mark + gap + "parameter",
                        .parameter_end = "</" + mark + gap + "parameter>",
                        .json_body = true,
                        .dropped = {"<｜end▁of▁sentence｜>"}};
  };
  r->Tagged({"deepseekv32", "deepseek_v32", "deepseek32"}, dsml("｜DSML｜", "function_calls", ""));
  r->Tagged({"deepseekv4", "deepseek_v4"}, dsml("｜DSML｜", "tool_calls", ""));
  r->Tagged({"deepseekv41", "deepseek_v41"}, dsml("｜DSML｜", "calls", " "));
  r->Tagged({"gigachat35"}, dsml("｜GCML｜", "tool_calls", ""));
  r->Tagged({"minimax-m2", "minimax_m2"}, {.starts = {"<minimax:tool_call>"},
                                           .ends = {"</minimax:tool_call>"},
                                           .bare_calls = true,
                                           .trim_newline = true,
                                           .entities = true});
  r->Tagged({"dots"}, {.starts = {"<dots_function_call>"},
                       .ends = {"</dots_function_call>"},
                       .bare_calls = true,
                       .trim = true,
                       .json_body = true});
  r->Tagged({"step3"}, {.starts = {"<｜tool_calls_begin｜>", "<｜tool_call_begin｜>"},
                        .ends = {"<｜tool_calls_end｜>"},
                        .bare_calls = true,
                        .noise = {"<｜tool_call_begin｜>", "function<｜tool_sep｜>", "function",
                                  "<｜tool_sep｜>", "<｜tool_call_end｜>"},
                        .call = "<steptml:invoke",
                        .call_end = "</steptml:invoke>",
                        .parameter = "<steptml:parameter",
                        .parameter_end = "</steptml:parameter>"});
  r->Tagged({"minicpm5"}, {.bare_calls = true,
                           .call = "<function",
                           .call_end = "</function>",
                           .parameter = "<param",
                           .parameter_end = "</param>",
                           .cdata = true});
  r->Tagged({"kimi_k3"}, {.starts = {"<|open|>tools<|sep|>"},
                          .ends = {"<|close|>tools<|sep|>"},
                          .bare_calls = true,
                          .call = "<|open|>call",
                          .call_end = "<|close|>call<|sep|>",
                          .parameter = "<|open|>argument",
                          .parameter_end = "<|close|>argument<|sep|>",
                          .head_end = "<|sep|>",
                          .name_key = "tool",
                          .key_key = "key",
                          .entities = true,
                          .dropped = {"<|open|>response<|sep|>", "<|close|>response<|sep|>",
                                      "<|close|>message<|sep|>", "<|end_of_msg|>"}});
  ToolFamily& k3 = *r->by_name["kimi_k3"];
  k3.ids = CallIds::kNameCounter;
  k3.frames = true;
  r->AddShape<NestedCalls>(
      {"minimax-m3", "minimax_m3"},
      {"]<]minimax[>[", "]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"}, NestedFamily{});
}

void AddOtherFamilies(Registry* r) {
  PythonFamily python = {.starts = {"<|python_start|>"}, .ends = {"<|python_end|>"}, .json = true};
  r->Python({"pythonic", "llama4_pythonic"}, python);
  r->Python({"lfm2"}, {.starts = {"<|tool_call_start|>"},
                       .ends = {"<|tool_call_end|>"},
                       .bare = false,
                       .json = true});
  r->Python({"olmo3"}, {.starts = {"<function_calls>"},
                        .ends = {"</function_calls>"},
                        .bare = false,
                        .lines = true});
  r->Brace({"gemma4"},
           {.start = "<|tool_call>", .end = "<tool_call|>", .quote = "<|\"|>", .bare_first = true});
  r->Brace({"functiongemma"}, {.start = "<start_function_call>",
                               .end = "<end_function_call>",
                               .quote = "<escape>",
                               .typed = true});
  r->Add({"gpt-oss", "openai", "harmony"}, {"<|start|>", "<|channel|>", "<|constrain|>",
                                            "<|message|>", "<|end|>", "<|call|>", "<|return|>"})
      .harmony = true;
  r->by_name["beam"] = std::make_shared<DeclaredTools>("beam", BeamTemplate());
  for (const char* name : {"muse", "musespark1x", "muse_glimmer"}) {
    r->by_name[name] = std::make_shared<DeclaredTools>("muse", MuseTemplate());
  }
}

const Registry& Families() {
  static const Registry* const kFamilies = [] {
    auto* made = new Registry;
    AddJsonFamilies(made);
    AddNamedFamilies(made);
    AddPairFamilies(made);
    AddTaggedFamilies(made);
    AddOtherFamilies(made);
    for (const auto& [name, family] : made->by_name) made->names.push_back(name);
    return made;
  }();
  return *kFamilies;
}

}  // namespace

const ToolFamily* FindToolFamily(std::string_view name) {
  const auto& families = Families().by_name;
  auto found = families.find(name);
  return found == families.end() ? nullptr : found->second.get();
}

std::span<const std::string> ToolFamilyNames() { return Families().names; }

}  // namespace portico::parser
