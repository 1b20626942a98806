#include "tokenizer/decode/decoder.h"

#include <algorithm>
#include <utility>

#include "base/hex_digit.h"
#include "text/utf8.h"
#include "tokenizer/load/json_fields.h"
#include "tokenizer/model/byte_level.h"
#include "tokenizer/split/split_pattern.h"

namespace portico::tokenizer {
namespace {

using DecoderPtr = std::unique_ptr<const Decoder>;
using Tokens = std::vector<std::string>;
constexpr size_t kMaxDepth = 64;

void ReplaceAll(std::string_view from, std::string_view to, std::string* text) {
  if (from.empty()) return;
  size_t found = text->find(from);
  if (found == std::string::npos) return;
  std::string out;
  size_t at = 0;
  for (; found != std::string::npos; found = text->find(from, at)) {
    out.append(*text, at, found - at).append(to);
    at = found + from.size();
  }
  out.append(*text, at);
  *text = std::move(out);
}

// English clean-up, in this order.
void CleanUp(std::string* text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto [from, to] : kRules) ReplaceAll(from, to, text);
}

class ByteLevelDecoder : public Decoder {
 public:
  void Apply(Tokens* tokens) const override {
    std::string bytes;
    for (const std::string& token : *tokens) AppendByteLevelDecoded(token, &bytes);
    *tokens = {ToValidUtf8(bytes)};
  }
};

class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void Apply(Tokens* tokens) const override {
    for (size_t i = 0; i < tokens->size(); ++i) {
      const bool last = i + 1 == tokens->size();
      if (!suffix_.empty()) {
        ReplaceAll(suffix_, last ? "" : " ", &(*tokens)[i]);
      } else if (!last) {
        (*tokens)[i] = Spaced((*tokens)[i]);
      }
    }
  }

 private:
  // An empty suffix is found around each character, as Rust's str::replace does.
  static std::string Spaced(std::string_view token) {
    std::string out(1, ' ');
    while (!token.empty()) {
      const size_t length = std::max<size_t>(Utf8SequenceLength(token), 1);
      out.append(token.substr(0, length)).push_back(' ');
      token.remove_prefix(length);
    }
    return out;
  }

  std::string suffix_;
};

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool clean_up)
      : prefix_(std::move(prefix)), clean_up_(clean_up) {}
  void Apply(Tokens* tokens) const override {
    for (size_t i = 0; i < tokens->size(); ++i) {
      std::string& token = (*tokens)[i];
      if (i > 0) {
        if (token.starts_with(prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (clean_up_) CleanUp(&token);
    }
  }

 private:
  std::string prefix_;
  bool clean_up_;
};

class MetaspaceDecoder : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool prepends)
      : replacement_(std::move(replacement)), prepends_(prepends) {}
  void Apply(Tokens* tokens) const override {
    for (size_t i = 0; i < tokens->size(); ++i) {
      ReplaceAll(replacement_, i == 0 && prepends_ ? "" : " ", &(*tokens)[i]);
    }
  }

 private:
  std::string replacement_;
  bool prepends_;
};

class CtcDecoder : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool clean_up)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), clean_up_(clean_up) {}
  void Apply(Tokens* tokens) const override {
    tokens->erase(std::unique(tokens->begin(), tokens->end()), tokens->end());
    for (std::string& token : *tokens) {
      ReplaceAll(pad_, "", &token);
      if (clean_up_) {
        CleanUp(&token);
        ReplaceAll(delimiter_, " ", &token);
      }
    }
    std::erase_if(*tokens, [](const std::string& token) { return token.empty(); });
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool clean_up_;
};

class ReplaceDecoder : public Decoder {
 public:
  ReplaceDecoder(SplitPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void Apply(Tokens* tokens) const override {
    for (std::string& token : *tokens) {
      const StatusOr<std::vector<Match>> matches = pattern_.FindMatches(token);
      if (!matches.ok()) continue;  // a decode has no errors: the token stays as it is
      std::string out;
      for (const Match& m : *matches) {
        m.is_match ? out.append(content_) : out.append(token, m.begin, m.end - m.begin);
      }
      token = std::move(out);
    }
  }

 private:
  SplitPattern pattern_;
  std::string content_;
};

class FuseDecoder : public Decoder {
 public:
  void Apply(Tokens* tokens) const override {
    std::string all;
    for (const std::string& token : *tokens) all.append(token);
    *tokens = {std::move(all)};
  }
};

class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string content, size_t start, size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void Apply(Tokens* tokens) const override {
    for (std::string& token : *tokens) {
      size_t from = 0;
      for (size_t n = 0; n < start_ && token.compare(from, content_.size(), content_) == 0; ++n) {
        from += content_.size();
      }
      size_t to = token.size();
      for (size_t n = 0; n < stop_ && to >= from + content_.size() &&
                         token.compare(to - content_.size(), content_.size(), content_) == 0;
           ++n) {
        to -= content_.size();
      }
      token = token.substr(from, to - from);
    }
  }

