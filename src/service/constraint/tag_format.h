// Pieces of structural tags, as the grammar room reads them (grammar/tag/structural_tag.h).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "message/constraint.h"
#include "text/json.h"
#include "tokenizer/tokenizer.h"

namespace portico {

Json TagObject(std::string_view type, std::initializer_list<std::pair<std::string, Json>> members);
Json TagToken(TokenId token);
// One behind the other, or one of them. Requires at least one part.
Json TagSequence(JsonArray parts);
Json TagChoice(JsonArray ways);
Json TagOptional(Json content);
Json TagStar(Json content);

// Texts of a model's format. Grammars match special tokens by their ids only, never by their texts.
class TagWriter {
 public:
  // `special`: those that texts may hold.
  TagWriter(const Tokenizer& tokenizer, const absl::flat_hash_set<TokenId>& special);

  // The text, with tokens where it names special ones.
  JsonArray Literal(std::string_view text) const;
  // Of one piece of a literal.
  std::string TextOf(const Json& piece) const;
  // The token in text, and -1 where there is none.
  TokenId TokenOf(std::string_view text) const;

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::pair<std::string_view, TokenId>> special_;  // the longest first
};

// A constraint as a part of a structural tag. INVALID_ARGUMENT with its field: it cannot be one.
StatusOr<Json> TagOfConstraint(const Constraint& constraint);

}  // namespace portico
