#include "tokenizer/split/pre_tokenizer.h"

#include <utility>

#include "text/utf8.h"
#include "tokenizer/load/json_fields.h"
#include "tokenizer/split/pre_tokenizer_kinds.h"

namespace portico::tokenizer {
namespace {

constexpr size_t kMaxDepth = 64;

StatusOr<SplitBehavior> BehaviorField(const Json& json, std::optional<SplitBehavior> fallback) {
  const Json* value = json.Find("behavior");
  if (value == nullptr && fallback) return *fallback;
  std::string name = value != nullptr && value->is_string() ? value->as_string() : "";
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return FieldError(json, "behavior", "one of the split behaviours");
}

StatusOr<PreTokenizerPtr> Parse(const Json& json, size_t depth);

StatusOr<PreTokenizerPtr> ParseSequence(const Json& json, size_t depth) {
  const Json* list = json.Find("pretokenizers");
  if (list == nullptr || !list->is_array()) return FieldError(json, "pretokenizers", "a list");
  std::vector<PreTokenizerPtr> parts;
  for (const Json& item : list->as_array()) {
    PORTICO_ASSIGN_OR_RETURN(PreTokenizerPtr part, Parse(item, depth + 1));
    parts.push_back(std::move(part));
  }
  return MakeSequence(std::move(parts));
}

StatusOr<uint32_t> CharacterField(const Json& json, std::string_view key) {
  const Json* value = json.Find(key);
  if (value != nullptr && value->is_string()) {
    std::vector<uint32_t> points = CodePointsOf(value->as_string());
    if (points.size() == 1) return points[0];
  }
  return FieldError(json, key, "one character");
}

StatusOr<PreTokenizerPtr> ParseMetaspace(const Json& json) {
  using Scheme = PreTokenizerStep::Scheme;
  PORTICO_ASSIGN_OR_RETURN(uint32_t replacement, CharacterField(json, "replacement"));
  Scheme scheme = Scheme::kAlways;
  if (const Json* value = json.Find("prepend_scheme")) {
    std::string name = value->is_string() ? value->as_string() : "";
    if (name != "first" && name != "never" && name != "always") {
      return FieldError(json, "prepend_scheme", "first, never or always");
    }
    scheme = name == "first" ? Scheme::kFirst : name == "never" ? Scheme::kNever : Scheme::kAlways;
  }
  PORTICO_ASSIGN_OR_RETURN(bool prefix, OptionalBoolField(json, "add_prefix_space", true));
  // As the reference has it: prepend_scheme's default contradicts, too.
  if (!prefix && scheme != Scheme::kNever) {
    return Error(StatusCode::kInvalidArgument,
                 "add_prefix_space does not match declared prepend_scheme");
  }
  PORTICO_ASSIGN_OR_RETURN(bool split, OptionalBoolField(json, "split", true));
  return MakeMetaspace(replacement, scheme, split);
}

StatusOr<PreTokenizerPtr> ParseSplit(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(SplitPattern pattern, SplitPattern::FromJson(json.Find("pattern")));
  PORTICO_ASSIGN_OR_RETURN(SplitBehavior behavior, BehaviorField(json, std::nullopt));
  PORTICO_ASSIGN_OR_RETURN(bool invert, BoolField(json, "invert"));
  return MakePatternSplit(std::move(pattern), behavior, invert);
}

StatusOr<PreTokenizerPtr> ParseByteLevel(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(bool add_prefix_space, BoolField(json, "add_prefix_space"));
  PORTICO_RETURN_IF_ERROR(BoolField(json, "trim_offsets").status());
  PORTICO_ASSIGN_OR_RETURN(bool use_regex, BoolField(json, "use_regex", true));
  return MakeByteLevel(add_prefix_space, use_regex);
}

StatusOr<PreTokenizerPtr> Parse(const Json& json, size_t depth) {
  if (depth > kMaxDepth) {
    return Error(StatusCode::kInvalidArgument, "pre-tokenizers are nested too deeply");
  }
  std::string type = json.GetString("type");
  if (type == "Sequence") return ParseSequence(json, depth);
  if (type == "ByteLevel") return ParseByteLevel(json);
  if (type == "Split") return ParseSplit(json);
  if (type == "Metaspace") return ParseMetaspace(json);
  if (type == "BertPreTokenizer") return MakeBert();
  if (type == "Whitespace") return MakeWhitespace();
  if (type == "WhitespaceSplit") return MakeWhitespaceSplit();
  if (type == "Punctuation") {
    PORTICO_ASSIGN_OR_RETURN(SplitBehavior behavior, BehaviorField(json, SplitBehavior::kIsolated));
    return MakePunctuation(behavior);
  }
  if (type == "Digits") {
    PORTICO_ASSIGN_OR_RETURN(bool individual, BoolField(json, "individual_digits"));
    return MakeDigits(individual);
  }
  if (type == "CharDelimiterSplit" || type == "Delimiter" ||
      (type.empty() && json.Find("delimiter") != nullptr)) {
    PORTICO_ASSIGN_OR_RETURN(uint32_t delimiter, CharacterField(json, "delimiter"));
    return MakeDelimiterSplit(delimiter);
  }
  if (type == "UnicodeScripts") return MakeUnicodeScripts();
  if (type == "FixedLength") {
    int64_t length = 5;
    if (json.Find("length") != nullptr) {
      PORTICO_ASSIGN_OR_RETURN(length, CountField(json, "length"));
    }
    if (length == 0) return FieldError(json, "length", "at least 1");
    return MakeFixedLength(static_cast<size_t>(length));
  }
  return Error(StatusCode::kInvalidArgument, "unknown pre-tokenizer '" + type + "'");
}

}  // namespace

std::unique_ptr<const PreTokenizer> MakeByteLevelSplit(SplitPattern pattern) {
  std::vector<PreTokenizerPtr> parts;
  // The known patterns leave nothing between their matches.
  const bool known = pattern.known() != KnownPattern::kNone;
  parts.push_back(MakePatternSplit(std::move(pattern),
                                   known ? SplitBehavior::kIsolated : SplitBehavior::kRemoved,
                                   /*invert=*/!known));
  parts.push_back(MakeByteLevel(false, false));
  return MakeSequence(std::move(parts));
}

StatusOr<std::unique_ptr<const PreTokenizer>> PreTokenizer::FromJson(const Json& json) {
  if (json.is_null()) return PreTokenizerPtr();
  return Parse(json, 0);
}

}  // namespace portico::tokenizer
