#include "tokenizer/load/token_fields.h"

#include <algorithm>

namespace portico::tokenizer {

bool IsSpecialName(std::string_view name) {
  return std::find(kSpecialNames.begin(), kSpecialNames.end(), name) != kSpecialNames.end();
}

NamedToken NamedToken::Of(const AddedToken& token) {
  return {.content = token.content,
          .single_word = token.single_word,
          .lstrip = token.lstrip,
          .rstrip = token.rstrip,
          .is_normalized = token.normalized,
          .special = token.special,
          .source = token.source.empty() ? "tokenizer.json" : token.source};
}

AddedToken NamedToken::Made(bool normalizes) const {
  AddedToken made;
  made.content = content;
  made.single_word = single_word;
  made.lstrip = lstrip;
  made.rstrip = rstrip;
  made.normalized = normalizes && is_normalized.value_or(!special);
  made.special = special;
  made.source = source;
  return made;
}

TokenField TokenField::Of(NamedToken token) {
  TokenField field;
  field.kind = Kind::kToken;
  field.source = token.source;
  field.token = std::move(token);
  return field;
}

TokenField TokenField::OfText(std::string text, std::string_view source) {
  TokenField field;
  field.kind = Kind::kText;
  field.text = std::move(text);
  field.source = source;
  return field;
}

TokenField TokenField::OfList() {
  TokenField field;
  field.kind = Kind::kList;
  return field;
}

bool TokenField::IsTrue() const {
  switch (kind) {
    case Kind::kNull:
      return false;
    case Kind::kText:
      return !text.empty();
    case Kind::kToken:
      return true;
    case Kind::kList:
      return !items.empty();
    case Kind::kObject:
      return !members.empty();
    case Kind::kOther:
      break;
  }
  return truth;
}

std::string TokenField::Text() const {
  return is_token() ? token->content : is_text() ? text : std::string();
}

bool TokenField::Equals(const TokenField& other) const {
  if (kind != other.kind) return false;
  return is_token() ? *token == *other.token : is_text() && text == other.text;
}

TokenField* TokenFields::Find(std::string_view name) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.first == name; });
  return found == entries_.end() ? nullptr : &found->second;
}

void TokenFields::Set(std::string_view name, TokenField field) {
  if (TokenField* known = Find(name); known != nullptr) {
    *known = std::move(field);
  } else {
    entries_.emplace_back(std::string(name), std::move(field));
  }
}

void TokenFields::SetAll(std::vector<Entry> entries) {
  for (auto& [name, field] : entries) Set(name, std::move(field));
}

TokenField TokenFields::Take(std::string_view name) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.first == name; });
  TokenField taken = std::move(found->second);
  entries_.erase(found);
  return taken;
}

void TokenFields::AppendTo(std::string_view name, std::vector<TokenField> items) {
  TokenField* list = Find(name);
  if (list == nullptr || !list->is_list()) {
    Set(name, TokenField::OfList());
    list = Find(name);
  }
  for (TokenField& item : items) {
    const bool there = std::any_of(list->items.begin(), list->items.end(),
                                   [&](const TokenField& other) { return other.Equals(item); });
    if (!there) list->items.push_back(std::move(item));
  }
}

Status CannotLoad(std::string_view what, std::string_view why) {
  return Error(StatusCode::kUnimplemented, std::string(what) + ": " + std::string(why));
}

StatusOr<NamedToken> TokenOfObject(const Json& object, std::string_view source, bool special) {
  NamedToken token;
  token.source = source;
  for (const auto& [name, value] : object.as_object()) {
    if (name == "content") {
      if (!value.is_string() && !value.is_null()) {
        return CannotLoad(source, "the content of a token is not text");
      }
      if (value.is_string()) token.content = value.as_string();
      continue;
    }
    bool* flag = name == "single_word" ? &token.single_word
                 : name == "lstrip"    ? &token.lstrip
                 : name == "rstrip"    ? &token.rstrip
                 : name == "special"   ? &token.special
                                       : nullptr;
    if (flag == nullptr && name != "normalized") continue;
    if (name == "special" && special) continue;
    if (!value.is_bool()) {
      return CannotLoad(source, "'" + name + "' of a token is neither true nor false");
    }
    if (flag != nullptr) {
      *flag = value.as_bool();
    } else {
      token.is_normalized = value.as_bool();
    }
  }
  token.special = token.special || special;
  return token;
}

StatusOr<TokenField> FieldOfJson(const Json& value, std::string_view source) {
  TokenField field;
  field.source = source;
  if (value.is_string()) return TokenField::OfText(value.as_string(), source);
  if (value.is_null()) return field;
  if (value.is_array()) {
    field.kind = TokenField::Kind::kList;
    for (const Json& item : value.as_array()) {
      PORTICO_ASSIGN_OR_RETURN(TokenField inner, FieldOfJson(item, source));
      field.items.push_back(std::move(inner));
    }
    return field;
  }
  if (value.is_object()) {
    if (value.GetString("__type") == "AddedToken") {
      PORTICO_ASSIGN_OR_RETURN(NamedToken token, TokenOfObject(value, source));
      field = TokenField::Of(std::move(token));
      field.was_typed = true;
      return field;
    }
    field.kind = TokenField::Kind::kObject;
    for (const auto& [name, member] : value.as_object()) {
      PORTICO_ASSIGN_OR_RETURN(TokenField inner, FieldOfJson(member, source));
      field.members.emplace_back(name, std::move(inner));
    }
    return field;
  }
  field.kind = TokenField::Kind::kOther;
  if (value.is_int()) field.number = value.as_int();
  field.truth = !(value == Json(false) || (value.is_number() && value.as_double() == 0));
  return field;
}

StatusOr<TokenField> SpecialListOf(const Json& list, std::string_view source) {
  TokenField field = TokenField::OfList();
  for (const Json& item : list.as_array()) {
    if (!item.is_object()) {
      PORTICO_ASSIGN_OR_RETURN(TokenField inner, FieldOfJson(item, source));
      field.items.push_back(std::move(inner));
      continue;
    }
    if (item.Find("special") != nullptr) {
      return CannotLoad(source, "a token of extra_special_tokens says twice that it is special");
    }
    PORTICO_ASSIGN_OR_RETURN(NamedToken token, TokenOfObject(item, source, true));
    field.items.push_back(TokenField::Of(std::move(token)));
  }
  return field;
}

}  // namespace portico::tokenizer
