#include "tokenizer/encoding_ops.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/load/json_fields.h"

namespace portico::tokenizer {
namespace {

// A file may not ask for more padding than this.
constexpr uint64_t kMaxLength = uint64_t{1} << 24;

template <typename T>
void Extend(std::vector<T>* to, const std::vector<T>& from) {
  to->insert(to->end(), from.begin(), from.end());
}

template <typename T>
std::vector<T> Part(const std::vector<T>& from, size_t begin, size_t end) {
  return {from.begin() + static_cast<ptrdiff_t>(begin), from.begin() + static_cast<ptrdiff_t>(end)};
}

Encoding Slice(const Encoding& e, size_t begin, size_t end) {
  Encoding out;
  out.ids = Part(e.ids, begin, end);
  out.tokens.Add(e.tokens, begin, end);
  out.offsets = Part(e.offsets, begin, end);
  out.byte_offsets = Part(e.byte_offsets, begin, end);
  out.type_ids = Part(e.type_ids, begin, end);
  out.attention_mask = Part(e.attention_mask, begin, end);
  out.special_tokens_mask = Part(e.special_tokens_mask, begin, end);
  out.word_ids = Part(e.word_ids, begin, end);
  out.trimmed = e.trimmed;
  return out;
}

// The windows of `max` tokens that overlap by `stride`.
std::vector<std::pair<size_t, size_t>> Windows(size_t size, size_t max, size_t stride, bool left) {
  std::vector<std::pair<size_t, size_t>> out;
  size_t step = max - stride;
  for (size_t i = 0; i < size; i += step) {
    if (left) {
      size_t end = size - i;
      size_t begin = end > max ? end - max : 0;
      out.emplace_back(begin, end);
      if (begin == 0) break;
    } else {
      size_t end = std::min(i + max, size);
      out.emplace_back(i, end);
      if (end == size) break;
    }
  }
  return out;
}

Status Truncate(Encoding* encoding, uint64_t max, const Truncation& rule) {
  size_t size = encoding->size();
  if (max >= size) return OkStatus();
  if (max == 0) {
    Encoding whole = std::move(*encoding);
    *encoding = Encoding();
    encoding->overflowing.push_back(std::move(whole));
    return OkStatus();
  }
  if (rule.stride >= max) {
    return Error(StatusCode::kInvalidArgument,
                 "the truncation's stride must be less than its max_length");
  }
  auto windows = Windows(size, max, rule.stride, rule.left);
  Encoding out = Slice(*encoding, windows[0].first, windows[0].second);
  for (size_t i = 1; i < windows.size(); ++i) {
    out.overflowing.push_back(Slice(*encoding, windows[i].first, windows[i].second));
  }
  *encoding = std::move(out);
  return OkStatus();
}

Status TruncateLongest(Encoding* first, Encoding* second, const Truncation& rule, uint64_t max) {
  uint64_t n1 = first->size();
  uint64_t n2 = second->size();
  bool swapped = n1 > n2;
  if (swapped) std::swap(n1, n2);
  n2 = n1 > max ? n1 : std::max(n1, max - n1);
  if (n1 + n2 > max) {
    n1 = max / 2;
    n2 = n1 + max % 2;
  }
  if (swapped) std::swap(n1, n2);
  PORTICO_RETURN_IF_ERROR(Truncate(first, n1, rule));
  return Truncate(second, n2, rule);
}

template <typename T>
void Fill(std::vector<T>* list, size_t count, const T& value, bool left) {
  list->insert(left ? list->begin() : list->end(), count, value);
}

}  // namespace

StatusOr<std::optional<Truncation>> Truncation::FromJson(const Json* json) {
  if (json == nullptr || json->is_null()) return std::optional<Truncation>();
  Truncation out;
  PORTICO_ASSIGN_OR_RETURN(int64_t max_length, CountField(*json, "max_length"));
  PORTICO_ASSIGN_OR_RETURN(int64_t stride, CountField(*json, "stride"));
  PORTICO_ASSIGN_OR_RETURN(std::string strategy, StringField(*json, "strategy"));
  std::string direction = json->GetString("direction", "Right");
  if (direction != "Left" && direction != "Right") {
    return FieldError(*json, "direction", "Left or Right");
  }
  if (strategy == "OnlyFirst") {
    out.strategy = Strategy::kOnlyFirst;
  } else if (strategy == "OnlySecond") {
    out.strategy = Strategy::kOnlySecond;
  } else if (strategy != "LongestFirst") {
    return FieldError(*json, "strategy", "LongestFirst, OnlyFirst or OnlySecond");
  }
  out.max_length = static_cast<uint64_t>(max_length);
  out.stride = static_cast<uint64_t>(stride);
  out.left = direction == "Left";
  return std::optional<Truncation>(out);
}

StatusOr<std::optional<Padding>> Padding::FromJson(const Json* json) {
  if (json == nullptr || json->is_null()) return std::optional<Padding>();
  Padding out;
  const Json* strategy = json->Find("strategy");
  if (strategy != nullptr && strategy->is_object() && strategy->Find("Fixed") != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(int64_t fixed, CountField(*strategy, "Fixed"));
    out.fixed = static_cast<uint64_t>(fixed);
  } else if (strategy == nullptr || !strategy->is_string() ||
             strategy->as_string() != "BatchLongest") {
    return FieldError(*json, "strategy", "BatchLongest or {\"Fixed\": length}");
  }
  if (const Json* multiple = json->Find("pad_to_multiple_of"); multiple && !multiple->is_null()) {
    PORTICO_ASSIGN_OR_RETURN(int64_t count, CountField(*json, "pad_to_multiple_of"));
    out.multiple_of = static_cast<uint64_t>(count);
  }
  PORTICO_ASSIGN_OR_RETURN(std::string direction, StringField(*json, "direction"));
  if (direction != "Left" && direction != "Right") {
    return FieldError(*json, "direction", "Left or Right");
  }
  PORTICO_ASSIGN_OR_RETURN(int64_t id, CountField(*json, "pad_id"));
  PORTICO_ASSIGN_OR_RETURN(int64_t type_id, CountField(*json, "pad_type_id"));
  PORTICO_ASSIGN_OR_RETURN(out.token, StringField(*json, "pad_token"));
  if (out.fixed.value_or(0) > kMaxLength || out.multiple_of.value_or(0) > kMaxLength ||
      id > INT32_MAX || type_id > INT32_MAX) {
    return FieldError(*json, "length", "at most 2^24");
  }
  out.left = direction == "Left";
  out.id = static_cast<TokenId>(id);
  out.type_id = static_cast<uint32_t>(type_id);
  return std::optional<Padding>(out);
}

void SetSequence(int32_t sequence, Encoding* encoding) {
  Encoding::Range range{sequence, 0, static_cast<uint32_t>(encoding->size())};
  for (Encoding::Range& r : encoding->sequence_ranges) {
    if (r.sequence == sequence) {
      r = range;
      return;
    }
  }
  encoding->sequence_ranges.push_back(range);
}

void MergeInto(Encoding* encoding, const Encoding& other) {
  std::vector<Encoding> overflowing;
  auto combine = [&](const Encoding& a, const Encoding& b) {
    Encoding joined = a;
    MergeInto(&joined, b);
    overflowing.push_back(std::move(joined));
  };
  for (const Encoding& mine : encoding->overflowing) {
    combine(mine, other);
    for (const Encoding& theirs : other.overflowing) combine(mine, theirs);
  }
  for (const Encoding& theirs : other.overflowing) combine(*encoding, theirs);

  auto shift = static_cast<uint32_t>(encoding->size());
  for (Encoding::Range r : other.sequence_ranges) {
    std::erase_if(encoding->sequence_ranges,
                  [&](const Encoding::Range& old) { return old.sequence == r.sequence; });
    encoding->sequence_ranges.push_back({r.sequence, r.begin + shift, r.end + shift});
  }
  Extend(&encoding->ids, other.ids);
  encoding->tokens.Add(other.tokens, 0, other.tokens.size());
  Extend(&encoding->offsets, other.offsets);
  Extend(&encoding->byte_offsets, other.byte_offsets);
  Extend(&encoding->type_ids, other.type_ids);
  Extend(&encoding->attention_mask, other.attention_mask);
  Extend(&encoding->special_tokens_mask, other.special_tokens_mask);
  Extend(&encoding->word_ids, other.word_ids);
  encoding->overflowing = std::move(overflowing);
}

void MergeInto(Encoding* encoding, Encoding&& other) {
  if (encoding->size() == 0 && encoding->overflowing.empty() && encoding->sequence_ranges.empty()) {
    *encoding = std::move(other);
    return;
  }
  const Encoding& rest = other;
  MergeInto(encoding, rest);
}

Status TruncatePair(Encoding* first, Encoding* second, const Truncation& rule,
                    uint64_t max_length) {
  uint64_t total = first->size() + (second ? second->size() : 0);
  if (max_length == 0) {
    PORTICO_RETURN_IF_ERROR(Truncate(first, 0, rule));
    return second ? Truncate(second, 0, rule) : OkStatus();
  }
  if (total <= max_length) return OkStatus();
  if (rule.strategy == Truncation::Strategy::kLongestFirst) {
    return second ? TruncateLongest(first, second, rule, max_length)
                  : Truncate(first, max_length, rule);
  }
  Encoding* target = rule.strategy == Truncation::Strategy::kOnlyFirst ? first : second;
  if (target == nullptr) {
    return Error(StatusCode::kInvalidArgument, "Truncation error: Second sequence not provided");
  }
  uint64_t excess = total - max_length;
  if (target->size() <= excess) {
    return Error(StatusCode::kInvalidArgument,
                 "Truncation error: Sequence to truncate too short to respect the provided "
                 "max_length");
  }
  return Truncate(target, target->size() - excess, rule);
}

void Pad(Encoding* encoding, const Padding& rule, uint64_t longest) {
  uint64_t length = rule.fixed.value_or(longest);
  uint64_t multiple = rule.multiple_of.value_or(0);
  if (multiple > 0 && length % multiple > 0) length += multiple - length % multiple;
  for (Encoding& part : encoding->overflowing) Pad(&part, rule, longest);
  if (encoding->size() >= length) return;
  size_t count = length - encoding->size();
  Fill(&encoding->ids, count, rule.id, rule.left);
  TokenTexts texts = rule.left ? TokenTexts() : std::move(encoding->tokens);
  for (size_t i = 0; i < count; ++i) texts.Add(rule.token);
  if (rule.left) texts.Add(encoding->tokens, 0, encoding->tokens.size());
  encoding->tokens = std::move(texts);
  Fill(&encoding->offsets, count, Span{}, rule.left);
  Fill(&encoding->byte_offsets, count, Span{}, rule.left);
  Fill(&encoding->type_ids, count, rule.type_id, rule.left);
  Fill(&encoding->attention_mask, count, uint8_t{0}, rule.left);
  Fill(&encoding->special_tokens_mask, count, uint8_t{1}, rule.left);
  Fill(&encoding->word_ids, count, Encoding::kNone, rule.left);
  if (!rule.left) return;
  for (Encoding::Range& r : encoding->sequence_ranges) {
    r.begin += static_cast<uint32_t>(count);
    r.end += static_cast<uint32_t>(count);
  }
}

void FillSequenceIds(Encoding* encoding) {
  encoding->sequence_ids.assign(encoding->size(), Encoding::kNone);
  size_t sequences = std::max<size_t>(1, encoding->sequence_ranges.size());
  for (size_t i = 0; i < sequences; ++i) {
    auto sequence = static_cast<int32_t>(i);
    // A sequence without a range is the whole, as in the reference.
    Encoding::Range range{sequence, 0, static_cast<uint32_t>(encoding->size())};
    for (const Encoding::Range& r : encoding->sequence_ranges) {
      if (r.sequence == sequence) range = r;
    }
    for (uint32_t at = range.begin; at < range.end && at < encoding->size(); ++at) {
      encoding->sequence_ids[at] = sequence;
    }
  }
  for (Encoding& part : encoding->overflowing) FillSequenceIds(&part);
}

}  // namespace portico::tokenizer
