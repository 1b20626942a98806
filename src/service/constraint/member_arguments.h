// Arguments of calls in a family's own MemberForm, as a part of a structural tag.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "parser/core/tool_set.h"
#include "parser/tool/call_forms.h"
#include "service/constraint/tag_budget.h"
#include "service/constraint/tag_format.h"
#include "text/json.h"

namespace portico {

// What a text in an argument cannot hold, as the family's parser would take it for a marker.
std::vector<std::string> TextExcludes(const std::vector<std::string>& markers,
                                      const parser::MemberForm& form);

// Of a request: beyond them arguments are any.
inline constexpr int kMaxMemberParts = 1400;

// Texts are written as such where the parser, which goes by the schema's types, reads them so; all other values are JSON. What
// a schema says beyond what can be written so is left out, and the arguments are not exact().
class MemberArguments {
 public:
  // The part of one value that is written as JSON, which takes its bytes from the budget.
  using JsonPart = std::function<Json(const Json& schema, TagBudget* budget)>;

  // All outlive this. `types`: of the arguments, as the parser has them. `left`: of the parts that all tools of a request may
  // have together, and `budget`: of their bytes. `rest`: of the bytes of arguments that may be any, as there is no more budget.
  MemberArguments(const TagWriter& tags, const parser::MemberForm& form,
                  const std::vector<std::string>& excludes, const JsonPart& json,
                  const parser::ValueTypes* types, int* left, TagBudget* budget, TagBudget* rest)
      : tags_(tags),
        form_(form),
        excludes_(excludes),
        json_(json),
        types_(types),
        left_(*left),
        budget_(budget),
        rest_(rest) {}

  // Of an object's schema, which outlives this; null: there are no arguments.
  Json Write(const Json& schema);
  bool exact() const { return exact_; }

 private:
  Json Members(const Json& schema);
  Json Member(const std::string& before, const std::string& name, const Json& given);
  Json Framed(const std::string& before, const std::string& name, std::string_view type,
              Json value) const;
  // Of any name.
  Json FramedAny(const std::string& before, std::string_view type, Json value) const;
  // For each type that the form names, `framed` makes a member of it.
  Json TypedWays(const Json& schema, parser::TypeSet types,
                 const std::function<Json(std::string_view type, Json value)>& framed);
  // Any members, where a schema's cannot be written.
  Json AnyMembers(const Json& schema);
  Json Value(const Json& schema, parser::TypeSet types);
  // With quotes around texts, on every level.
  Json QuotedValue(const Json& given);
  Json QuotedWays(const Json& schema, parser::TypeSet types);
  Json QuotedObject(const Json& schema);
  Json QuotedList(const Json& schema);
  // Any value of these types; 0: of all.
  Json AnyQuoted(parser::TypeSet types) const;
  Json Text(const Json& schema, parser::TypeSet types);
  Json AnyText() const;
  Json JsonOf(const Json& schema, parser::TypeSet types);
  Json Quoted(Json text) const;
  JsonArray Literal(std::string_view text) const;
  // What a reference, or an allOf of one schema, stands for if it says no more.
  const Json& Resolved(const Json& given);
  const Json* Referred(const Json& schema);
  // As parsers see it.
  parser::TypeSet TypesOf(const Json& schema, int depth = 0);
  // Takes what it costs to look at the schema, without those in it. False: the budget is spent.
  bool Look(const Json& schema);
  bool TakesKey(std::string_view name) const;

  const TagWriter& tags_;
  const parser::MemberForm& form_;
  const std::vector<std::string>& excludes_;
  const JsonPart& json_;
  const parser::ValueTypes* const types_;
  int& left_;
  TagBudget* budget_;
  TagBudget* const rest_;
  const Json* root_ = nullptr;
  bool exact_ = true;
  absl::flat_hash_map<std::string, const Json*> targets_;  // of references
  std::vector<const Json*> open_;                          // schemas that are being written
};

}  // namespace portico
