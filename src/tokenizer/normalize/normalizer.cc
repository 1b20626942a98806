#include "tokenizer/normalize/normalizer.h"

#include <string>
#include <utility>
#include <vector>

#include "text/unicode.h"
#include "text/utf8.h"
#include "tokenizer/load/json_fields.h"
#include "tokenizer/model/byte_level.h"
#include "tokenizer/normalize/precompiled.h"
#include "tokenizer/split/split_pattern.h"

namespace portico::tokenizer {
namespace {

using NormalizerPtr = std::unique_ptr<const Normalizer>;
constexpr size_t kMaxDepth = 64;

class FormNormalizer : public Normalizer {
 public:
  explicit FormNormalizer(NormalForm form) : form_(form) {}
  Status Apply(NormalizedString* text) const override {
    text->Normalize(form_);
    return OkStatus();
  }

 private:
  NormalForm form_;
};

class LowercaseNormalizer : public Normalizer {
 public:
  Status Apply(NormalizedString* text) const override {
    text->Lowercase();
    return OkStatus();
  }
};

class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  Status Apply(NormalizedString* text) const override {
    text->Strip(left_, right_);
    return OkStatus();
  }

 private:
  bool left_;
  bool right_;
};

class StripAccentsNormalizer : public Normalizer {
 public:
  Status Apply(NormalizedString* text) const override {
    text->Filter([](uint32_t c) { return c < 0x80 || !PropertiesOf(c).is_combining(); });
    return OkStatus();
  }
};

// SentencePiece's "nmt" rules for control characters and spaces.
class NmtNormalizer : public Normalizer {
 public:
  Status Apply(NormalizedString* text) const override {
    text->Filter([](uint32_t c) {
      return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
               c == 0x8F || c == 0x9F);
    });
    text->Map1([](uint32_t c) -> uint32_t {
      bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                   (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                   c == 0xFEFF || c == 0xFFFD;
      return space ? ' ' : c;
    });
    return OkStatus();
  }
};

class ByteLevelNormalizer : public Normalizer {
 public:
  Status Apply(NormalizedString* text) const override {
    SpellBytes(text);
    return OkStatus();
  }
};

class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string text) : text_(std::move(text)) {}
  Status Apply(NormalizedString* text) const override {
    text->Prepend(text_);
    return OkStatus();
  }
  void AppendSteps(std::vector<NormalizerStep>* out) const override {
    NormalizerStep step;
    step.kind = NormalizerStep::Kind::kPrepend;
    step.to = text_;
    out->push_back(std::move(step));
  }

 private:
  std::string text_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(SplitPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status Apply(NormalizedString* text) const override {
    if (text->empty()) return OkStatus();
    PORTICO_ASSIGN_OR_RETURN(std::vector<Match> matches, pattern_.FindMatches(text->text()));
    text->Replace(matches, content_);
    return OkStatus();
  }
  void AppendSteps(std::vector<NormalizerStep>* out) const override {
    NormalizerStep step;
    if (!pattern_.literal().empty()) step.kind = NormalizerStep::Kind::kReplace;
    step.from = pattern_.literal();
    step.to = content_;
    out->push_back(std::move(step));
  }

 private:
  SplitPattern pattern_;
  std::string content_;
};

class BertNormalizer : public Normalizer {
 public:
  BertNormalizer(bool clean, bool chinese, bool accents, bool lowercase)
      : clean_(clean), chinese_(chinese), accents_(accents), lowercase_(lowercase) {}

  Status Apply(NormalizedString* text) const override {
    if (clean_) {
      text->Filter([](uint32_t c) {
        if (c == '\t' || c == '\n' || c == '\r') return true;
        return c != 0 && c != 0xFFFD && !PropertiesOf(c).is_other();
      });
      text->Map1(
          [](uint32_t c) -> uint32_t { return PropertiesOf(c).is_space() ? uint32_t{' '} : c; });
    }
    if (chinese_) SpaceOutIdeographs(text);
    if (accents_) {
      text->Normalize(NormalForm::kNfd);
      text->Filter([](uint32_t c) { return c < 0x80 || !PropertiesOf(c).is_nonspacing(); });
    }
    if (lowercase_) text->Lowercase();
    return OkStatus();
  }
  void AppendSteps(std::vector<NormalizerStep>* out) const override {
    NormalizerStep step;
    step.kind = NormalizerStep::Kind::kBert;
    step.clean = clean_;
    step.chinese = chinese_;
    step.accents = accents_;
    step.lowercase = lowercase_;
    out->push_back(std::move(step));
  }

 private:
  static bool IsIdeograph(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  }

  static void SpaceOutIdeographs(NormalizedString* text) {
    std::vector<NormalizedChar> chars;
    for (uint32_t c : CodePointsOf(text->text())) {
      if (IsIdeograph(c)) {
        chars.insert(chars.end(), {{' ', 0}, {c, 1}, {' ', 1}});
      } else {
        chars.push_back({c, 0});
      }
    }
    text->Transform(chars, 0);
  }

