#include "tokenizer/load/folder_tokens.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "text/json.h"
#include "tokenizer/load/auto_class.h"
#include "tokenizer/load/folder_fields.h"
#include "tokenizer/load/token_fields.h"
#include "tokenizer/normalize/normalized_string.h"
#include "tokenizer/normalize/normalizer.h"

namespace portico::tokenizer {
namespace {

namespace fs = std::filesystem;

// What the class is made of, and then adds.
class FolderTokens {
 public:
  FolderTokens(const AutoClass& made, AddedTokensRule rule, FolderFields from)
      : class_(made),
        rule_(rule),
        fields_(std::move(from.fields)),
        specific_(std::move(from.specific)),
        numbered_(std::move(from.numbered)) {}

  Status TakeClass(const PipelineParts& parts);
  // The calls of add_tokens(), behind what `parts` have.
  StatusOr<std::vector<std::vector<AddedToken>>> Calls(const PipelineParts& parts);

 private:
  Status TakeExtras();
  Status NameTokens();
  Status NameToken(std::string_view name, TokenField value);
  bool IsNamed(const std::string& content) const;

  const AutoClass& class_;
  AddedTokensRule rule_;
  TokenFields fields_;
  TokenFields specific_;
  std::map<int64_t, NamedToken> numbered_;
  TokenFields named_;  // the special tokens under their names
  std::vector<TokenField> extra_;
};

// The class's own arguments come before the others.
Status FolderTokens::TakeClass(const PipelineParts& parts) {
  TokenFields own;
  const auto take = [&](std::string_view name, TokenField fallback) {
    own.Set(name, fields_.Find(name) != nullptr ? fields_.Take(name) : std::move(fallback));
  };
  const auto take_or = [&](std::string_view name, std::string_view text) {
    TokenField field = TokenField::OfText(std::string(text), "the class " + class_.name);
    field.by_class = true;
    take(name, std::move(field));
  };
  for (const auto& [name, text] : class_.defaults) take_or(name, text);
  if (!class_.without.empty()) take(class_.without, TokenField());
  if (class_.extras == AutoClass::Extras::kCodeLlama) {
    for (const auto& [name, text] : kCodeLlamaTokens) take_or(name, text);
  }
  for (std::string_view name : class_.needed) {
    if (name.empty()) continue;
    const TokenField* field = own.Find(name);
    if (field == nullptr || field->is_null()) {
      return CannotLoad(class_.name, "it needs " + std::string(name));
    }
  }
  for (auto& [name, field] : own.all()) {
    const bool flags = class_.sets_flags || name == class_.left_stripped;
    if (!flags || !field.is_text()) continue;
    NamedToken token{.content = field.text, .source = field.source};
    token.special = true;
    token.is_normalized = false;
    token.lstrip = name == class_.left_stripped;
    const bool by_class = field.by_class;
    field = TokenField::Of(std::move(token));
    field.by_class = by_class;
  }
  own.SetAll(std::move(fields_.all()));
  fields_ = std::move(own);
  if (parts.padding && fields_.Find("pad_token") == nullptr) {
    fields_.Set("pad_token", TokenField::OfText(parts.padding->token, "tokenizer.json"));
  }
  PORTICO_RETURN_IF_ERROR(TakeExtras());
  if (fields_.Find(kAdditional) != nullptr && fields_.Find(kExtra) == nullptr) {
    fields_.Set(kExtra, fields_.Take(kAdditional));
  }
  return NameTokens();
}

// T5's and Code Llama's own additional_special_tokens.
Status FolderTokens::TakeExtras() {
  if (class_.extras == AutoClass::Extras::kNone) return OkStatus();
  TokenField given;
  if (fields_.Find(kAdditional) != nullptr) given = fields_.Take(kAdditional);
  const bool none = class_.extras == AutoClass::Extras::kT5 ? given.is_null() : !given.IsTrue();
  if (!none && !given.is_list()) return CannotLoad(kAdditional, "it is not a list");
  TokenField all = none ? TokenField::OfList() : std::move(given);
  const auto append = [&](std::string text) {
    all.items.push_back(TokenField::OfText(std::move(text), "the class " + class_.name));
  };
  if (class_.extras == AutoClass::Extras::kCodeLlama) {
    for (const auto& [name, text] : kCodeLlamaTokens) {
      const TokenField* field = fields_.Find(name);
      if (field != nullptr && !field->is_null()) all.items.push_back(*field);
    }
  } else {
    const TokenField* count = fields_.Find("extra_ids");
    const int64_t ids = count == nullptr ? 100 : count->number.value_or(-1);
    constexpr int64_t kMostIds = 1 << 16;
    if (ids < 0 || ids > kMostIds) return CannotLoad("extra_ids", "it is not a number");
    const auto named = std::count_if(all.items.begin(), all.items.end(), [](const auto& item) {
      return item.Text().find("<extra_id_") != std::string::npos;
    });
    if (named > 0 && ids > 0 && named != ids) {
      return CannotLoad(kAdditional, "it does not have extra_ids tokens");
    }
    for (int64_t i = 0; named == 0 && i < ids; ++i) append("<extra_id_" + std::to_string(i) + ">");
  }
  fields_.Set(kAdditional, std::move(all));
  return OkStatus();
}

Status FolderTokens::NameToken(std::string_view name, TokenField value) {
  if (!value.is_text() && !value.is_token()) {
    return CannotLoad(name, "it is neither a text nor an AddedToken");
  }
  named_.Set(name, std::move(value));
  return OkStatus();
}

Status FolderTokens::NameTokens() {
  for (std::string_view name : kSpecialNames) named_.Set(name, TokenField());
  TokenFields found;
  for (auto& [name, field] : fields_.all()) {
    if (IsSpecialName(name)) {
      if (!field.is_null()) PORTICO_RETURN_IF_ERROR(NameToken(name, field));
    } else if (name == kExtra) {
      if (field.is_object()) {
        for (auto& [inner, token] : field.members) {
          PORTICO_RETURN_IF_ERROR(NameToken(inner, token));
        }
      } else if (field.is_list()) {
        extra_ = field.items;
      } else if (!field.is_null()) {
        return CannotLoad(kExtra, "it is neither a list nor an object");
      }
    } else if (name.ends_with("_token") && (field.is_text() || field.is_token())) {
      found.Set(name, field);
    }
  }
  found.SetAll(std::move(specific_.all()));
  for (auto& [name, field] : found.all()) {
    PORTICO_RETURN_IF_ERROR(NameToken(name, std::move(field)));
  }
  return OkStatus();
}

// Whether a special token's name makes it special. Under kFolder those of a class do not.
bool FolderTokens::IsNamed(const std::string& content) const {
  return std::any_of(named_.all().begin(), named_.all().end(), [&](const auto& entry) {
    const TokenField& field = entry.second;
    if (field.by_class && rule_ == AddedTokensRule::kFolder) return false;
    return !field.is_null() && !content.empty() && field.Text() == content;
  });
}

StatusOr<std::vector<std::vector<AddedToken>>> FolderTokens::Calls(const PipelineParts& parts) {
  std::vector<TokenField> wanted;
  std::set<std::string, std::less<>> known;
  for (const AddedToken& token : parts.added_tokens) known.insert(token.content);
  for (auto& [id, token] : numbered_) {
    known.insert(token.content);
    wanted.push_back(TokenField::Of(token));
  }
  const auto want = [&](const TokenField& field) {
    if (field.is_null() || known.contains(field.Text())) return;
    const bool there = std::any_of(wanted.begin(), wanted.end(),
                                   [&](const TokenField& other) { return other.Equals(field); });
    if (!there) wanted.push_back(field);
  };
  for (const auto& [name, field] : named_.all()) want(field);
  for (const TokenField& field : extra_) want(field);

  std::vector<std::vector<AddedToken>> calls(1);
  for (TokenField& field : wanted) {
    if (!field.is_text() && !field.is_token()) return CannotLoad(kExtra, "a token of it is none");
    NamedToken token = field.is_token() ? std::move(*field.token) : NamedToken{field.text};
    token.special = token.special || field.is_text() || IsNamed(token.content);
    if (token.source.empty()) token.source = field.source;
    calls.front().push_back(token.Made(class_.normalizes));
  }
  if (class_.last == AutoClass::Last::kNothing) return calls;
  std::vector<AddedToken>& last = calls.emplace_back();
  std::vector<TokenField> all;
  for (const auto& [name, field] : named_.all()) {
    const bool counts = !field.by_class || rule_ != AddedTokensRule::kFolder;
    if (!field.is_null() && counts) all.push_back(field);
  }
  all.insert(all.end(), extra_.begin(), extra_.end());
  for (const TokenField& field : all) {
    NamedToken token{.content = field.Text(), .source = field.source};
    if (field.is_token() && class_.last == AutoClass::Last::kMakesNamedSpecial) {
      token = *field.token;
    } else {
      token.is_normalized = false;
    }
    token.special = true;
    last.push_back(token.Made(class_.normalizes));
  }
  return calls;
}

// A search for nothing finds no end; nor does the reference make one.
Status CheckFindable(const std::vector<std::vector<AddedToken>>& calls,
                     const Normalizer* normalizer) {
  if (normalizer == nullptr) return OkStatus();
  for (const std::vector<AddedToken>& call : calls) {
    for (const AddedToken& token : call) {
      if (!token.normalized || token.content.empty()) continue;
      NormalizedString text(token.content);
      PORTICO_RETURN_IF_ERROR(normalizer->Apply(&text));
      if (text.text().empty()) return CannotLoad(token.content, "nothing is left of it");
    }
  }
  return OkStatus();
}

Status AddFolderTo(const fs::path& folder, std::string_view tokenizer_json, AddedTokensRule rule,
                   PipelineParts* parts) {
  PORTICO_ASSIGN_OR_RETURN(const Json settings, ReadFolderJson(folder, kSettingsFile));
  PORTICO_ASSIGN_OR_RETURN(const Json config, ReadFolderJson(folder, kConfigFile));
  const AutoClass made = FindAutoClass(settings, config, [&] {
    return tokenizer_json.find("\"ByteLevel\"") != std::string_view::npos;
  });
  if (made.kind == AutoClass::Kind::kForeign) return Error(StatusCode::kUnimplemented, made.why);
  const bool is_json = !tokenizer_json.empty();
  const bool rebuilds = is_json && made.kind == AutoClass::Kind::kRebuilt;
  if (rebuilds && made.is_unigram && parts->model->Name() != "Unigram") {
    return CannotLoad(made.name, "it is made of a Unigram model only");
  }
  PORTICO_ASSIGN_OR_RETURN(FolderFields fields,
                           ReadFolderFields(folder, settings, *parts, is_json));
  FolderTokens tokens(made, rule, std::move(fields));
  PORTICO_RETURN_IF_ERROR(tokens.TakeClass(*parts));
  std::vector<AddedToken> own;
  if (rebuilds) own = std::exchange(parts->added_tokens, {});
  auto calls = tokens.Calls(*parts);
  Status made_calls = calls.status();
  if (calls.ok()) made_calls = CheckFindable(*calls, parts->normalizer.get());
  if (!made_calls.ok()) {
    if (rebuilds) parts->added_tokens = std::move(own);
    return made_calls;
  }
  parts->more_added_tokens = *std::move(calls);
  return OkStatus();
}

}  // namespace

void AddFolderTokens(const std::string& folder, std::string_view tokenizer_json,
                     AddedTokensRule rule, PipelineParts* parts) {
  if (rule == AddedTokensRule::kFile || !HasOtherFiles(folder)) return;
  const Status added = AddFolderTo(folder, tokenizer_json, rule, parts);
  if (!added.ok()) parts->added_tokens_note = std::string(MessageOf(added));
}

}  // namespace portico::tokenizer
