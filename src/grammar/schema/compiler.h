// The walk from a schema to rules (json_schema.h). Used by one thread, once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "grammar/schema/counted_piece.h"
#include "grammar/schema/document.h"
#include "grammar/schema/expr.h"
#include "grammar/schema/json_schema.h"
#include "grammar/schema/json_text.h"
#include "grammar/schema/keywords.h"

namespace portico::grammar {

// Keywords of a schema that a choice or a reference has taken care of.
enum Done : uint32_t {
  kRefDone = 1,
  kAllOfDone = 2,
  kAnyOfDone = 4,
  kOneOfDone = 8,
  kIfDone = 16,
  kNotDone = 32,
  kDependentDone = 64,
};

struct Part {
  const Json* schema = nullptr;
  uint32_t done = 0;
  auto operator<=>(const Part&) const = default;
};
// Schemas that hold at once; sorted, without doubles. None: any value.
using Parts = std::vector<Part>;

class SchemaCompiler {
 public:
  SchemaCompiler(Json schema, const SchemaOptions& options);

  StatusOr<std::string> Run();

 private:
  Status CheckSatisfiable();
  // What several members of an object or items of an array have in common.
  struct ObjectShape;

  StatusOr<int32_t> RuleOf(Parts parts);
  StatusOr<Expr> ValueOf(Parts parts);
  StatusOr<int32_t> Shared(std::string_view name, Expr body);

  // Follows references and allOf. nullopt: nothing satisfies them.
  StatusOr<std::optional<Parts>> Flatten(Parts parts) const;
  StatusOr<Expr> Build(const Parts& parts);
  StatusOr<std::optional<Expr>> Finite(const Parts& parts);
  StatusOr<std::optional<Expr>> Choices(const Parts& parts);
  StatusOr<std::optional<std::vector<const Json*>>> BranchesOf(Part* part);
  StatusOr<std::vector<const Json*>> OneOfBranches(const Json* schema);
  StatusOr<bool> Disjoint(const Json* a, const Json* b) const;
  StatusOr<std::vector<const Json*>> DependentBranches(const Json* schema, size_t* count);
  StatusOr<Expr> OfType(const Parts& parts, TypeBit type, uint8_t types);

  Expr AnyValue();
  Expr AnyString();
  // The inside of a string with any number of characters.
  Expr AnyText(int64_t min, int64_t max);
  // `ahead`: behind the inside.
  StatusOr<Expr> StringOf(const Parts& parts, const CharsAhead& ahead = QuoteAhead());
  // The inside; nullopt: any.
  StatusOr<std::optional<Expr>> StringInside(const Parts& parts, const CharsAhead& ahead);
  StatusOr<Expr> NumberOf(const Parts& parts, bool integers);
  StatusOr<Expr> Multiples(const Parts& parts, int64_t divisor);
  StatusOr<Expr> ArrayOf(const Parts& parts);
  // The schema that has `contains`, and how many items must match it; 0: none.
  struct Containing {
    const Json* schema = nullptr;
    int64_t count = 0;
  };
  StatusOr<Containing> ReadContains(const Parts& parts) const;

  StatusOr<Expr> ObjectOf(const Parts& parts);
  Status ReadObject(const Part& part, ObjectShape* shape) const;
  StatusOr<Parts> MemberParts(const Parts& parts, std::string_view name) const;
  StatusOr<std::optional<Expr>> OtherMember(const Parts& parts, const ObjectShape& shape);
  StatusOr<std::optional<Expr>> PatternMembers(const Parts& parts, const ObjectShape& shape);
  StatusOr<Expr> MemberChain(const ObjectShape& shape, const std::vector<Expr>& members,
                             const std::optional<Expr>& other);
  Expr OtherKey(const std::vector<std::string>& names);
  Expr KeyBehind(std::vector<std::u32string> rest);
  Expr Comma() const;
  Expr Colon() const;

  SchemaDocument document_;
  const SchemaOptions options_;
  RuleSet rules_;
  Spacing space_;
  std::map<Parts, int32_t> rule_of_;
  std::map<std::string, int32_t, std::less<>> shared_;
  std::deque<std::pair<int32_t, Parts>> todo_;
  int32_t branches_ = 0;
};

}  // namespace portico::grammar
