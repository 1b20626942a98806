#include "grammar/compile/grammar_text.h"

#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/mask/compiled_grammar.h"
#include "grammar/mask/mask_tensor.h"
#include "grammar/schema/expr.h"
#include "grammar/schema/json_schema.h"
#include "grammar/schema/pattern.h"
#include "grammar/tag/ebnf_literals.h"
#include "grammar/tag/structural_tag.h"
#include "grammar/tag/tag_space.h"
#include "text/json.h"
#include "text/utf8.h"

namespace portico::grammar {
namespace {

constexpr int kMaxRecursion = 2000;

Status Invalid(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

// The library's messages name its own source lines first.
std::string Reason(std::string_view what) {
  const size_t check = what.find("Check failed: ");
  if (check != std::string_view::npos) what.remove_prefix(check);
  while (what.starts_with('[')) {
    const size_t end = what.find("] ");
    if (end == std::string_view::npos) break;
    what.remove_prefix(end + 2);
  }
  const size_t place = what.find(".cc:");
  if (place != std::string_view::npos) {
    const size_t text = what.find(": ", place);
    if (text != std::string_view::npos) what.remove_prefix(text + 2);
  }
  while (what.ends_with('\n')) what.remove_suffix(1);
  return ToValidUtf8(what.substr(0, 500));
}

StatusOr<std::string> ChoiceEbnf(std::string_view text) {
  PORTICO_ASSIGN_OR_RETURN(const Json choices, Json::Parse(text));
  if (!choices.is_array() || choices.as_array().empty()) {
    return Invalid("it must be a list of strings that is not empty");
  }
  std::vector<Expr> ways;
  for (const Json& choice : choices.as_array()) {
    if (!choice.is_string()) return Invalid("it must be a list of strings");
    // The library's texts end there.
    if (choice.as_string().find('\0') != std::string::npos) {
      return Invalid("a choice must not have NUL characters");
    }
    ways.push_back(Expr::Text(choice.as_string()));
  }
  RuleSet rules;
  rules.Set(rules.Add("root"), Expr::Choice(std::move(ways)));
  return rules.Print();
}

// Whether a tag may: as a format, in EBNF or in Lark.
bool NamesTokens(std::string_view tag) {
  return tag.find("token") != tag.npos || tag.find("Token") != tag.npos ||
         tag.find("<[") != tag.npos;
}

// `cached`: the library may use its cache of masks.
StatusOr<xgrammar::Grammar> Parsed(const GrammarText& text, const Vocabulary& vocabulary,
                                   const xgrammar::TokenizerInfo& tokens, const TextLimits& limits,
                                   bool* cached) {
  SchemaOptions options;
  options.max_bytes = static_cast<size_t>(limits.bytes);
  options.max_depth = static_cast<size_t>(limits.depth);
  options.max_branches = limits.branches;
  options.max_rules = limits.rules;
  options.closed_objects = text.closed_objects;
  options.compact = text.compact;
  StatusOr<std::string> ebnf = text.text;
  switch (text.kind) {
    case GrammarKind::kJsonSchema:
      ebnf = JsonSchemaToEbnf(text.text, options);
      break;
    case GrammarKind::kJsonObject:
      ebnf = JsonSchemaToEbnf(R"({"type":"object"})", options);
      break;
    case GrammarKind::kChoice:
      ebnf = ChoiceEbnf(text.text);
      break;
    case GrammarKind::kRegex:
      ebnf = RegexToEbnf(text.text);
      break;
    case GrammarKind::kEbnf:
      if (HasNulInLiteral(text.text)) {
        return Invalid("its literals must not have NUL characters");
      }
      if (text.text.find("::=") == std::string::npos) {
        return xgrammar::Grammar::FromLark(text.text, tokens);
      }
      break;
    case GrammarKind::kStructuralTag: {
      PORTICO_ASSIGN_OR_RETURN(const std::string tag,
                               RewriteStructuralTag(text.text, vocabulary, options));
      // The cache mixes up tags that name tokens. Without it 32 tools take six times as long.
      *cached = !NamesTokens(tag);
      auto grammar = xgrammar::Grammar::FromStructuralTag(tag, tokens);
      if (auto* const good = std::get_if<xgrammar::Grammar>(&grammar)) return std::move(*good);
      return Invalid(std::visit([](const auto& error) { return Reason(error.what()); },
                                std::get<xgrammar::StructuralTagError>(grammar)));
    }
  }
  if (!ebnf.ok()) return ebnf.status();
  return xgrammar::Grammar::FromEBNF(*ebnf);
}

// Whether an answer can begin.
bool AllowsAToken(const xgrammar::CompiledGrammar& grammar) {
  const auto tokens = static_cast<size_t>(grammar.GetTokenizerInfo().GetVocabSize());
  std::vector<uint32_t> mask(MaskWords(tokens));
  MaskTensor tensor(mask);
  xgrammar::GrammarMatcher matcher(grammar);
  if (!matcher.FillNextTokenBitmask(tensor.get())) return true;  // all are allowed
  return std::any_of(mask.begin(), mask.end(), [](uint32_t word) { return word != 0; });
}

}  // namespace

SpaceRule SpaceRuleOf(const GrammarText& text) {
  switch (text.kind) {
    case GrammarKind::kJsonSchema:
    case GrammarKind::kJsonObject:
      return SpaceRule::kJson;
    case GrammarKind::kStructuralTag:
      return SpaceRuleOfTag(text.text);
    case GrammarKind::kRegex:
    case GrammarKind::kEbnf:
    case GrammarKind::kChoice:
      break;
  }
  return SpaceRule::kFree;
}

std::string GrammarText::Key() const {
  return fmt::format("{}{}{}{}", static_cast<int>(kind), closed_objects ? 'c' : 'o',
                     compact ? 'c' : 's', text);
}

xgrammar::TokenizerInfo MakeTokenizerInfo(const Vocabulary& vocabulary) {
  return xgrammar::TokenizerInfo(vocabulary.texts, xgrammar::VocabType::RAW,
                                 static_cast<int>(vocabulary.texts.size()), vocabulary.stops);
}

StatusOr<xgrammar::CompiledGrammar> CompileText(const GrammarText& text,
                                                const Vocabulary& vocabulary,
                                                const xgrammar::TokenizerInfo& tokens,
                                                const TextLimits& limits) {
  if (static_cast<int64_t>(text.text.size()) > limits.bytes) {
    return Invalid(fmt::format("it has more than {} bytes", limits.bytes));
  }
  if (!IsValidUtf8(text.text) || text.text.find('\0') != std::string::npos) {
    return Invalid("it must be UTF-8 text without NUL characters");
  }
  try {
    xgrammar::SetMaxRecursionDepth(kMaxRecursion);
    bool cached = true;
    PORTICO_ASSIGN_OR_RETURN(const xgrammar::Grammar grammar,
                             Parsed(text, vocabulary, tokens, limits, &cached));
    xgrammar::GrammarCompiler compiler(tokens, /*max_threads=*/1, cached);
    xgrammar::CompiledGrammar compiled = compiler.CompileGrammar(grammar);
    if (!AllowsAToken(compiled)) return Invalid("it allows nothing");
    return compiled;
  } catch (const std::bad_alloc&) {
    return Error(StatusCode::kResourceExhausted, "it needs too much memory to compile");
  } catch (const std::exception& e) {
    return Invalid(Reason(e.what()));
  }
}

}  // namespace portico::grammar
