// For tests: a vocabulary of single bytes, and whether a grammar takes a text.
#pragma once

#include <xgrammar/xgrammar.h>

#include <string>
#include <string_view>

#include "grammar/compile/grammar_text.h"
#include "grammar/mask/compiled_grammar.h"

namespace portico::grammar {

inline constexpr TokenId kTestEnd = 256;
inline constexpr TokenId kTestMarker = 257;    // <|mark|>, special
inline constexpr TokenId kTestQuoteEnd = 258;  // the text `"}`

inline const Vocabulary& ByteVocabulary() {
  static const Vocabulary vocabulary = [] {
    Vocabulary made;
    for (int byte = 0; byte < 256; ++byte) made.texts.emplace_back(1, static_cast<char>(byte));
    made.texts.push_back("\xFF<|end|>");
    made.texts.push_back("\xFF<|mark|>");
    made.texts.push_back("\"}");
    made.special = {kTestEnd, kTestMarker};
    made.stops = {kTestEnd};
    return made;
  }();
  return vocabulary;
}

inline StatusOr<xgrammar::CompiledGrammar> CompiledForTest(const GrammarText& text) {
  static const xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(ByteVocabulary());
  return CompileText(text, ByteVocabulary(), tokens);
}

// Whether the whole text is an answer.
inline bool Takes(const xgrammar::CompiledGrammar& grammar, std::string_view text) {
  xgrammar::GrammarMatcher matcher(grammar);
  for (const char c : text) {
    if (!matcher.AcceptToken(static_cast<unsigned char>(c))) return false;
  }
  return matcher.IsCompleted();
}

// "yes", "no", or why the schema is refused.
inline std::string SchemaTakes(std::string_view schema, std::string_view text,
                               bool closed_objects = false) {
  GrammarText grammar{GrammarKind::kJsonSchema, std::string(schema)};
  grammar.closed_objects = closed_objects;
  const auto compiled = CompiledForTest(grammar);
  if (!compiled.ok()) return std::string(compiled.status().message());
  return Takes(*compiled, text) ? "yes" : "no";
}

}  // namespace portico::grammar
