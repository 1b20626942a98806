#include "tokenizer/post_processor.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "tokenizer/encoding_ops.h"
#include "tokenizer/fused/offset_trim.h"
#include "tokenizer/load/json_fields.h"

namespace portico::tokenizer {
namespace {

using PostProcessorPtr = std::unique_ptr<const PostProcessor>;
constexpr size_t kMaxDepth = 64;

struct SpecialToken {
  std::vector<TokenId> ids;
  TokenTexts tokens;
};

Encoding EncodingOf(const SpecialToken& special, uint32_t type_id) {
  Encoding out;
  size_t n = special.ids.size();
  out.ids = special.ids;
  out.tokens = special.tokens;
  out.offsets.resize(n);
  out.byte_offsets.resize(n);
  out.type_ids.assign(n, type_id);
  out.attention_mask.assign(n, 1);
  out.special_tokens_mask.assign(n, 1);
  out.word_ids.assign(n, Encoding::kNone);
  return out;
}

// Takes the spaces of a token out of its offsets.
void TrimOffsets(bool add_prefix_space, Encoding* encoding) {
  for (Encoding& part : encoding->overflowing) TrimOffsets(add_prefix_space, &part);
  if (encoding->trimmed) return;
  for (size_t i = 0; i < encoding->size(); ++i) {
    OuterSpaces spaces = OuterSpacesOf(encoding->tokens[i]);
    // One space in front of the text is the one that was put there.
    bool first = i == 0 || encoding->offsets[i].begin == 0;
    if (first && add_prefix_space && spaces.leading == 1) spaces.leading = 0;
    TrimSpan(spaces, &encoding->offsets[i]);
    TrimSpan(spaces, &encoding->byte_offsets[i]);
  }
}

OffsetTrim TrimOf(bool trims, bool add_prefix_space) {
  if (!trims) return OffsetTrim::kNone;
  return add_prefix_space ? OffsetTrim::kOther : OffsetTrim::kSpaces;
}

class ByteLevelProcessor : public PostProcessor {
 public:
  ByteLevelProcessor(bool trim_offsets, bool add_prefix_space)
      : trim_offsets_(trim_offsets), add_prefix_space_(add_prefix_space) {}
  size_t AddedTokens(bool) const override { return 0; }
  void Apply(bool, std::vector<Encoding>* parts) const override {
    for (size_t i = 0; i < parts->size(); ++i) {
      if (trim_offsets_) TrimOffsets(add_prefix_space_, &(*parts)[i]);
      SetSequence(static_cast<int32_t>(i), &(*parts)[i]);
    }
  }
  SpecialFrame FrameOfSingle() const override { return {true, {}, {}}; }
  OffsetTrim trim() const override { return TrimOf(trim_offsets_, add_prefix_space_); }

 private:
  bool trim_offsets_;
  bool add_prefix_space_;
};

class TemplateProcessor : public PostProcessor {
 public:
  struct Item {
    int sequence = -1;  // 0 or 1; -1: a special token
    std::string special;
    uint32_t type_id = 0;
  };
  using Specials = std::map<std::string, SpecialToken, std::less<>>;

  TemplateProcessor(std::vector<Item> single, std::vector<Item> pair, Specials specials)
      : single_(std::move(single)), pair_(std::move(pair)), specials_(std::move(specials)) {}

  size_t AddedTokens(bool pair) const override {
    size_t count = 0;
    for (const Item& item : pair ? pair_ : single_) {
      if (item.sequence < 0) count += specials_.find(item.special)->second.ids.size();
    }
    return count;
  }

