#include "service/output/output_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "parser/declared/families.h"
#include "parser/detect/detect.h"
#include "service/output/declared_format.h"

namespace portico {
namespace {

parser::DetectedFormat Detect(const OutputFormatSource& source, const Tokenizer& tokenizer) {
  if (source.chat_template.empty()) {
    return parser::DetectFormatByArchitecture(source.architecture, source.model_type);
  }
  parser::DetectionVocabulary vocabulary;
  vocabulary.has = [&tokenizer](std::string_view token) {
    return tokenizer.TokenToId(token).has_value();
  };
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    std::string_view token = tokenizer.IdToToken(id);
    if (token.starts_with('<') && token.ends_with('>') &&
        token.find(':') != std::string_view::npos) {
      vocabulary.markers.emplace_back(token);
    }
  }
  return parser::DetectFormat(source.chat_template, vocabulary);
}

// Special tokens that are, or are a part of, one of the markers.
void CollectMarkers(const std::vector<std::string>& markers, const Tokenizer& tokenizer,
                    absl::flat_hash_set<TokenId>* out) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.IsSpecial(id)) continue;
    std::string_view token = tokenizer.IdToToken(id);
    if (token.size() < 2) continue;
    const std::string bare = WithoutSuffix(token);
    const bool is_part =
        std::any_of(markers.begin(), markers.end(), [&](const std::string& marker) {
          if (marker == bare || marker.find(token) != std::string::npos) return true;
          // A single character is a part of tokens that have nothing to do with it.
          return marker.size() > 1 && token.find(marker) != std::string_view::npos;
        });
    if (is_part) out->insert(id);
  }
}

// All that marks calls of which one of `begins` is a part.
std::vector<std::string> MarkersOfCalls(const std::vector<std::string>& begins) {
  std::vector<std::string> markers;
  for (const std::string& name : parser::ToolFamilyNames()) {
    const parser::ToolFamily* family = parser::FindToolFamily(name);
    const std::vector<std::string>& own = family->markers;
    const bool begin = std::any_of(begins.begin(), begins.end(), [&own](const auto& one) {
      return std::find(own.begin(), own.end(), one) != own.end();
    });
    if (begin) markers.insert(markers.end(), own.begin(), own.end());
  }
  return markers;
}

// The tags of a form that this checkpoint has with a suffix.
std::vector<std::pair<std::string, std::string>> SuffixedTags(
    const Tokenizer& tokenizer, const absl::flat_hash_set<TokenId>& markers) {
  std::vector<std::pair<std::string, std::string>> tags;
  bool separator = false;
  for (const TokenId id : markers) {
    const std::string_view token = tokenizer.IdToToken(id);
    std::string bare = WithoutSuffix(token);
    separator = separator || bare == "<tool_sep>";
    if (bare != token) tags.emplace_back(std::move(bare), token);
  }
  // Hy4 has no token behind a name.
  if (!markers.empty() && !separator) tags.emplace_back("<tool_sep>", "");
  return tags;
}

// Null: it has none that is known.
std::shared_ptr<const parser::CallForm> FormOf(const parser::ToolFamily& family,
                                               const Tokenizer& tokenizer,
                                               const absl::flat_hash_set<TokenId>& markers) {
  const parser::CallForm* form = parser::FindCallForm(
      family.name, [&](std::string_view token) { return tokenizer.TokenToId(token).has_value(); });
  if (form == nullptr) return nullptr;
  // The library writes the tags of its styles as text, so they must hold no special token.
  if (const auto* members = parser::FindMemberCallForm(family.name);
      members != nullptr && !markers.empty()) {
    form = members;
  }
  if (family.name != "hunyuan") return std::make_shared<const parser::CallForm>(*form);
  return std::make_shared<const parser::CallForm>(
      parser::WithTags(*form, SuffixedTags(tokenizer, markers)));
}

// Whether Harmony's markers are this vocabulary's special tokens.
bool HasHarmonyTokens(const Tokenizer& tokenizer) {
  const std::vector<std::string>& markers = parser::FindToolFamily("gpt-oss")->markers;
  return std::all_of(markers.begin(), markers.end(), [&tokenizer](const std::string& marker) {
    const std::optional<TokenId> id = tokenizer.TokenToId(marker);
    return id && tokenizer.IsSpecial(*id);
  });
}

// The families of what a checkpoint declares.
struct Declared {
  explicit Declared(const std::shared_ptr<const parser::ResponseTemplate>& format)
      : tools(parser::kDeclaredName, format), reasoning(parser::kDeclaredName, format) {}

  const parser::DeclaredTools tools;
  const parser::DeclaredReasoning reasoning;
};

StatusOr<std::shared_ptr<const Declared>> Declare(const Json& response_template) {
  if (response_template.is_null()) {
    return InvalidArgument("response_template",
                           "the model's tokenizer_config.json has no response_template");
  }
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<const parser::ResponseTemplate> format,
                           parser::ResponseTemplate::Load(response_template));
  return std::make_shared<const Declared>(format);
}

