// Values that are neither strings nor objects.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "grammar/schema/compiler.h"
#include "grammar/schema/number_range.h"

namespace portico::grammar {
namespace {

constexpr int64_t kMaxItems = 10000;
constexpr int64_t kMaxContains = 100;
constexpr int64_t kMaxDivisor = 200;
constexpr int64_t kMaxMultiples = 2000;

Expr AnyNumber(bool integers) {
  const auto digits = [](int64_t min) { return Expr::Repeat(Expr::Class({{'0', '9'}}), min, -1); };
  std::vector<Expr> parts{
      Expr::Optional(Expr::Text("-")),
      Expr::Choice({Expr::Text("0"), Expr::Sequence({Expr::Class({{'1', '9'}}), digits(0)})})};
  if (!integers) {
    parts.push_back(Expr::Optional(Expr::Sequence({Expr::Text("."), digits(1)})));
    parts.push_back(Expr::Optional(
        Expr::Sequence({Expr::Class({{'E', 'E'}, {'e', 'e'}}),
                        Expr::Optional(Expr::Class({{'+', '+'}, {'-', '-'}})), digits(1)})));
  }
  return Expr::Sequence(std::move(parts));
}

// How many items an array has, and how many of the first ones have schemas of their own.
struct ArrayBounds {
  int64_t min = 0;
  int64_t max = -1;  // -1: none
  size_t fixed = 0;
};

StatusOr<ArrayBounds> BoundsOfItems(const SchemaDocument& document, const Parts& parts) {
  ArrayBounds bounds;
  for (const Part& part : parts) {
    PORTICO_ASSIGN_OR_RETURN(const auto low, CountOf(document, part.schema, "minItems"));
    PORTICO_ASSIGN_OR_RETURN(const auto high, CountOf(document, part.schema, "maxItems"));
    bounds.min = std::max(bounds.min, low.value_or(0));
    if (high) bounds.max = bounds.max < 0 ? *high : std::min(bounds.max, *high);
    if (const Json* const prefix = part.schema->Find("prefixItems")) {
      bounds.fixed = std::max(bounds.fixed, prefix->as_array().size());
    }
    if (const Json* const items = part.schema->Find("items"); items && items->is_array()) {
      bounds.fixed = std::max(bounds.fixed, items->as_array().size());
    }
  }
  for (const Part& part : parts) {
    const Json* const unique = part.schema->Find("uniqueItems");
    if (unique != nullptr && unique->as_bool() && (bounds.max < 0 || bounds.max > 1)) {
      return document.Refused(part.schema, "uniqueItems",
                              "is not supported for more than one item");
    }
    if (std::max(bounds.min, bounds.max) > kMaxItems) {
      return document.Refused(part.schema, bounds.max > kMaxItems ? "maxItems" : "minItems",
                              fmt::format("is greater than {}", kMaxItems));
    }
  }
  return bounds;
}

// What holds for the item at `index`; from ArrayBounds::fixed on, for all.
Parts ItemParts(const Parts& parts, size_t index) {
  Parts inside;
  for (const Part& part : parts) {
    const Json* items = part.schema->Find("items");
    const Json* prefix = part.schema->Find("prefixItems");
    if (items != nullptr && items->is_array()) {
      prefix = items;
      items = part.schema->Find("additionalItems");
    }
    const Json* own = items;
    if (prefix != nullptr && index < prefix->as_array().size()) own = &prefix->as_array()[index];
    if (own != nullptr) inside.push_back({own, 0});
  }
  std::sort(inside.begin(), inside.end());
  inside.erase(std::unique(inside.begin(), inside.end()), inside.end());
  return inside;
}

}  // namespace

Expr SchemaCompiler::Comma() const { return Expr::Sequence({space_(), Expr::Text(","), space_()}); }
Expr SchemaCompiler::Colon() const { return Expr::Sequence({space_(), Expr::Text(":"), space_()}); }

Expr SchemaCompiler::AnyValue() {
  const auto [found, added] = shared_.try_emplace("any", 0);
  if (!added) return Expr::Rule(found->second);
  const int32_t any = rules_.Add("any");
  found->second = any;
  const int32_t number = rules_.Add("number");
  const int32_t array = rules_.Add("array");
  const int32_t object = rules_.Add("object");
  const Expr value = Expr::Rule(any);
  const Expr member = Expr::Sequence({AnyString(), Colon(), value});
  const auto list = [this](const Expr& item) {
    return Expr::Sequence({item, Expr::Repeat(Expr::Sequence({Comma(), item}), 0, -1), space_()});
  };
  rules_.Set(number, AnyNumber(/*integers=*/false));
  rules_.Set(array,
             Expr::Sequence({Expr::Text("["), space_(),
                             Expr::Choice({Expr::Text("]"),
                                           Expr::Sequence({list(value), Expr::Text("]")})})}));
  rules_.Set(object,
             Expr::Sequence({Expr::Text("{"), space_(),
                             Expr::Choice({Expr::Text("}"),
                                           Expr::Sequence({list(member), Expr::Text("}")})})}));
  rules_.Set(any,
             Expr::Choice({Expr::Rule(object), Expr::Rule(array), AnyString(), Expr::Rule(number),
                           Expr::Text("true"), Expr::Text("false"), Expr::Text("null")}));
  return value;
}

StatusOr<Expr> SchemaCompiler::NumberOf(const Parts& parts, bool integers) {
  NumberBounds bounds;
  int64_t divisor = 0;
  const Json* divided = nullptr;
  for (const Part& part : parts) {
    const auto bound = [&](const char* key, bool low, bool exclusive) -> Status {
      const Json* const value = part.schema->Find(key);
      if (value == nullptr) return OkStatus();
      const auto decimal = Decimal::Of(*value);
      if (!decimal) return document_.Refused(part.schema, key, "has too many digits");
      if (low) {
        bounds.AtLeast({*decimal, exclusive});
      } else {
        bounds.AtMost({*decimal, exclusive});
      }
      return OkStatus();
    };
    PORTICO_RETURN_IF_ERROR(bound("minimum", true, false));
    PORTICO_RETURN_IF_ERROR(bound("exclusiveMinimum", true, true));
    PORTICO_RETURN_IF_ERROR(bound("maximum", false, false));
    PORTICO_RETURN_IF_ERROR(bound("exclusiveMaximum", false, true));
    const Json* const multiple = part.schema->Find("multipleOf");
    if (multiple == nullptr) continue;
    const auto decimal = Decimal::Of(*multiple);
    if (!decimal || decimal->negative || decimal->is_zero() || !decimal->fraction.empty() ||
        decimal->whole.size() > 9) {
      return document_.Refused(part.schema, "multipleOf",
                               "only positive integers below a billion are supported");
    }
    const int64_t own = std::stoll(decimal->whole);
    if (divided != nullptr && divisor % own != 0 && own % divisor != 0) {
      return document_.Refused(part.schema, "multipleOf", "is not supported beside another one");
    }
    divisor = std::max(divisor, own);
    divided = part.schema;
  }
  if (divisor > 1 && bounds.any()) {
    const auto limits = IntegerLimits(bounds);
    if (!limits || (limits->second - limits->first) / divisor > kMaxMultiples) {
      return document_.Refused(divided, "multipleOf",
                               "is supported beside bounds only if few numbers lie between them");
    }
    std::vector<Expr> ways;
    for (int64_t i = limits->first; i <= limits->second; ++i) {
      if (i % divisor != 0) continue;
      ways.push_back(Expr::Text(std::to_string(i)));
      if (i > std::numeric_limits<int64_t>::max() - divisor) break;
      i += divisor - 1;
    }
    return Expr::Choice(std::move(ways));
  }
  if (divisor > kMaxDivisor) {
    return document_.Refused(divided, "multipleOf",
                             fmt::format("is greater than {}, without bounds", kMaxDivisor));
  }
  if (divisor > 1) return Multiples(parts, divisor);
  integers = integers || divisor == 1;
  if (bounds.any()) return integers ? IntegerInRange(bounds) : NumberInRange(bounds);
  const auto [found, added] = shared_.try_emplace(integers ? "integer" : "number", 0);
  if (added) {
    found->second = rules_.Add(found->first);
    rules_.Set(found->second, AnyNumber(integers));
  }
  return Expr::Rule(found->second);
}

// A rule for each remainder: what may follow digits that leave it.
StatusOr<Expr> SchemaCompiler::Multiples(const Parts&, int64_t divisor) {
  const auto [found, added] = shared_.try_emplace(fmt::format("multiple/{}", divisor), 0);
  if (!added) return Expr::Rule(found->second);
  const int32_t all = rules_.Add("multiple");
  found->second = all;
  std::vector<int32_t> behind;
  for (int64_t i = 0; i < divisor; ++i) behind.push_back(rules_.Add("remainder"));
  const auto next = [&](int64_t remainder, int first) {
    std::vector<Expr> ways;
    for (int digit = first; digit <= 9; ++digit) {
      const auto c = static_cast<char32_t>('0' + digit);
      ways.push_back(Expr::Sequence(
          {Expr::Class({{c, c}}), Expr::Rule(behind[(remainder * 10 + digit) % divisor])}));
    }
    return ways;
  };
  for (int64_t i = 0; i < divisor; ++i) {
    std::vector<Expr> ways = next(i, 0);
    if (i == 0) ways.push_back(Expr::Empty());
    rules_.Set(behind[i], Expr::Choice(std::move(ways)));
  }
  rules_.Set(all, Expr::Choice({Expr::Text("0"), Expr::Sequence({Expr::Optional(Expr::Text("-")),
                                                                 Expr::Choice(next(0, 1))})}));
  return Expr::Rule(all);
}

StatusOr<SchemaCompiler::Containing> SchemaCompiler::ReadContains(const Parts& parts) const {
  Containing found;
  for (const Part& part : parts) {
    const Json* const contains = part.schema->Find("contains");
    if (contains == nullptr) continue;
    if (part.schema->Find("maxContains") != nullptr) {
      return document_.Refused(part.schema, "maxContains", "is not supported");
    }
    PORTICO_ASSIGN_OR_RETURN(const auto least, CountOf(document_, part.schema, "minContains"));
    if (least.value_or(1) == 0) continue;
    if (found.schema != nullptr || least.value_or(1) > kMaxContains) {
      return document_.Refused(part.schema, "contains",
                               "is not supported twice, nor for more than 100 items");
    }
    found = {part.schema, least.value_or(1)};
  }
  return found;
}

StatusOr<Expr> SchemaCompiler::ArrayOf(const Parts& parts) {
  PORTICO_ASSIGN_OR_RETURN(const ArrayBounds bounds, BoundsOfItems(document_, parts));
  const int64_t min = bounds.min;
  const int64_t max = bounds.max;
  const auto total = static_cast<int64_t>(bounds.fixed);
  if (max >= 0 && min > max) return Expr::Never();
  PORTICO_ASSIGN_OR_RETURN(const Containing containing, ReadContains(parts));
  PORTICO_ASSIGN_OR_RETURN(const Expr other, ValueOf(ItemParts(parts, bounds.fixed)));
  if (containing.count > 0) {
    if (total > 0 || max >= 0 || min > containing.count) {
      return document_.Refused(containing.schema, "contains",
                               "is not supported beside prefixItems, minItems and maxItems");
    }
    Parts inside{{containing.schema->Find("contains"), 0}};
    for (const Part& part : parts) {
      const Json* const items = part.schema->Find("items");
      if (items != nullptr) inside.push_back({items, 0});
    }
    std::sort(inside.begin(), inside.end());
    PORTICO_ASSIGN_OR_RETURN(const Expr match, ValueOf(std::move(inside)));
    const Expr before = Expr::Repeat(Expr::Sequence({other, Comma()}), 0, -1);
    const Expr more = Expr::Sequence({Comma(), before, match});
    return Expr::Sequence({Expr::Text("["), space_(), before, match,
                           Expr::Repeat(more, containing.count - 1, containing.count - 1),
                           Expr::Repeat(Expr::Sequence({Comma(), other}), 0, -1), space_(),
                           Expr::Text("]")});
  }
  const auto left = [&](int64_t bound) { return std::max<int64_t>(bound - total, 0); };
  // From the last fixed item to the first: what may stand behind it.
  Expr tail;
  if (max < 0 || max > total) {
    tail = Expr::Repeat(Expr::Sequence({Comma(), other}), left(min), max < 0 ? -1 : max - total);
  } else if (min > total) {
    return Expr::Never();
  }
  Expr first_other = Expr::Never();
  if (total == 0 && max != 0) {
    const int64_t most = max < 0 ? -1 : max - 1;
    first_other = Expr::Sequence({other, Expr::Repeat(Expr::Sequence({Comma(), other}),
                                                      std::max<int64_t>(min - 1, 0), most)});
  }
  for (int64_t i = total; i-- > 0;) {
    if (max >= 0 && i >= max) continue;
    PORTICO_ASSIGN_OR_RETURN(Expr item, ValueOf(ItemParts(parts, static_cast<size_t>(i))));
    if (i == 0) {
      first_other = Expr::Sequence({std::move(item), std::move(tail)});
      break;
    }
    std::vector<Expr> ways{Expr::Sequence({Comma(), std::move(item), std::move(tail)})};
    if (i >= min) ways.push_back(Expr::Empty());
    PORTICO_ASSIGN_OR_RETURN(const int32_t rule, Shared("items", Expr::Choice(std::move(ways))));
    tail = Expr::Rule(rule);
  }
  std::vector<Expr> ways;
  if (min == 0) ways.push_back(Expr::Text("]"));
  ways.push_back(Expr::Sequence({std::move(first_other), space_(), Expr::Text("]")}));
  return Expr::Sequence({Expr::Text("["), space_(), Expr::Choice(std::move(ways))});
}

}  // namespace portico::grammar