  void Apply(bool add_special_tokens, std::vector<Encoding>* parts) const override {
    std::vector<Encoding> out;
    const std::vector<Item>& items = parts->size() == 2 ? pair_ : single_;
    for (size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      if (item.sequence >= 0) {
        auto index = static_cast<size_t>(item.sequence);
        if (index >= parts->size()) continue;
        Encoding& part = (*parts)[index];
        part.type_ids.assign(part.size(), item.type_id);
        SetSequence(item.sequence, &part);
        bool again = std::any_of(items.begin() + static_cast<ptrdiff_t>(i) + 1, items.end(),
                                 [&](const Item& o) { return o.sequence == item.sequence; });
        again ? out.push_back(part) : out.push_back(std::move(part));
      } else if (add_special_tokens) {
        out.push_back(EncodingOf(specials_.find(item.special)->second, item.type_id));
      }
    }
    *parts = std::move(out);
  }

  SpecialFrame FrameOfSingle() const override {
    SpecialFrame frame;
    int sequences = 0;
    for (const Item& item : single_) {
      if (item.sequence >= 0) {
        if (item.sequence > 0) return {};
        ++sequences;
        continue;
      }
      const SpecialToken& special = specials_.find(item.special)->second;
      std::vector<TokenId>& side = sequences == 0 ? frame.before : frame.after;
      side.insert(side.end(), special.ids.begin(), special.ids.end());
    }
    frame.known = sequences == 1;
    return frame.known ? frame : SpecialFrame{};
  }

 private:
  std::vector<Item> single_;
  std::vector<Item> pair_;
  Specials specials_;
};

// BERT's [CLS] A [SEP] B [SEP] and RoBERTa's <s> A </s></s> B </s>.
class ClsSepProcessor : public PostProcessor {
 public:
  ClsSepProcessor(SpecialToken cls, SpecialToken sep, bool roberta, bool trim_offsets,
                  bool add_prefix_space)
      : cls_(std::move(cls)),
        sep_(std::move(sep)),
        roberta_(roberta),
        trim_offsets_(trim_offsets),
        add_prefix_space_(add_prefix_space) {}

  size_t AddedTokens(bool pair) const override { return pair ? (roberta_ ? 4 : 3) : 2; }

  void Apply(bool add_special_tokens, std::vector<Encoding>* parts) const override {
    for (Encoding& part : *parts) {
      if (roberta_ && trim_offsets_) TrimOffsets(add_prefix_space_, &part);
      if (roberta_) part.type_ids.assign(part.size(), 0);
    }
    if (!add_special_tokens) return;
    for (size_t i = 0; i < parts->size(); ++i) {
      std::vector<Encoding> overflowing = std::move((*parts)[i].overflowing);
      (*parts)[i].overflowing.clear();
      Encoding framed = Frame(i, (*parts)[i]);
      for (Encoding& part : overflowing) {
        if (roberta_) part.type_ids.assign(part.size(), 0);
        framed.overflowing.push_back(Frame(i, part));
      }
      (*parts)[i] = std::move(framed);
    }
  }

  SpecialFrame FrameOfSingle() const override { return {true, cls_.ids, sep_.ids}; }
  OffsetTrim trim() const override { return TrimOf(roberta_ && trim_offsets_, add_prefix_space_); }

 private:
  Encoding Frame(size_t index, const Encoding& part) const {
    uint32_t type_id = index > 0 && !roberta_ ? 1 : 0;
    Encoding out;
    if (index == 0) {
      out = EncodingOf(cls_, type_id);
    } else if (roberta_) {
      out = EncodingOf(sep_, type_id);
    }
    auto begin = static_cast<uint32_t>(out.size());
    Encoding bare = part;
    bare.sequence_ranges.clear();
    bare.special_tokens_mask.assign(bare.size(), 0);
    bare.attention_mask.assign(bare.size(), 1);
    MergeInto(&out, bare);
    auto end = static_cast<uint32_t>(out.size());
    MergeInto(&out, EncodingOf(sep_, type_id));
    out.sequence_ranges = {{static_cast<int32_t>(index), begin, end}};
    return out;
  }

  SpecialToken cls_;
  SpecialToken sep_;
  bool roberta_;
  bool trim_offsets_;
  bool add_prefix_space_;
};

class SequenceProcessor : public PostProcessor {
 public:
  explicit SequenceProcessor(std::vector<PostProcessorPtr> steps) : steps_(std::move(steps)) {}

