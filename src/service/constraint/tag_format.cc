#include "service/constraint/tag_format.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico {
namespace {

// Does not copy what it is around, which may be most of a tag.
Json TagAround(std::string_view type, std::string_view key, Json content) {
  JsonObject object;
  object.reserve(2);
  object.emplace_back("type", Json(type));
  object.emplace_back(key, std::move(content));
  return Json(std::move(object));
}

}  // namespace

Json TagObject(std::string_view type, std::initializer_list<std::pair<std::string, Json>> members) {
  JsonObject object = {{"type", Json(type)}};
  object.insert(object.end(), members.begin(), members.end());
  return Json(std::move(object));
}

Json TagToken(TokenId token) {
  return TagObject("token", {{"token", Json(static_cast<int64_t>(token))}});
}

Json TagSequence(JsonArray parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return TagAround("sequence", "elements", Json(std::move(parts)));
}

Json TagChoice(JsonArray ways) {
  if (ways.size() == 1) return std::move(ways.front());
  return TagAround("or", "elements", Json(std::move(ways)));
}

Json TagOptional(Json content) { return TagAround("optional", "content", std::move(content)); }

Json TagStar(Json content) { return TagAround("star", "content", std::move(content)); }

TagWriter::TagWriter(const Tokenizer& tokenizer, const absl::flat_hash_set<TokenId>& special)
    : tokenizer_(tokenizer) {
  for (const TokenId id : special) special_.emplace_back(tokenizer.IdToToken(id), id);
  std::sort(special_.begin(), special_.end(), [](const auto& a, const auto& b) {
    return a.first.size() != b.first.size() ? a.first.size() > b.first.size() : a.first < b.first;
  });
}

JsonArray TagWriter::Literal(std::string_view text) const {
  JsonArray pieces;
  std::string plain;
  const auto end_plain = [&] {
    if (plain.empty()) return;
    pieces.push_back(TagObject("const_string", {{"value", Json(std::move(plain))}}));
    plain.clear();
  };
  while (!text.empty()) {
    const auto found = std::find_if(special_.begin(), special_.end(), [&](const auto& token) {
      return !token.first.empty() && text.starts_with(token.first);
    });
    if (found == special_.end()) {
      plain.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    end_plain();
    pieces.push_back(TagToken(found->second));
    text.remove_prefix(found->first.size());
  }
  end_plain();
  return pieces;
}

std::string TagWriter::TextOf(const Json& piece) const {
  if (piece.GetString("type") != "token") return piece.GetString("value");
  return std::string(tokenizer_.IdToToken(static_cast<TokenId>(piece.GetInt("token", 0))));
}

TokenId TagWriter::TokenOf(std::string_view text) const {
  return tokenizer_.TokenToId(text).value_or(-1);
}

StatusOr<Json> TagOfConstraint(const Constraint& constraint) {
  const auto parsed = [&]() -> StatusOr<Json> {
    auto json = Json::Parse(constraint.text);
    if (json.ok()) return json;
    return InvalidArgument(constraint.field, fmt::format("{}: it is not JSON: {}", constraint.field,
                                                         MessageOf(json.status())));
  };
  switch (constraint.kind) {
    case ConstraintKind::kJsonObject:
      return TagObject("json_schema",
                       {{"json_schema", Json(JsonObject{{"type", Json("object")}})}});
    case ConstraintKind::kJsonSchema: {
      PORTICO_ASSIGN_OR_RETURN(Json schema, parsed());
      return TagObject("json_schema", {{"json_schema", std::move(schema)},
                                       {constraint.closed ? "closed" : "open", Json(true)}});
    }
    case ConstraintKind::kRegex:
      return TagObject("regex", {{"pattern", Json(constraint.text)}});
    case ConstraintKind::kEbnf:
      return TagObject("grammar", {{"grammar", Json(constraint.text)}});
    case ConstraintKind::kChoice: {
      PORTICO_ASSIGN_OR_RETURN(const Json list, parsed());
      JsonArray ways;
      for (const Json& choice : list.as_array()) {
        ways.push_back(TagObject("const_string", {{"value", choice}}));
      }
      return TagChoice(std::move(ways));
    }
    case ConstraintKind::kStructuralTag: {
      PORTICO_ASSIGN_OR_RETURN(Json tag, parsed());
      if (Json* format = tag.Find("format")) return std::move(*format);
      return InvalidArgument(
          constraint.field,
          fmt::format("{} with structures cannot stand beside calls; the form with format can",
                      constraint.field));
    }
    case ConstraintKind::kReasoning:
      break;  // says nothing of the answer
  }
  return Json();
}

}  // namespace portico
