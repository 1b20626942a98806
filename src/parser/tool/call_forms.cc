#include "parser/tool/call_forms.h"

#include <initializer_list>
#include <map>

#include "text/json_writer.h"

namespace portico::parser {
namespace {

using FormNames = std::initializer_list<const char*>;

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
  r->Add({"hermes", "trinity", "granite4", "ernie45"}, hermes);
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

void AddTagForms(FormRegistry* r) {
  CallForm qwen;
  qwen.json_name = false;
  qwen.before_name = "<tool_call>\n<function=";
  qwen.after_name = ">\n";
  qwen.end = "\n</function>\n</tool_call>";
  qwen.separator = "\n";
  qwen.style = "qwen_xml";
  r->Add({"qwen3_coder"}, qwen);
  qwen.before_name = "<seed:tool_call>\n<function=";
  qwen.end = "\n</function>\n</seed:tool_call>";
  r->Add({"seed_oss"}, qwen);

  CallForm glm;
  glm.json_name = false;
  glm.before_name = "<tool_call>";
  glm.end = "</tool_call>";
  glm.style = "glm_xml";
  r->Add({"glm45"}, glm);
  glm.before_name = "<iquest_tool_call>";
  glm.end = "</iquest_tool_call>";
  r->Add({"iquest_q1"}, glm);

  CallForm invoke;
  invoke.json_name = false;
  invoke.section = "<minimax:tool_call>\n";
  invoke.before_name = "<invoke name=\"";
  invoke.after_name = "\">\n";
  invoke.end = "</invoke>\n";
  invoke.section_end = "</minimax:tool_call>";
  invoke.style = "minimax_xml";
  r->Add({"minimax-m2"}, invoke);
  auto dsml = [&](const char* family, const char* section, const char* style) {
    const std::string name(section);
    invoke.section = "<｜DSML｜" + name + ">\n";
    invoke.before_name = "<｜DSML｜invoke name=\"";
    invoke.end = "</｜DSML｜invoke>\n";
    invoke.section_end = "</｜DSML｜" + name + ">";
    invoke.style = style;
    r->Add({family}, invoke);
  };
  dsml("deepseekv32", "function_calls", "deepseek_xml");
  dsml("deepseekv4", "tool_calls", "deepseek_xml");
  invoke.section = "<｜DSML｜ calls>\n";
  invoke.before_name = "<｜DSML｜ invoke name=\"";
  invoke.end = "</｜DSML｜ invoke>\n";
  invoke.section_end = "</｜DSML｜ calls>";
  invoke.style = "deepseek_v4_1_xml";
  r->Add({"deepseekv41"}, invoke);
}

const FormRegistry& Forms() {
  static const FormRegistry* const kForms = [] {
    auto* made = new FormRegistry;
    AddJsonForms(made);
    AddNamedForms(made);
    AddTagForms(made);
    AddPythonForms(made);
    for (auto& [family, form] : made->forms) {
      if (form.begins.empty()) form.begins = form.section.empty() ? form.before_name : form.section;
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