void Use(const std::shared_ptr<const Declared>& declared, bool tools, bool reasoning,
         const Tokenizer& tokenizer, ModelOutputFormat* format) {
  if (tools) {
    format->tools = &declared->tools;
    if (auto form = parser::DeclaredCallForm(*declared->tools.format)) {
      format->form = std::make_shared<const parser::CallForm>(*std::move(form));
    }
  }
  if (reasoning) format->reasoning = &declared->reasoning;
  CollectMarkers(declared->tools.markers, tokenizer, &format->markers);
  format->declared = declared;
}

}  // namespace

StatusOr<ModelOutputFormat> MakeOutputFormat(const OutputFormatSource& source,
                                             const Json& response_template,
                                             const Tokenizer& tokenizer) {
  const bool tools = parser::IsDeclaredName(source.tool_call_parser);
  const bool reasoning = parser::IsDeclaredName(source.reasoning_parser);
  OutputFormatSource others = source;
  if (tools) others.tool_call_parser = "none";
  if (reasoning) others.reasoning_parser = "none";
  PORTICO_ASSIGN_OR_RETURN(ModelOutputFormat format, MakeOutputFormat(others, tokenizer));
  const bool finds_tools = source.tool_call_parser == "auto" && format.tools == nullptr;
  const bool finds_reasoning = source.reasoning_parser == "auto" && format.reasoning == nullptr;
  if (!tools && !reasoning && (response_template.is_null() || (!finds_tools && !finds_reasoning))) {
    return format;
  }
  const StatusOr<std::shared_ptr<const Declared>> declared = Declare(response_template);
  if (!declared.ok()) {
    if (tools || reasoning) return declared.status();
    LogWarning("the model's own format of answers is not used: {}", MessageOf(declared.status()));
    return format;
  }
  const auto has = [&](parser::Region::Kind kind) {
    return (*declared)->tools.format->Find(kind) != nullptr;
  };
  Use(*declared, tools || (finds_tools && has(parser::Region::Kind::kCalls)),
      reasoning || (finds_reasoning && has(parser::Region::Kind::kReasoning)), tokenizer, &format);
  return format;
}

std::string WithoutSuffix(std::string_view tag) {
  const size_t colon = tag.find(':');
  if (!tag.starts_with('<') || !tag.ends_with('>') || colon == std::string_view::npos) {
    return std::string(tag);
  }
  return std::string(tag.substr(0, colon)) + ">";
}

StatusOr<ModelOutputFormat> MakeOutputFormat(const OutputFormatSource& source,
                                             const Tokenizer& tokenizer) {
  std::string tools = source.tool_call_parser;
  std::string reasoning = source.reasoning_parser;
  ModelOutputFormat format;
  if (tools == "auto" || reasoning == "auto") {
    parser::DetectedFormat found = Detect(source, tokenizer);
    if (tools == "auto") tools = found.tool_parser;
    if (reasoning == "auto") reasoning = found.reasoning_parser;
    format.reasoning_found = source.reasoning_parser == "auto";
    if (found.mode) {
      format.toggle = found.mode->parameter;
      format.thinks = found.mode->special == "always" ? true : found.mode->enabled;
    }
    // A format that is known by name only is none that can be read.
    if (parser::FindToolFamily(tools) == nullptr) tools.clear();
    if (parser::FindReasoning(reasoning) == nullptr) reasoning.clear();
  }
  if (!tools.empty() && tools != "none" && tools != "passthrough") {
    format.tools = parser::FindToolFamily(tools);
    if (format.tools == nullptr) {
      return InvalidArgument(
          "tool-call-parser",
          fmt::format("--tool-call-parser: there is no parser `{}`; there are auto, none, {}",
                      tools, fmt::join(parser::ToolFamilyNames(), ", ")));
    }
    CollectMarkers(format.tools->markers, tokenizer, &format.markers);
    format.form = FormOf(*format.tools, tokenizer, format.markers);
  }
  if (!reasoning.empty() && reasoning != "none") {
    format.reasoning = parser::FindReasoning(reasoning);
    if (format.reasoning == nullptr) {
      return InvalidArgument(
          "reasoning-parser",
          fmt::format("--reasoning-parser: there is no parser `{}`; there are auto, none, {}",
                      reasoning, fmt::join(parser::ReasoningNames(), ", ")));
    }
    const auto* harmony = parser::FindToolFamily("gpt-oss");
    CollectMarkers(format.reasoning->harmony ? harmony->markers : format.reasoning->markers,
                   tokenizer, &format.markers);
    // Calls that nobody reads are shown: what begins one because it ends reasoning, and so the rest.
    if (format.tools == nullptr && !format.reasoning->calls.empty()) {
      CollectMarkers(MarkersOfCalls(format.reasoning->calls), tokenizer, &format.markers);
    }
  }
  format.marked_by_tokens = format.harmony() && HasHarmonyTokens(tokenizer);
  return format;
}

}  // namespace portico