 private:
  std::string content_;
  size_t start_;
  size_t stop_;
};

class ByteFallbackDecoder : public Decoder {
 public:
  void Apply(Tokens* tokens) const override {
    Tokens out;
    std::string run;
    auto flush = [&] {
      if (run.empty()) return;
      if (IsValidUtf8(run)) {
        out.push_back(run);
      } else {
        out.insert(out.end(), run.size(), std::string(kReplacementCharacter));
      }
      run.clear();
    };
    for (std::string& token : *tokens) {
      int byte = ByteOfFallbackToken(token);
      if (byte >= 0) {
        run.push_back(static_cast<char>(byte));
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    *tokens = std::move(out);
  }
};

class SequenceDecoder : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<DecoderPtr> steps) : steps_(std::move(steps)) {}
  void Apply(Tokens* tokens) const override {
    for (const DecoderPtr& step : steps_) step->Apply(tokens);
  }

 private:
  std::vector<DecoderPtr> steps_;
};

StatusOr<DecoderPtr> Parse(const Json& json, size_t depth);

StatusOr<DecoderPtr> ParseSequence(const Json& json, size_t depth) {
  const Json* list = json.Find("decoders");
  if (list == nullptr || !list->is_array()) return FieldError(json, "decoders", "a list");
  std::vector<DecoderPtr> steps;
  for (const Json& item : list->as_array()) {
    PORTICO_ASSIGN_OR_RETURN(DecoderPtr step, Parse(item, depth + 1));
    steps.push_back(std::move(step));
  }
  return DecoderPtr(new SequenceDecoder(std::move(steps)));
}

StatusOr<DecoderPtr> ParseMetaspace(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(std::string replacement, StringField(json, "replacement"));
  if (CountCodePoints(replacement) != 1) return FieldError(json, "replacement", "one character");
  std::string scheme = "always";
  if (json.Find("prepend_scheme") != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(scheme, StringField(json, "prepend_scheme"));
  }
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return FieldError(json, "prepend_scheme", "first, never or always");
  }
  PORTICO_ASSIGN_OR_RETURN(bool prefix, OptionalBoolField(json, "add_prefix_space", true));
  if (!prefix && scheme != "never") {
    return Error(StatusCode::kInvalidArgument,
                 "add_prefix_space does not match declared prepend_scheme");
  }
  PORTICO_RETURN_IF_ERROR(OptionalBoolField(json, "split", true).status());
  return DecoderPtr(new MetaspaceDecoder(std::move(replacement), scheme != "never"));
}

StatusOr<DecoderPtr> ParseStrip(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(std::string content, StringField(json, "content"));
  PORTICO_ASSIGN_OR_RETURN(int64_t start, CountField(json, "start"));
  PORTICO_ASSIGN_OR_RETURN(int64_t stop, CountField(json, "stop"));
  if (CountCodePoints(content) != 1) return FieldError(json, "content", "one character");
  return DecoderPtr(
      new StripDecoder(std::move(content), static_cast<size_t>(start), static_cast<size_t>(stop)));
}

// Files of old versions have no "type": the first kind whose fields are all there.
std::string TypeOf(const Json& json) {
  std::string type = json.GetString("type");
  if (!type.empty()) return type;
  if (json.Find("suffix") != nullptr) return "BPEDecoder";
  if (json.Find("prefix") != nullptr) return "WordPiece";
  return json.Find("pad_token") != nullptr ? "CTC" : "";
}

