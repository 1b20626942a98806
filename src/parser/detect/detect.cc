#include "parser/detect/detect.h"

#include <algorithm>
#include <cctype>

#include "parser/detect/template_text.h"

namespace portico::parser {
namespace {

const ReasoningMode kThinkingOn{
    .parameter = "enable_thinking", .enabled = true, .special = "", .effort = ""};
const ReasoningMode kThinkingOff{
    .parameter = "enable_thinking", .enabled = false, .special = "", .effort = ""};
const ReasoningMode kAlways{.parameter = "", .enabled = {}, .special = "always", .effort = ""};

class Rules {
 public:
  Rules(std::string_view text, const DetectionVocabulary& vocabulary)
      : text_(text), vocabulary_(vocabulary) {}

  std::optional<ReasoningMode> Mode() const;
  std::string Tools() const;
  std::string Reasoning() const;
  void SetMode(std::optional<ReasoningMode> mode) { mode_ = std::move(mode); }

 private:
  bool Text(std::string_view needle) const { return text_.find(needle) != std::string_view::npos; }
  bool Token(std::string_view token) const { return vocabulary_.has && vocabulary_.has(token); }
  bool Is(const ReasoningMode& mode) const { return mode_ == mode; }
  bool ThinkingToggle() const {
    return mode_ && mode_->parameter == "enable_thinking" && mode_->enabled == true;
  }
  // The token, bare or with a checkpoint's suffix: `<NAME>` or `<NAME:…>`.
  bool Suffixed(std::string_view name) const;
  bool DefinedAs(std::string_view parameter, bool value) const;
  bool OnByDefault(const std::string& p) const;
  // `word` where no '<' stands before it.
  bool Switch(std::string_view word) const;

  bool K2Horizon() const {
    return Text("<ifm|think>") && Text("<ifm|tool_calls>") && Text("<ifm|tool_call>");
  }
  bool Interns1() const { return Text("default_thinking_sys") && Is(kThinkingOn); }
  bool Mistral() const { return mode_ && mode_->special == "mistral"; }
  bool Glm45() const;
  bool Glm53() const;
  bool Glm47() const;
  bool Hunyuan() const;
  bool Poolside() const;
  bool Minicpm5() const;
  bool Lfm2() const;
  bool Qwen3Coder() const { return Text("<function=") && Text("<parameter="); }
  bool Step3p5() const;
  bool Step3() const {
    return Text("<steptml:invoke") || (Text("<｜tool_calls_begin｜>") && Text("<｜tool_sep｜>"));
  }
  bool Ling3() const {
    return Text("<role>SYSTEM</role>") && Text("<role>ASSISTANT</role>") && Text("<|role_end|>") &&
           Text("<arg_key>") && Text("<arg_value>");
  }
  bool MinimaxM3() const { return Text("<mm:think>") || Text("]<]minimax[>["); }
  bool Forced() const { return mode_ && mode_->special == "always"; }

