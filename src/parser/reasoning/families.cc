#include "parser/reasoning/families.h"

#include <map>
#include <utility>

#include "parser/declared/declared_parser.h"
#include "parser/declared/families.h"

namespace portico::parser {
namespace {

using Names = std::vector<std::string>;

struct Registry {
  std::map<std::string, std::shared_ptr<ReasoningChoice>, std::less<>> by_name;
  Names names;

  ReasoningChoice& Add(const Names& names_of, ReasoningFamily family) {
    auto choice = std::make_shared<ReasoningChoice>();
    choice->name = names_of.front();
    choice->inside = family.inside;
    for (const auto* some : {&family.starts, &family.ends, &family.calls, &family.dropped}) {
      choice->markers.insert(choice->markers.end(), some->begin(), some->end());
    }
    choice->calls = family.calls;
    choice->splitter = std::make_shared<const ReasoningSplitter::Compiled>(std::move(family));
    for (const std::string& name : names_of) by_name[name] = choice;
    return *choice;
  }
};

ReasoningFamily Think() { return {.starts = {"<think>"}, .ends = {"</think>"}}; }

ReasoningFamily ThinkUntilCall(Names calls, bool line_start) {
  ReasoningFamily family = Think();
  family.calls = std::move(calls);
  family.calls_at_line_start = line_start;
  return family;
}

void AddThinkFamilies(Registry* r) {
  ReasoningFamily inside = Think();
  inside.inside = true;
  r->Add({"deepseek-r1", "deepseek_r1", "step3", "step3p5", "step5", "gigachat35", "iquest_q1"},
         inside);
  r->Add({"base", "deepseek-v3", "deepseek_v3", "deepseek_v31", "holo2", "minicpmv", "dots"},
         Think());
  // Some Qwen models call a tool without closing the block; a tag in the middle of a line is talk.
  ReasoningFamily qwen = ThinkUntilCall({"<tool_call>"}, true);
  r->Add({"qwen3", "mimo", "nanbeige", "interns1", "poolside_v1", "nemotron_3", "nemotron_v3",
          "nano_v3"},
         qwen);
  qwen.inside = true;
  r->Add({"qwen3-thinking", "qwen3_thinking"}, qwen);
  ReasoningFamily minimax = ThinkUntilCall({"<minimax:tool_call>"}, true);
  minimax.inside = true;
  r->Add({"minimax", "minimax_m2"}, minimax);
  r->Add({"deepseek-v4", "deepseek_v4", "deepseek-v41", "deepseek_v41"},
         ThinkUntilCall({"<｜DSML｜tool_calls>", "<｜DSML｜ calls>", "<｜DSML｜function_calls>"},
                        false));
  r->Add({"glm45", "glm47", "ling3", "granite_thinking_parser"},
         ThinkUntilCall({"<tool_call>"}, true));
  const Names kimi_calls = {"<|tool_calls_section_begin|>", "<|tool_call_begin|>"};
  r->Add({"kimi_k2", "kimi_k25"}, ThinkUntilCall(kimi_calls, false));
  ReasoningFamily kimi_thinking = ThinkUntilCall(kimi_calls, false);
  kimi_thinking.inside = true;
  r->Add({"kimi_thinking"}, kimi_thinking);
  r->Add({"minimax-append-think", "minimax_m2_append_think"}, {.before_content = "<think>"});
  ReasoningFamily hunyuan = ThinkUntilCall({"<tool_calls>"}, false);
  hunyuan.suffixed = true;
  r->Add({"hunyuan", "hy_v3", "hy_v4"}, hunyuan);
  r->Add({"hunyuan_a13b"}, {.starts = {"<think>\n", "<think>"},
                            .ends = {"</think>", "\n</think>", "\n</think>\n", "</think>\n"},
                            .dropped = {"<answer>", "<answer>\n", "\n</answer>", "</answer>"}});
  ReasoningFamily ernie = ThinkUntilCall({"<tool_call>"}, true);
  ernie.inside = true;
  ernie.dropped = {"<response>", "<response>\n", "\n</response>\n", "\n</response>", "</response>"};
  r->Add({"ernie45"}, ernie);
  r->Add({"olmo3"}, inside);
}

void AddOtherFamilies(Registry* r) {
  r->Add({"passthrough"}, {});  // smg's name for none
  r->Add({"kimi"}, {.starts = {"◁think▷"}, .ends = {"◁/think▷"}});
  r->Add({"mistral"}, {.starts = {"[THINK]"},
                       .ends = {"[/THINK]"},
                       .calls = {"[TOOL_CALLS]"},
                       .drop_stray_ends = true});
  r->Add({"minimax-m3", "minimax_m3"},
         {.starts = {"<mm:think>"}, .ends = {"</mm:think>"}, .drop_stray_ends = true});
  r->Add({"gemma4"}, {.starts = {"<|channel>thought\n", "<|channel>thought", "<|channel>"},
                      .ends = {"<channel|>", "\n<channel|>"},
                      .calls = {"<|tool_call>"},
                      .again = true,
                      .drop_stray_ends = true});
  const Names response = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>",
                          "<|END_TEXT|>"};
  r->Add({"cohere_command4", "cohere_command3"}, {.starts = {"<|START_THINKING|>"},
                                                  .ends = {"<|END_THINKING|>"},
                                                  .inside = true,
                                                  .calls = {"<|START_ACTION|>"},
                                                  .dropped = response});
  r->Add({"cohere_cmd"}, {.starts = {"<|START_THINKING|>"},
                          .ends = {"<|END_THINKING|>"},
                          .calls = {"<|START_ACTION|>"},
                          .dropped = response});
  r->Add({"apertus2509", "apertus"}, {.starts = {"<|inner_prefix|>"},
                                      .ends = {"<|inner_suffix|>"},
                                      .calls_inside = true,
                                      .again = true});
  r->Add({"k2_horizon"}, {.starts = {"<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"},
                          .ends = {"</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"},
                          .inside = true,
                          .calls = {"<ifm|tool_call>", "<ifm|tool_calls>"}});
  r->Add({"kimi_k3"}, {.starts = {"<|open|>think<|sep|>"},
                       .ends = {"<|close|>think<|sep|>"},
                       .inside = true,
                       .calls = {"<|open|>tools<|sep|>", "<|open|>response<|sep|>"},
                       .dropped = {"<|open|>response<|sep|>", "<|close|>response<|sep|>",
                                   "<|close|>message<|sep|>"}});
  r->Add({"inkling"}, {.starts = {"<|message_model|><|content_thinking|>", "<|content_thinking|>"},
                       .ends = {"<|end_message|>"},
                       .again = true,
                       .dropped = {"<|message_model|><|content_text|>", "<|content_text|>"}});
  r->Add({"granite"}, {.starts = {"Here is my thought process:", "Here's my thought process:"},
                       .ends = {"Here is my response:", "Here's my response:"}});
  r->Add({"plamo3"}, {.starts = {"<|plamo:begin_think:plamo|>"},
                      .ends = {"<|plamo:end_think:plamo|>"},
                      .calls = {"<|plamo:begin_tool_requests:plamo|>"},
                      .drop_stray_ends = true});
  r->Add({"seed_oss"}, {.starts = {"<seed:think>"}, .ends = {"</seed:think>"}, .inside = true});
  r->by_name["beam"] = std::make_shared<DeclaredReasoning>("beam", BeamTemplate());
  for (const char* name : {"muse", "musespark1x", "muse_glimmer"}) {
    r->by_name[name] = std::make_shared<DeclaredReasoning>("muse", MuseTemplate());
  }
  ReasoningChoice& harmony = r->Add({"gpt-oss", "openai_gptoss", "harmony", "openai"}, {});
  harmony.harmony = true;
  harmony.splitter = nullptr;
}

const Registry& Families() {
  static const Registry* const kFamilies = [] {
    auto* made = new Registry;
    AddThinkFamilies(made);
    AddOtherFamilies(made);
    for (const auto& [name, choice] : made->by_name) made->names.push_back(name);
    return made;
  }();
  return *kFamilies;
}

}  // namespace

const ReasoningChoice* FindReasoning(std::string_view name) {
  const auto& families = Families().by_name;
  auto found = families.find(name);
  return found == families.end() ? nullptr : found->second.get();
}

std::span<const std::string> ReasoningNames() { return Families().names; }

}  // namespace portico::parser
