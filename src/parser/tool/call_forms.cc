#include "parser/tool/call_forms.h"

#include <initializer_list>
#include <map>

#include "text/json_writer.h"

namespace portico::parser {
namespace {

using FormNames = std::initializer_list<const char*>;

constexpr std::string_view kMembersSuffix = " (members)";

struct FormRegistry {
  std::map<std::string, CallForm, std::less<>> forms;

  void Add(const FormNames& families, const CallForm& form) {
    for (const char* family : families) forms[family] = form;
  }
};

// {"name": NAME, "arguments": {…}} between tags.
CallForm Tagged(const std::string& begin, const std::string& end, const std::string& key) {
  CallForm form;
  form.before_name = begin + "{\"name\": \"";
  form.after_name = "\", \"" + key + "\": ";
  form.end = "}" + end;
  form.begins = begin;
  return form;
}

// A list of such objects between markers.
CallForm Listed(const std::string& begin, const std::string& end, const std::string& key) {
  CallForm form = Tagged("", "", key);
  form.section = begin + "[";
  form.separator = ", ";
  form.section_end = "]" + end;
  form.begins = begin;
  return form;
}

CallForm Sectioned(CallForm form, const std::string& begin, const std::string& end) {
  form.section = begin;
  form.section_end = end;
  form.begins = begin;
  return form;
}

void AddJsonForms(FormRegistry* r) {
  CallForm hermes = Tagged("<tool_call>\n", "\n</tool_call>", "arguments");
  hermes.separator = "\n";
  hermes.begins = "<tool_call>";
  r->Add({"hermes", "qwen", "trinity", "granite4", "ernie45"}, hermes);
  r->Add({"longcat"}, Tagged("<longcat_tool_call>", "</longcat_tool_call>", "arguments"));
  CallForm llama = Tagged("", "", "parameters");
  llama.separator = "; ";
  r->Add({"llama3"}, llama);
  r->Add({"json"}, JsonListForm());
  r->Add({"interns1"}, Tagged("<|action_start|><|plugin|>\n", "\n<|action_end|>", "parameters"));
  r->Add({"granite"}, Listed("<|tool_call|>", "", "arguments"));
  r->Add({"granite-20b-fc"}, Tagged("<function_call> ", "", "arguments"));
  r->Add({"jamba"}, Listed("<tool_calls>", "</tool_calls>", "arguments"));
  r->Add({"phi4_mini_json"}, Listed("functools", "", "arguments"));
  CallForm xlam = Listed("", "", "arguments");
  xlam.bare = true;
  r->Add({"xlam"}, xlam);
  r->Add({"sarashina"}, Listed("<|tool_calls|>", "", "arguments"));
  CallForm cohere = Listed("<|START_ACTION|>", "<|END_ACTION|>", "parameters");
  cohere.before_name = "{\"tool_name\": \"";
  r->Add({"cohere_command4"}, cohere);
  CallForm apertus = Listed("<|tools_prefix|>", "<|tools_suffix|>", "");
  apertus.before_name = "{\"";
  apertus.after_name = "\": ";
  r->Add({"apertus2509"}, apertus);
  r->Add({"k2_horizon"}, Sectioned(Tagged("<ifm|tool_call>", "</ifm|tool_call>", "arguments"),
                                   "<ifm|tool_calls>", "</ifm|tool_calls>"));
  r->Add({"gigachat3"}, Tagged("<|function_call|>", "", "arguments"));
  r->Add({"mistral"}, Listed("[TOOL_CALLS] ", "", "arguments"));
  CallForm named;
  named.before_name = "[TOOL_CALLS]";
  named.after_name = "[ARGS]";
  named.json_name = false;
  r->Add({"mistral [ARGS]"}, named);
}

void AddNamedForms(FormRegistry* r) {
  CallForm deepseek;
  deepseek.json_name = false;
  deepseek.section = "<｜tool▁calls▁begin｜>";
  deepseek.before_name = "<｜tool▁call▁begin｜>";
  deepseek.after_name = "<｜tool▁sep｜>";
  deepseek.end = "<｜tool▁call▁end｜>";
  deepseek.section_end = "<｜tool▁calls▁end｜>";
  r->Add({"deepseekv31"}, deepseek);
  deepseek.before_name += "function<｜tool▁sep｜>";
  deepseek.after_name = "\n```json\n";
  deepseek.end = "\n```<｜tool▁call▁end｜>";
  deepseek.separator = "\n";
  r->Add({"deepseekv3"}, deepseek);
  CallForm kimi;
  kimi.json_name = false;
  kimi.section = "<|tool_calls_section_begin|>";
  kimi.before_name = "<|tool_call_begin|>functions.";
  kimi.after_name = ":";
  kimi.counter_end = "<|tool_call_argument_begin|>";
  kimi.end = "<|tool_call_end|>";
  kimi.section_end = "<|tool_calls_section_end|>";
  r->Add({"kimi_k2"}, kimi);
  auto plamo = [](const std::string& word) { return "<|plamo:" + word + ":plamo|>"; };
  CallForm named;
  named.json_name = false;
  named.section = plamo("begin_tool_requests");
  named.before_name = plamo("begin_tool_request") + plamo("begin_tool_name");
  named.after_name = plamo("end_tool_name") + plamo("begin_tool_arguments") +
                     "<|plamo:constrain|>json<|plamo:msg|>";
  named.end = plamo("end_tool_arguments") + plamo("end_tool_request");
  named.section_end = plamo("end_tool_requests");
  r->Add({"plamo3"}, named);
  named = CallForm{};
  named.json_name = false;
  named.section = "<｜GCML｜tool_calls>\n";
  named.before_name = "<｜GCML｜invoke name=\"";
  named.after_name = "\">";
  named.end = "</｜GCML｜invoke>\n";
  named.section_end = "</｜GCML｜tool_calls>";
  r->Add({"gigachat35"}, named);
  named.section = "<dots_function_call>\n";
  named.before_name = "<invoke name=\"";
  named.end = "</invoke>\n";
  named.section_end = "</dots_function_call>";
  r->Add({"dots"}, named);
}

void AddPythonForms(FormRegistry* r) {
  CallForm list;
  list.json_name = false;
  list.style = kPythonStyle;
  list.section = "[";
  list.after_name = "(";
  list.end = ")";
  list.separator = ", ";
  list.section_end = "]";
  list.bare = true;
  r->Add({"pythonic"}, list);
  list.bare = false;
  r->Add({"lfm2"}, Sectioned(list, "<|tool_call_start|>[", "]<|tool_call_end|>"));
  list.separator = "\n";
  r->Add({"olmo3"}, Sectioned(list, "<function_calls>\n", "\n</function_calls>"));
}

// Of families of tags: by the style that the grammar library has for their arguments, and without it.
void AddStyled(FormRegistry* r, const char* family, CallForm form, std::string_view style,
               MemberForm members) {
  CallForm own = form;
  form.style = style;
  r->Add({family}, form);
  own.style = kMemberStyle;
  // The style's arguments end without a line break.
  if (own.end.starts_with('\n') && members.end.ends_with('\n')) own.end.erase(0, 1);
  own.members = std::move(members);
  const std::string name = family + std::string(kMembersSuffix);
  r->Add({name.c_str()}, own);
}

void AddTagForms(FormRegistry* r) {
  CallForm qwen;
  qwen.json_name = false;
  qwen.before_name = "<tool_call>\n<function=";
  qwen.after_name = ">\n";
  qwen.end = "\n</function>\n</tool_call>";
  qwen.separator = "\n";
  const MemberForm parameter = {.before = "<parameter=", .after = ">\n", .end = "\n</parameter>\n"};
  AddStyled(r, "qwen3_coder", qwen, "qwen_xml", parameter);
  qwen.before_name = "<seed:tool_call>\n<function=";
  qwen.end = "\n</function>\n</seed:tool_call>";
  AddStyled(r, "seed_oss", qwen, "qwen_xml", parameter);

  CallForm glm;
  glm.json_name = false;
  glm.before_name = "<tool_call>";
  glm.end = "</tool_call>";
  const MemberForm pair = {
      .before = "<arg_key>", .after = "</arg_key><arg_value>", .end = "</arg_value>"};
  AddStyled(r, "glm45", glm, "glm_xml", pair);
  glm.before_name = "<iquest_tool_call>";
  glm.end = "</iquest_tool_call>";
  AddStyled(r, "iquest_q1", glm, "glm_xml", pair);

  CallForm invoke;
  invoke.json_name = false;
  invoke.section = "<minimax:tool_call>\n";
  invoke.before_name = "<invoke name=\"";
  invoke.after_name = "\">\n";
  invoke.end = "</invoke>\n";
  invoke.section_end = "</minimax:tool_call>";
  AddStyled(r, "minimax-m2", invoke, "minimax_xml",
            {.before = "<parameter name=\"", .after = "\">", .end = "</parameter>\n"});
  const auto dsml = [&](const char* family, const std::string& gap, const std::string& section,
                        const char* style) {
    const std::string mark = "｜DSML｜" + gap;
    invoke.section = "<" + mark + section + ">\n";
    invoke.before_name = "<" + mark + "invoke name=\"";
    invoke.end = "</" + mark + "invoke>\n";
    invoke.section_end = "</" + mark + section + ">";
    AddStyled(r, family, invoke, style,
              {.before = "<" + mark + "parameter name=\"",
               .after = "\" string=\"{}\">",
               .end = "</" + mark + "parameter>\n",
               .typed = MemberForm::Typed::kString});
  };
  dsml("deepseekv32", "", "function_calls", "deepseek_xml");
  dsml("deepseekv4", "", "tool_calls", "deepseek_xml");
  dsml("deepseekv41", " ", "calls", "deepseek_v4_1_xml");
}

CallForm OfMembers(const std::string& before_name, const std::string& after_name,
                   const std::string& end, MemberForm members) {
  CallForm form;
  form.json_name = false;
  form.before_name = before_name;
  form.after_name = after_name;
  form.end = end;
  form.style = kMemberStyle;
  form.members = std::move(members);
  return form;
}

void AddMemberForms(FormRegistry* r) {
  CallForm mimo = OfMembers("<tool_call>\n<function=", ">\n", "</function>\n</tool_call>",
                            {.before = "<parameter=", .after = ">", .end = "</parameter>\n"});
  mimo.separator = "\n";
  r->Add({"mimo"}, mimo);
  const auto hunyuan = [](const std::string& separator) {
    return Sectioned(
        OfMembers(
            "<tool_call>", separator + "\n", "</tool_call>\n",
            {.before = "<arg_key>", .after = "</arg_key>\n<arg_value>", .end = "</arg_value>\n"}),
        "<tool_calls>\n", "</tool_calls>");
  };
  r->Add({"hunyuan"}, hunyuan("<tool_sep>"));
  r->Add({"step3"},
         Sectioned(OfMembers("<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"",
                             "\">", "</steptml:invoke><｜tool_call_end｜>\n",
                             {.before = "<steptml:parameter name=\"",
                              .after = "\">",
                              .end = "</steptml:parameter>"}),
                   "<｜tool_calls_begin｜>\n", "<｜tool_calls_end｜>"));
  r->Add({"minicpm5"}, OfMembers("<function name=\"", "\">", "</function>",
                                 {.before = "<param name=\"",
                                  .after = "\">",
                                  .end = "</param>",
                                  .excludes = {"<![CDATA["}}));
  CallForm k3 = Sectioned(OfMembers("<|open|>call tool=\"", "\" index=\"", "<|close|>call<|sep|>",
                                    {.before = "<|open|>argument key=\"",
                                     .after = "\" type=\"{}\"<|sep|>",
                                     .end = "<|close|>argument<|sep|>",
                                     .typed = MemberForm::Typed::kType}),
                          "<|open|>tools<|sep|>", "<|close|>tools<|sep|>");
  k3.counter_end = "\"<|sep|>";
  r->Add({"kimi_k3"}, k3);
  const std::string mark = "]<]minimax[>[";
  r->Add({"minimax-m3"}, Sectioned(OfMembers(mark + "<invoke name=\"", "\">", mark + "</invoke>\n",
                                             {.before = mark + "<",
                                              .after = ">",
                                              .end = mark + "</{}>",
                                              .excludes = {mark},
                                              .no_keys = {"invoke", "tool_call"}}),
                                   mark + "<tool_call>\n", mark + "</tool_call>"));
  r->Add({"gemma4"}, OfMembers("<|tool_call>call:", "{", "}<tool_call|>",
                               {.after = ":", .separator = ",", .quote = "<|\"|>"}));
  r->Add({"functiongemma"}, OfMembers("<start_function_call>call:", "{", "}<end_function_call>",
                                      {.after = ":", .separator = ",", .quote = "<escape>"}));
  r->Add({"muse"}, Sectioned(OfMembers("<atem:invoke name=\"", "\">\n", "</atem:invoke>\n",
                                       {.before = "<atem:parameter name=\"",
                                        .after = "\">",
                                        .end = "</atem:parameter>\n"}),
                             "<atem:function_calls>\n", "</atem:function_calls>"));
  CallForm beam = OfMembers(" to=", "<|channel|>analysis <|constrain|>xml<|message|>", "<|call|>",
                            {.before = "<rfl:parameter name=\"",
                             .after = "\">\n",
                             .end = "\n</rfl:parameter>",
                             .text_default = true});
  beam.bare = true;
  r->Add({"beam"}, beam);
  // A message to a tool is told from others by what stands behind its header.
  CallForm inkling = Tagged("<|content_invoke_tool_json|>", "<|end_message|>", "args");
  inkling.lead = inkling.separator = "<|message_model|>";
  r->Add({"inkling"}, inkling);
}

const FormRegistry& Forms() {
  static const FormRegistry* const kForms = [] {
    auto* made = new FormRegistry;
    AddJsonForms(made);
    AddNamedForms(made);
    AddTagForms(made);
    AddMemberForms(made);
    AddPythonForms(made);
    for (auto& [family, form] : made->forms) {
      if (!form.begins.empty()) continue;
      // Models write line breaks between tags, or none.
      form.begins = form.section.empty() ? form.before_name : form.section;
      form.begins = form.begins.substr(0, form.begins.find('\n'));
    }
    return made;
  }();
  return *kForms;
}

}  // namespace

const CallForm& JsonListForm() {
  static const CallForm* const kForm = [] {
    auto* form = new CallForm(Listed("", "", "parameters"));
    form->bare = true;
    return form;
  }();
  return *kForm;
}

const CallForm* FindCallForm(std::string_view family,
                             const std::function<bool(std::string_view)>& has_token) {
  const auto& forms = Forms().forms;
  auto found = forms.find(family);
  if (family == "mistral" && has_token("[ARGS]")) found = forms.find("mistral [ARGS]");
  return found == forms.end() ? nullptr : &found->second;
}

const CallForm* FindMemberCallForm(std::string_view family) {
  const auto& forms = Forms().forms;
  const auto found = forms.find(std::string(family) + std::string(kMembersSuffix));
  return found == forms.end() ? nullptr : &found->second;
}

CallForm WithTags(CallForm form, const std::vector<std::pair<std::string, std::string>>& tags) {
  for (std::string* text : {&form.section, &form.before_name, &form.after_name, &form.end,
                            &form.separator, &form.section_end, &form.begins, &form.members.before,
                            &form.members.after, &form.members.end}) {
    for (const auto& [tag, as] : tags) {
      for (size_t at = text->find(tag); at != std::string::npos;
           at = text->find(tag, at + as.size())) {
        text->replace(at, tag.size(), as);
      }
    }
  }
  return form;
}

std::string WriteCall(const CallForm& form, std::string_view name, std::string_view arguments,
                      int number) {
  std::string text = form.before_name;
  if (form.json_name) {
    std::string quoted;
    AppendJsonString(name, &quoted);
    text += quoted.substr(1, quoted.size() - 2);
  } else {
    text += name;
  }
  text += form.after_name;
  if (!form.counter_end.empty()) text += std::to_string(number) + form.counter_end;
  text += arguments;
  return text + form.end;
}

}  // namespace portico::parser