  std::string_view text_;
  const DetectionVocabulary& vocabulary_;
  std::optional<ReasoningMode> mode_;
};

bool Rules::Suffixed(std::string_view name) const {
  const std::string bare = "<" + std::string(name) + ">";
  if (Token(bare)) return true;
  const std::string with = "<" + std::string(name) + ":";
  return std::any_of(vocabulary_.markers.begin(), vocabulary_.markers.end(),
                     [&](const std::string& token) {
                       return token.size() > with.size() + 1 && token.starts_with(with) &&
                              token.find('>') == token.size() - 1;
                     });
}

bool Rules::DefinedAs(std::string_view parameter, bool value) const {
  std::string p(parameter);
  std::replace(p.begin(), p.end(), '_', '^');
  const std::string set = "{%~set_" + p + "~=~";
  return HasSequence(
             text_, "{%~if_not_" + p + "_is_defined~%}",
             {set + (value ? "true~%}" : "false~%}"), set + (value ? "True~%}" : "False~%}")}) ||
         HasDefaultFilter(text_, parameter, value);
}

bool Rules::OnByDefault(const std::string& parameter) const {
  std::string p = parameter;
  std::replace(p.begin(), p.end(), '_', '^');
  if (DefinedAs(parameter, true)) return true;
  const std::string is_set = "set_" + p + "~=~" + p + "_if_" + p + "_is_defined_else_";
  if (HasPattern(text_, {is_set + "true", is_set + "True", p + "_is_defined_and_" + p + "_is_false",
                         p + "_is_defined_and_not_" + p, p + "_is_not_defined_or_" + p})) {
    return true;
  }
  // namespace(…parameter = true
  constexpr std::string_view kNamespace = "namespace(";
  for (size_t at = text_.find(kNamespace); at != std::string_view::npos;
       at = text_.find(kNamespace, at + 1)) {
    size_t begin = at + kNamespace.size();
    size_t close = text_.find(')', begin);
    size_t end = 0;
    size_t found = FindPattern(text_, p + "~=~true", begin, &end);
    if (found != std::string_view::npos && found <= close) return true;
  }
  return false;
}

bool Rules::Switch(std::string_view word) const {
  for (size_t at = text_.find(word); at != std::string_view::npos; at = text_.find(word, at + 1)) {
    if (at == 0 || text_[at - 1] != '<') return true;
  }
  return false;
}

std::optional<ReasoningMode> Rules::Mode() const {
  if (Text("<ifm|think>") && Text("<ifm|think_fast>") && Text("reasoning_effort")) return kAlways;
  if (Text("<|channel|>")) return kAlways;
  if (Text("<|im_start|>assistant\\n<think>\\n") && !Text("enable_thinking") && !Text("thinking")) {
    return kAlways;
  }
  if (Glm53()) return kAlways;
  if (Text("reasoning_effort") && Text("[THINK]")) {
    return ReasoningMode{.parameter = "", .enabled = {}, .special = "mistral", .effort = ""};
  }
  if (Text("reasoning_effort") && Text("reasoning_mode_token") && Text("no_think")) {
    return ReasoningMode{.parameter = "", .enabled = {}, .special = "hunyuan_effort", .effort = ""};
  }
  if (DefinedAs("enable_thinking", false)) return kThinkingOff;
  if (Text("low_effort") && Text("truncate_history_thinking")) {
    return ReasoningMode{
        .parameter = "enable_thinking", .enabled = true, .special = "", .effort = "low_effort"};
  }
  if (OnByDefault("enable_thinking")) return kThinkingOn;
  if (DefinedAs("thinking", false)) {
    return ReasoningMode{.parameter = "thinking", .enabled = false, .special = "", .effort = ""};
  }
  if (OnByDefault("thinking")) {
    return ReasoningMode{.parameter = "thinking", .enabled = true, .special = "", .effort = ""};
  }
  return std::nullopt;
}

bool Rules::Glm45() const {
  return (Text("[gMASK]<sop>") || Switch("/nothink") || Switch("/think")) && Token("<tool_call>") &&
         Is(kThinkingOn) && (Token("<|user|>") || Token("<|endoftext|>"));
}

bool Rules::Glm53() const {
  return Text("[gMASK]<sop>") && Text("Reasoning Effort:") && !Text("enable_thinking") &&
         Text("<tool_call>") && Text("<arg_key>") && Text("<arg_value>");
}

bool Rules::Glm47() const {
  if (!Glm45() && !Glm53()) return false;
  for (size_t at = text_.find("{{"); at != std::string_view::npos; at = text_.find("{{", at + 1)) {
    std::string_view rest = text_.substr(at + 2);
    rest.remove_prefix(std::min(rest.find_first_not_of("- \t\r\n"), rest.size()));
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"')) continue;
    rest.remove_prefix(1);
    if (!rest.starts_with("<tool_call>") || rest.size() < 12) continue;
    rest.remove_prefix(11);
    if (rest[0] != '\'' && rest[0] != '"') continue;
    rest.remove_prefix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    if (!rest.empty() && (rest[0] == '~' || rest[0] == '+')) {
      rest.remove_prefix(1);
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
      if (rest.starts_with("tc.name")) return true;
    }
  }
  return false;
}

bool Rules::Hunyuan() const {
  const bool calls = Text("<tool_calls>") || Suffixed("tool_calls");
  const bool separator = Text("<tool_sep>") || Suffixed("tool_sep");
  return (calls && separator) ||
         (calls && mode_ && mode_->special == "hunyuan_effort" && Suffixed("arg_key") &&
          Suffixed("arg_value")) ||
         (Text("reasoning_effort") && Text("interleaved_thinking"));
}

bool Rules::Poolside() const {
  if (Text("<arg_key>") && Text("<arg_value>") &&
      (Text("unescaped XML-like object") ||
       Text("All available function signatures are listed below"))) {
    return true;
  }
  return Is(kThinkingOff) && !Hunyuan() && (Text("<arg_key>") || Token("<arg_key>")) &&
         (Text("<arg_value>") || Token("<arg_value>"));
}

bool Rules::Minicpm5() const {
  if (Token("<function") && Token("<param")) return true;
  return HasPattern(text_, {"<function_name="}) && HasPattern(text_, {"<param_name="});
}

bool Rules::Lfm2() const {
  return (Text("<|tool_call_start|>") || Token("<|tool_call_start|>")) &&
         (Text("<|tool_call_end|>") || Token("<|tool_call_end|>"));
}

bool Rules::Step3p5() const {
  std::string lower(text_);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (size_t at = lower.find("step"); at != std::string::npos; at = lower.find("step", at + 1)) {
    size_t i = at + 4;
    if (i < lower.size() && lower[i] == '-') ++i;
    if (i >= lower.size() || lower[i] != '3') continue;
    ++i;
    if (i < lower.size() && (lower[i] == '.' || lower[i] == 'p')) ++i;
    if (i < lower.size() && (lower[i] == '5' || lower[i] == '7')) return true;
  }
  return Text("reasoning_effort") && Text("Reasoning: ") && Qwen3Coder();
}

std::string Rules::Reasoning() const {
  if (Text("<|iquest_assistant|>")) return "iquest_q1";
  if (K2Horizon()) return "k2_horizon";
  if (Token("<|inner_prefix|>")) return "apertus2509";
  if (Text("<|channel>")) return "gemma4";
  if (Text("◁think▷")) return "kimi";
  if (Interns1()) return "interns1";
  if (Mistral()) return "mistral";
  if (Text("<|channel|>") && Text("<rfl:parameter")) return "beam";
  if (Text("<|channel|>")) return "gpt-oss";
  if (Token("<|tool_calls_section_begin|>")) return "kimi_k2";
  if (Text("truncate_history_thinking") && Text("defer_loading") && ThinkingToggle()) {
    return "granite_thinking_parser";
  }
  if (Text("truncate_history_thinking") && ThinkingToggle()) return "nemotron_3";
  if (Glm45() || Glm53()) return "glm45";
  if (Hunyuan()) return "hunyuan";
  if (Poolside()) return "poolside_v1";
  if (Is(kThinkingOff)) return "mimo";
  if (MinimaxM3()) return "minimax-m3";
  if (Text("<minimax:tool_call>")) return "minimax";
  if (Step3p5()) return "step3p5";
  if (Step3()) return "step3";
  if (Ling3()) return "ling3";
  if (Is(kThinkingOn)) return "qwen3";
  if (Text("<｜DSML｜ calls>")) return "deepseek-v41";
  if (Text("<｜DSML｜tool_calls>")) return "deepseek-v4";
  if (Is({.parameter = "thinking", .enabled = false, .special = "", .effort = ""})) {
    return "deepseek-v3";
  }
  if (Text("<｜GCML｜tool_calls>")) return "gigachat35";
  if (Forced()) return "deepseek-r1";
  if (!Lfm2() && (Text("<think>") || Text("</think>"))) return "deepseek-r1";
  return "";
}

std::string Rules::Tools() const {
  if (Text("<|iquest_assistant|>")) return "iquest_q1";
  if (Text("<｜GCML｜tool_calls>")) return "gigachat35";
  if (K2Horizon()) return "k2_horizon";
  if (Token("<|inner_prefix|>")) return "apertus2509";
  if (Text("<|channel>")) return "gemma4";
  if (Text("<|channel|>") && Text("<rfl:parameter")) return "beam";
  if (Text("<|channel|>")) return "gpt-oss";
  if (Token("<|tool_calls_section_begin|>")) return "kimi_k2";
  if (MinimaxM3()) return "minimax-m3";
  if (Text("<minimax:tool_call>")) return "minimax-m2";
  if (Interns1()) return "interns1";
  if (Mistral()) return "mistral";
  if (Text("<｜DSML｜ calls>")) return "deepseekv41";
  if (Text("<｜DSML｜tool_calls>")) return "deepseekv4";
  if (Text("<｜DSML｜function_calls>")) return "deepseekv32";
  if (Text("<｜tool▁calls▁begin｜>") && Text("<｜tool▁sep｜>")) return "deepseekv31";
  if (Lfm2()) return "lfm2";
  if (Glm47()) return "glm47";
  if (Glm45() || Glm53()) return "glm45";
  if (Minicpm5()) return "minicpm5";
  if (Hunyuan()) return "hunyuan";
  if (Poolside()) return "poolside_v1";
  if (Step3p5()) return "step3p5";
  if (Step3()) return "step3";
  if (Ling3()) return "ling3";
  if (Token("<arg_key>") && Token("<arg_value>")) return "glm45";
  if (Is(kThinkingOff)) return "mimo";
  if (Qwen3Coder()) return "qwen3_coder";
  if (Is(kThinkingOn)) return "qwen";
  if (Is({.parameter = "thinking", .enabled = false, .special = "", .effort = ""})) {
    return "deepseekv3";
  }
  if (Forced()) return "deepseekv3";
  return "";
}

}  // namespace

DetectedFormat DetectFormat(std::string_view chat_template, const DetectionVocabulary& vocabulary) {
  Rules rules(chat_template, vocabulary);
  DetectedFormat format;
  format.mode = rules.Mode();
  rules.SetMode(format.mode);
  format.tool_parser = rules.Tools();
  format.reasoning_parser = rules.Reasoning();
  return format;
}

DetectedFormat DetectFormatByArchitecture(std::string_view architecture,
                                          std::string_view model_type) {
  auto has = [&](std::string_view part) {
    return architecture.find(part) != std::string_view::npos;
  };
  DetectedFormat format;
  auto both = [&](std::string tools, std::string reasoning) {
    format.tool_parser = std::move(tools);
    format.reasoning_parser = std::move(reasoning);
    return format;
  };
  if (has("KimiK3") || model_type == "kimi_k3") return both("kimi_k3", "kimi_k3");
  if (architecture == "IQuestQ1ForCausalLM") return both("iquest_q1", "iquest_q1");
  if (has("BailingMoeV3") || model_type == "bailing_hybrid" || model_type == "bailing_moe_v3_vl") {
    return both("ling3", "ling3");
  }
  if (has("DeepseekV41") || model_type == "deepseek_v41")
    return both("deepseekv41", "deepseek-v41");
  if (has("DeepseekV4")) return both("deepseekv4", "deepseek-v4");
  if (has("DeepseekV3")) return both("deepseekv32", "deepseek-v3");
  if (has("MiniMaxM3Sparse") || model_type == "minimax_m3" || model_type == "minimax_m3_vl") {
    return both("minimax-m3", "minimax-m3");
  }
  if (architecture == "MiniMaxM2ForCausalLM" || model_type == "minimax_m2") {
    return both("minimax-m2", "minimax");
  }
  if (architecture == "MuseSparkForConditionalGeneration") return both("muse", "muse");
  return format;
}

}  // namespace portico::parser
