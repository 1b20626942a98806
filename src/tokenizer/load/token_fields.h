// The fields of a folder's files that name special tokens, with the types that transformers gives their values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/split/added_tokens.h"

namespace portico::tokenizer {

// In the order in which they are added.
inline constexpr std::array<std::string_view, 7> kSpecialNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
bool IsSpecialName(std::string_view name);
inline constexpr std::string_view kExtra = "extra_special_tokens";
inline constexpr std::string_view kAdditional = "additional_special_tokens";
// CodeLlamaTokenizer's.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCodeLlamaTokens = {
    {{"prefix_token", "\u2581<PRE>"},
     {"middle_token", "\u2581<MID>"},
     {"suffix_token", "\u2581<SUF>"},
     {"eot_token", "\u2581<EOT>"},
     {"fill_token", "<FILL_ME>"}}};

// Python's AddedToken: without `is_normalized` a special token is not normalized.
struct NamedToken {
  std::string content;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  std::optional<bool> is_normalized = {};
  bool special = false;
  std::string source = {};

  static NamedToken Of(const AddedToken& token);
  // Without `normalizes` it is found in the raw text, whatever its flag.
  AddedToken Made(bool normalizes) const;
  friend bool operator==(const NamedToken& a, const NamedToken& b) {
    return a.Made(true) == b.Made(true);
  }
};

// One value: nothing, a text, an AddedToken, a list, an object, or something else.
struct TokenField {
  enum class Kind { kNull, kText, kToken, kList, kObject, kOther };

  Kind kind = Kind::kNull;
  std::string text = {};
  std::optional<NamedToken> token = {};
  std::vector<TokenField> items = {};
  std::vector<std::pair<std::string, TokenField>> members = {};
  std::optional<int64_t> number = {};
  bool truth = false;      // of something else
  bool was_typed = false;  // an object that says of itself that it is an AddedToken
  bool by_class = false;   // no file names it
  std::string source = {};

  static TokenField Of(NamedToken token);
  static TokenField OfText(std::string text, std::string_view source);
  static TokenField OfList();
  bool is_null() const { return kind == Kind::kNull; }
  bool is_text() const { return kind == Kind::kText; }
  bool is_token() const { return kind == Kind::kToken; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_object() const { return kind == Kind::kObject; }
  bool IsTrue() const;
  // A text's or token's; else "".
  std::string Text() const;
  bool Equals(const TokenField& other) const;
};

// By name, in the order in which the names came.
class TokenFields {
 public:
  using Entry = std::pair<std::string, TokenField>;
  std::vector<Entry>& all() { return entries_; }
  const std::vector<Entry>& all() const { return entries_; }
  TokenField* Find(std::string_view name);
  void Set(std::string_view name, TokenField field);
  void SetAll(std::vector<Entry> entries);
  // The name must be there.
  TokenField Take(std::string_view name);
  // Puts behind the list of that name those that are not in it yet.
  void AppendTo(std::string_view name, std::vector<TokenField> items);

 private:
  std::vector<Entry> entries_;
};

// Why AutoTokenizer cannot load the folder.
Status CannotLoad(std::string_view what, std::string_view why);

// `source`: the file. With `special` the token is special, whatever the object says.
StatusOr<NamedToken> TokenOfObject(const Json& object, std::string_view source,
                                   bool special = false);
StatusOr<TokenField> FieldOfJson(const Json& value, std::string_view source);
// A list of special_tokens_map.json, whose objects are special tokens.
StatusOr<TokenField> SpecialListOf(const Json& list, std::string_view source);

}  // namespace portico::tokenizer
