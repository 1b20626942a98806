// Strings.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "grammar/schema/compiler.h"
#include "grammar/schema/counted_piece.h"
#include "grammar/schema/formats.h"
#include "grammar/schema/pattern.h"

namespace portico::grammar {
namespace {

constexpr int64_t kMaxLength = 100000;

// What comes behind a string wherever something does.
constexpr std::string_view kBehindString = "[\\u0009\\u000a\\u000d ]* [,:}\\u005d]";

Expr Quoted(Expr inside) {
  return Expr::Sequence({Expr::Text("\""), std::move(inside), Expr::Text("\"")});
}

}  // namespace

// The end of a string is part of what repeats, as xgrammar's own grammar has it: its masks are fastest so.
Expr SchemaCompiler::AnyString() {
  const auto [found, added] = shared_.try_emplace("string", 0);
  if (added) {
    found->second = rules_.Add("string");
    const int32_t rest = rules_.Add("chars");
    const Expr hex = Expr::Class({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
    const Expr escape = Expr::Choice({Expr::Class({{'"', '"'},
                                                   {'/', '/'},
                                                   {'\\', '\\'},
                                                   {'b', 'b'},
                                                   {'f', 'f'},
                                                   {'n', 'n'},
                                                   {'r', 'r'},
                                                   {'t', 't'}}),
                                      Expr::Sequence({Expr::Text("u"), hex, hex, hex, hex})});
    const int32_t escapes = rules_.Add("escape");
    rules_.Set(escapes, escape);
    rules_.SetFollowing(rest, kBehindString);
    rules_.Set(rest,
               Expr::Choice(
                   {Expr::Text("\""),
                    Expr::Sequence(
                        {Expr::Class(Complement(Normalized({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}))),
                         Expr::Rule(rest)}),
                    Expr::Sequence({Expr::Text("\\"), Expr::Rule(escapes), Expr::Rule(rest)})}));
    rules_.Set(found->second, Expr::Sequence({Expr::Text("\""), Expr::Rule(rest)}));
  }
  return Expr::Rule(found->second);
}

// What `minLength` and `maxLength` count: one automaton for all texts with these bounds, so that its masks are computed once. Not for
// all bounds: where texts of several alternatives begin at one place, the core takes the end of one for the end of each whose rule
// has the same automaton. It must be the last part of a rule wherever it occurs: else the core takes what may follow it for what does.
Expr SchemaCompiler::AnyText(int64_t min, int64_t max) {
  const auto [found, added] = shared_.try_emplace(fmt::format("text/{}/{}", min, max), 0);
  if (added) {
    found->second = rules_.Add("text");
    rules_.SetFollowing(found->second, fmt::format("\"\\\"\" {}", kBehindString));
    rules_.Set(found->second, Expr::JsonChars());
  }
  return Expr::Rule(found->second);
}

StatusOr<std::optional<Expr>> SchemaCompiler::StringInside(const Parts& parts,
                                                           const CharsAhead& ahead) {
  int64_t min = 0;
  int64_t max = -1;
  const Json* bounded = nullptr;
  const Json* patterned = nullptr;
  std::string_view keyword;
  std::string pattern;
  for (const Part& part : parts) {
    PORTICO_ASSIGN_OR_RETURN(const auto low, CountOf(document_, part.schema, "minLength"));
    PORTICO_ASSIGN_OR_RETURN(const auto high, CountOf(document_, part.schema, "maxLength"));
    if (low.value_or(0) > 0 || high) bounded = part.schema;
    min = std::max(min, low.value_or(0));
    if (high) max = max < 0 ? *high : std::min(max, *high);
    for (const char* const key : {"pattern", "format"}) {
      const Json* const value = part.schema->Find(key);
      if (value == nullptr) continue;
      std::string own = value->as_string();
      if (key == std::string_view("format")) {
        own = FormatPattern(value->as_string());
        if (own.empty()) {
          return document_.Refused(part.schema, key,
                                   fmt::format("the format {} is not supported", value->Dump()));
        }
      }
      if (patterned != nullptr && own != pattern) {
        return document_.Refused(part.schema, key,
                                 fmt::format("is not supported beside another {}", keyword));
      }
      patterned = part.schema;
      keyword = key;
      pattern = std::move(own);
    }
  }
  if (std::max(min, max) > kMaxLength) {
    return document_.Refused(bounded, max > kMaxLength ? "maxLength" : "minLength",
                             fmt::format("is greater than {}", kMaxLength));
  }
  if (patterned != nullptr) {
    auto inside = PatternInside(pattern);
    if (!inside.ok()) return document_.Refused(patterned, keyword, MessageOf(inside.status()));
    std::optional<Expr> limited = *std::move(inside);
    if (bounded != nullptr) limited = WithLength(*limited, min, max);
    if (!limited) {
      return document_.Refused(bounded, bounded->Find("maxLength") ? "maxLength" : "minLength",
                               fmt::format("is not supported beside {} with several parts of "
                                           "variable length; say it in a pattern",
                                           keyword));
    }
    return WithCountedPieces(*std::move(limited), CountedChars::kJson, ahead, &rules_);
  }
  if (bounded == nullptr) return std::nullopt;
  if (max >= 0 && min > max) return std::optional<Expr>(Expr::Never());
  if (max == 0) return std::optional<Expr>(Expr::Empty());
  const auto [found, added] = shared_.try_emplace(fmt::format("counted/{}/{}", min, max), 0);
  if (added) {
    found->second = rules_.AddCounted("counted", min, max);
    rules_.Set(found->second, AnyText(min, max));
  }
  return std::optional<Expr>(Expr::Rule(found->second));
}

StatusOr<Expr> SchemaCompiler::StringOf(const Parts& parts, const CharsAhead& ahead) {
  PORTICO_ASSIGN_OR_RETURN(auto inside, StringInside(parts, ahead));
  if (!inside) return AnyString();
  return Quoted(std::move(*inside));
}

}  // namespace portico::grammar