StatusOr<DecoderPtr> Parse(const Json& json, size_t depth) {
  if (depth > kMaxDepth) {
    return Error(StatusCode::kInvalidArgument, "decoders are nested too deeply");
  }
  std::string type = TypeOf(json);
  if (type == "ByteLevel") {
    PORTICO_RETURN_IF_ERROR(BoolField(json, "add_prefix_space").status());
    PORTICO_RETURN_IF_ERROR(BoolField(json, "trim_offsets").status());
    return DecoderPtr(new ByteLevelDecoder);
  }
  if (type == "Sequence") return ParseSequence(json, depth);
  if (type == "Metaspace") return ParseMetaspace(json);
  if (type == "Fuse") return DecoderPtr(new FuseDecoder);
  if (type == "ByteFallback") return DecoderPtr(new ByteFallbackDecoder);
  if (type == "Strip") return ParseStrip(json);
  if (type == "BPEDecoder") {
    PORTICO_ASSIGN_OR_RETURN(std::string suffix, StringField(json, "suffix"));
    return DecoderPtr(new BpeDecoder(std::move(suffix)));
  }
  if (type == "WordPiece") {
    PORTICO_ASSIGN_OR_RETURN(std::string prefix, StringField(json, "prefix"));
    PORTICO_ASSIGN_OR_RETURN(bool clean_up, BoolField(json, "cleanup"));
    return DecoderPtr(new WordPieceDecoder(std::move(prefix), clean_up));
  }
  if (type == "CTC") {
    PORTICO_ASSIGN_OR_RETURN(std::string pad, StringField(json, "pad_token"));
    PORTICO_ASSIGN_OR_RETURN(std::string delimiter, StringField(json, "word_delimiter_token"));
    PORTICO_ASSIGN_OR_RETURN(bool clean_up, BoolField(json, "cleanup"));
    return DecoderPtr(new CtcDecoder(std::move(pad), std::move(delimiter), clean_up));
  }
  if (type == "Replace") {
    PORTICO_ASSIGN_OR_RETURN(SplitPattern pattern, SplitPattern::FromJson(json.Find("pattern")));
    PORTICO_ASSIGN_OR_RETURN(std::string content, StringField(json, "content"));
    return DecoderPtr(new ReplaceDecoder(std::move(pattern), std::move(content)));
  }
  return Error(StatusCode::kInvalidArgument, "unknown decoder '" + type + "'");
}

}  // namespace

StatusOr<std::unique_ptr<const Decoder>> Decoder::FromJson(const Json& json) {
  if (json.is_null()) return DecoderPtr();
  return Parse(json, 0);
}

DecodePlan PlanDecode(const Json& json) {
  DecodePlan plan;
  if (json.GetString("type") == "ByteLevel") {
    plan.kind = DecodePlan::Kind::kByteLevel;
    return plan;
  }
  if (json.GetString("type") == "WordPiece" || json.GetString("type") == "Metaspace") {
    StatusOr<std::unique_ptr<const Decoder>> each = Decoder::FromJson(json);
    if (!each.ok()) return plan;
    plan.kind = DecodePlan::Kind::kTokenwise;
    plan.each = *std::move(each);
    return plan;
  }
  const Json* list = json.Find("decoders");
  if (list == nullptr || !list->is_array()) return plan;
  const JsonArray& steps = list->as_array();
  auto is = [&](size_t i, std::string_view type) {
    return i < steps.size() && steps[i].GetString("type") == type;
  };
  if (steps.size() == 1 && is(0, "ByteLevel")) {
    plan.kind = DecodePlan::Kind::kByteLevel;
    return plan;
  }
  if (!is(0, "Replace") || !is(1, "ByteFallback") || !is(2, "Fuse")) return plan;
  if (steps.size() > 4 || (steps.size() == 4 && !is(3, "Strip"))) return plan;
  const Json* pattern = steps[0].Find("pattern");
  const Json* literal = pattern == nullptr ? nullptr : pattern->Find("String");
  if (literal == nullptr || !literal->is_string() || literal->as_string().empty()) return plan;
  if (steps.size() == 4) {
    if (steps[3].GetInt("stop", -1) != 0) return plan;
    plan.stripped = steps[3].GetString("content");
    plan.strip_count = static_cast<size_t>(steps[3].GetInt("start", 0));
    if (plan.stripped.size() != 1) return plan;
  }
  plan.kind = DecodePlan::Kind::kFallback;
  plan.replaced = literal->as_string();
  plan.replacement = steps[0].GetString("content");
  return plan;
}

int ByteOfFallbackToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int high =
      token[3] == '+' ? 0 : HexDigit(token[3]);  // the reference's number parser takes a sign
  int low = HexDigit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace portico::tokenizer