  size_t AddedTokens(bool pair) const override {
    size_t count = 0;
    for (const PostProcessorPtr& step : steps_) count += step->AddedTokens(pair);
    return count;
  }
  void Apply(bool add_special_tokens, std::vector<Encoding>* parts) const override {
    for (const PostProcessorPtr& step : steps_) step->Apply(add_special_tokens, parts);
  }
  SpecialFrame FrameOfSingle() const override {
    SpecialFrame frame{true, {}, {}};
    for (const PostProcessorPtr& step : steps_) {
      SpecialFrame next = step->FrameOfSingle();
      bool adds = !next.before.empty() || !next.after.empty();
      // A step that splits its input into several makes the next one see more than one.
      if (!next.known || (adds && (!frame.before.empty() || !frame.after.empty()))) return {};
      if (adds) frame = std::move(next);
    }
    return frame;
  }
  OffsetTrim trim() const override {
    OffsetTrim trim = OffsetTrim::kNone;
    for (const PostProcessorPtr& step : steps_) {
      if (step->trim() == OffsetTrim::kNone) continue;
      trim = trim == OffsetTrim::kNone ? step->trim() : OffsetTrim::kOther;
    }
    return trim;
  }

 private:
  std::vector<PostProcessorPtr> steps_;
};

StatusOr<PostProcessorPtr> Parse(const Json& json, size_t depth);

StatusOr<TokenId> IdOf(const Json& json) {
  if (!json.is_int() || json.as_int() < 0 || json.as_int() > INT32_MAX) {
    return Error(StatusCode::kInvalidArgument, "a special token's id must be a number");
  }
  return static_cast<TokenId>(json.as_int());
}

StatusOr<std::vector<TemplateProcessor::Item>> ParseTemplate(
    const Json& json, std::string_view key, const TemplateProcessor::Specials& specials) {
  const Json* list = json.Find(key);
  if (list == nullptr || !list->is_array()) return FieldError(json, key, "a list");
  std::vector<TemplateProcessor::Item> items;
  for (const Json& piece : list->as_array()) {
    TemplateProcessor::Item item;
    const Json* body = piece.Find("Sequence");
    bool sequence = body != nullptr;
    if (!sequence) body = piece.Find("SpecialToken");
    if (body == nullptr) return FieldError(json, key, "Sequence and SpecialToken items");
    PORTICO_ASSIGN_OR_RETURN(std::string id, StringField(*body, "id"));
    PORTICO_ASSIGN_OR_RETURN(int64_t type_id, CountField(*body, "type_id"));
    item.type_id = static_cast<uint32_t>(type_id);
    if (sequence) {
      if (id != "A" && id != "B") return FieldError(json, key, "sequences A and B");
      item.sequence = id == "A" ? 0 : 1;
    } else {
      if (specials.find(id) == specials.end()) {
        return Error(StatusCode::kInvalidArgument,
                     "the template names the special token '" + id + "' that is not defined");
      }
      item.special = std::move(id);
    }
    items.push_back(std::move(item));
  }
  return items;
}

StatusOr<PostProcessorPtr> ParseTemplateProcessing(const Json& json) {
  const Json* list = json.Find("special_tokens");
  if (list == nullptr || !list->is_object()) return FieldError(json, "special_tokens", "an object");
  TemplateProcessor::Specials specials;
  for (const auto& [name, value] : list->as_object()) {
    SpecialToken special;
    const Json* id_text = value.Find("id");
    if (id_text == nullptr || !id_text->is_string()) {
      return FieldError(json, "special_tokens", "objects with an id");
    }
    const Json* ids = value.Find("ids");
    const Json* tokens = value.Find("tokens");
    if (ids == nullptr || !ids->is_array() || tokens == nullptr || !tokens->is_array() ||
        ids->as_array().size() != tokens->as_array().size()) {
      return FieldError(json, "special_tokens", "lists of ids and tokens of one length");
    }
    for (const Json& id : ids->as_array()) {
      PORTICO_ASSIGN_OR_RETURN(TokenId value_id, IdOf(id));
      special.ids.push_back(value_id);
    }
    for (const Json& token : tokens->as_array()) {
      if (!token.is_string()) return FieldError(json, "special_tokens", "lists of texts");
      special.tokens.Add(token.as_string());
    }
    specials.emplace(name, std::move(special));
  }
  PORTICO_ASSIGN_OR_RETURN(auto single, ParseTemplate(json, "single", specials));
  PORTICO_ASSIGN_OR_RETURN(auto pair, ParseTemplate(json, "pair", specials));
  return PostProcessorPtr(
      new TemplateProcessor(std::move(single), std::move(pair), std::move(specials)));
}

StatusOr<SpecialToken> PairField(const Json& json, std::string_view key) {
  const Json* value = json.Find(key);
  if (value == nullptr || !value->is_array() || value->as_array().size() != 2 ||
      !value->as_array()[0].is_string()) {
    return FieldError(json, key, "[token, id]");
  }
  PORTICO_ASSIGN_OR_RETURN(TokenId id, IdOf(value->as_array()[1]));
  SpecialToken special{{id}, {}};
  special.tokens.Add(value->as_array()[0].as_string());
  return special;
}

StatusOr<PostProcessorPtr> ParseClsSep(const Json& json, bool roberta) {
  PORTICO_ASSIGN_OR_RETURN(SpecialToken sep, PairField(json, "sep"));
  PORTICO_ASSIGN_OR_RETURN(SpecialToken cls, PairField(json, "cls"));
  return PostProcessorPtr(new ClsSepProcessor(std::move(cls), std::move(sep), roberta,
                                              roberta && json.GetBool("trim_offsets", false),
                                              roberta && json.GetBool("add_prefix_space", false)));
}

StatusOr<PostProcessorPtr> ParseSequence(const Json& json, size_t depth) {
  const Json* list = json.Find("processors");
  if (list == nullptr || !list->is_array()) return FieldError(json, "processors", "a list");
  std::vector<PostProcessorPtr> steps;
  for (const Json& item : list->as_array()) {
    PORTICO_ASSIGN_OR_RETURN(PostProcessorPtr step, Parse(item, depth + 1));
    steps.push_back(std::move(step));
  }
  return PostProcessorPtr(new SequenceProcessor(std::move(steps)));
}

StatusOr<PostProcessorPtr> Parse(const Json& json, size_t depth) {
  if (depth > kMaxDepth) {
    return Error(StatusCode::kInvalidArgument, "post-processors are nested too deeply");
  }
  // The reference goes by the fields, and asks for the type only where it needs to.
  std::string type = json.GetString("type");
  auto is_bool = [&](std::string_view key) {
    const Json* value = json.Find(key);
    return value != nullptr && value->is_bool();
  };
  if (json.Find("sep") != nullptr || json.Find("cls") != nullptr) {
    return ParseClsSep(json, is_bool("trim_offsets") && is_bool("add_prefix_space"));
  }
  if (json.Find("special_tokens") != nullptr || type == "TemplateProcessing") {
    return ParseTemplateProcessing(json);
  }
  if (type == "Sequence") return ParseSequence(json, depth);
  if (type == "ByteLevel") {
    PORTICO_ASSIGN_OR_RETURN(bool prefix, BoolField(json, "add_prefix_space"));
    PORTICO_ASSIGN_OR_RETURN(bool trim, BoolField(json, "trim_offsets"));
    PORTICO_RETURN_IF_ERROR(BoolField(json, "use_regex", true).status());
    return PostProcessorPtr(new ByteLevelProcessor(trim, prefix));
  }
  return Error(StatusCode::kInvalidArgument, "unknown post-processor '" + type + "'");
}

}  // namespace

StatusOr<std::unique_ptr<const PostProcessor>> PostProcessor::FromJson(const Json& json) {
  if (json.is_null()) return PostProcessorPtr();
  return Parse(json, 0);
}

}  // namespace portico::tokenizer