  bool clean_;
  bool chinese_;
  bool accents_;
  bool lowercase_;
};

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<NormalizerPtr> parts) : parts_(std::move(parts)) {}
  Status Apply(NormalizedString* text) const override {
    for (const NormalizerPtr& part : parts_) PORTICO_RETURN_IF_ERROR(part->Apply(text));
    return OkStatus();
  }
  void AppendSteps(std::vector<NormalizerStep>* out) const override {
    for (const NormalizerPtr& part : parts_) part->AppendSteps(out);
  }

 private:
  std::vector<NormalizerPtr> parts_;
};

StatusOr<NormalizerPtr> Parse(const Json& json, size_t depth);

StatusOr<NormalizerPtr> ParseSequence(const Json& json, size_t depth) {
  const Json* list = json.Find("normalizers");
  if (list == nullptr || !list->is_array()) return FieldError(json, "normalizers", "a list");
  std::vector<NormalizerPtr> parts;
  for (const Json& item : list->as_array()) {
    PORTICO_ASSIGN_OR_RETURN(NormalizerPtr part, Parse(item, depth + 1));
    parts.push_back(std::move(part));
  }
  return NormalizerPtr(new SequenceNormalizer(std::move(parts)));
}

StatusOr<NormalizerPtr> ParseBert(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(bool clean, BoolField(json, "clean_text"));
  PORTICO_ASSIGN_OR_RETURN(bool chinese, BoolField(json, "handle_chinese_chars"));
  PORTICO_ASSIGN_OR_RETURN(bool lowercase, BoolField(json, "lowercase"));
  const Json* accents = json.Find("strip_accents");
  if (accents != nullptr && !accents->is_null() && !accents->is_bool()) {
    return FieldError(json, "strip_accents", "true, false or null");
  }
  bool strip = accents != nullptr && accents->is_bool() ? accents->as_bool() : lowercase;
  return NormalizerPtr(new BertNormalizer(clean, chinese, strip, lowercase));
}

StatusOr<NormalizerPtr> ParseReplace(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(SplitPattern pattern, SplitPattern::FromJson(json.Find("pattern")));
  PORTICO_ASSIGN_OR_RETURN(std::string content, StringField(json, "content"));
  return NormalizerPtr(new ReplaceNormalizer(std::move(pattern), std::move(content)));
}

// Files of old versions have no "type": the first kind whose fields are all there.
std::string TypeOf(const Json& json) {
  std::string type = json.GetString("type");
  if (!type.empty()) return type;
  if (json.Find("clean_text") != nullptr) return "BertNormalizer";
  if (json.Find("strip_left") != nullptr) return "Strip";
  if (json.Find("normalizers") != nullptr) return "Sequence";
  if (json.Find("precompiled_charsmap") != nullptr) return "Precompiled";
  if (json.Find("pattern") != nullptr) return "Replace";
  return json.Find("prepend") != nullptr ? "Prepend" : "";
}

StatusOr<NormalizerPtr> Parse(const Json& json, size_t depth) {
  if (depth > kMaxDepth) {
    return Error(StatusCode::kInvalidArgument, "normalizers are nested too deeply");
  }
  std::string type = TypeOf(json);
  if (type == "NFC") return NormalizerPtr(new FormNormalizer(NormalForm::kNfc));
  if (type == "NFD") return NormalizerPtr(new FormNormalizer(NormalForm::kNfd));
  if (type == "NFKC") return NormalizerPtr(new FormNormalizer(NormalForm::kNfkc));
  if (type == "NFKD") return NormalizerPtr(new FormNormalizer(NormalForm::kNfkd));
  if (type == "Lowercase") return NormalizerPtr(new LowercaseNormalizer);
  if (type == "StripAccents") return NormalizerPtr(new StripAccentsNormalizer);
  if (type == "Nmt") return NormalizerPtr(new NmtNormalizer);
  if (type == "ByteLevel") return NormalizerPtr(new ByteLevelNormalizer);
  if (type == "Sequence") return ParseSequence(json, depth);
  if (type == "BertNormalizer" || type == "Bert") return ParseBert(json);
  if (type == "Replace") return ParseReplace(json);
  if (type == "Precompiled") return ParsePrecompiled(json);
  if (type == "Prepend") {
    PORTICO_ASSIGN_OR_RETURN(std::string text, StringField(json, "prepend"));
    return NormalizerPtr(new PrependNormalizer(std::move(text)));
  }
  if (type == "Strip") {
    PORTICO_ASSIGN_OR_RETURN(bool left, BoolField(json, "strip_left"));
    PORTICO_ASSIGN_OR_RETURN(bool right, BoolField(json, "strip_right"));
    return NormalizerPtr(new StripNormalizer(left, right));
  }
  return Error(StatusCode::kInvalidArgument, "unknown normalizer '" + type + "'");
}

}  // namespace

StatusOr<std::unique_ptr<const Normalizer>> Normalizer::FromJson(const Json& json) {
  if (json.is_null()) return NormalizerPtr();
  return Parse(json, 0);
}

}  // namespace portico::tokenizer
