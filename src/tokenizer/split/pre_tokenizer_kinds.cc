#include "tokenizer/split/pre_tokenizer_kinds.h"

#include <string>
#include <string_view>
#include <utility>

#include "text/unicode.h"
#include "text/utf8.h"
#include "tokenizer/model/byte_level.h"
#include "tokenizer/split/scripts.h"
#include "tokenizer/split/split_pattern.h"

namespace portico::tokenizer {
namespace {

// Replaces each piece that is no added token by the parts `cut` makes of it; empty parts vanish.
template <typename Cut>
void CutPieces(Pieces* pieces, Cut cut) {
  Pieces out;
  out.reserve(pieces->size());
  for (Piece& piece : *pieces) {
    if (piece.added) {
      out.push_back(std::move(piece));
    } else {
      cut(piece.text, &out);
    }
  }
  std::erase_if(out, [](const Piece& p) { return !p.added && p.text.empty(); });
  *pieces = std::move(out);
}

void AppendParts(const NormalizedString& text, const std::vector<Match>& matches,
                 SplitBehavior behavior, Pieces* out) {
  for (auto [begin, end] : ApplyBehavior(matches, behavior)) {
    out->push_back({text.Slice(begin, end), std::nullopt});
  }
}

// Matches of single characters.
std::vector<Match> MatchCharacters(std::string_view text,
                                   const std::function<bool(uint32_t)>& test) {
  std::vector<Match> out;
  size_t previous = 0;
  for (size_t at = 0; at < text.size();) {
    size_t length = Utf8SequenceLength(text.substr(at));
    if (test(Utf8Decode(text.substr(at), length))) {
      if (previous != at) out.push_back({previous, at, false});
      out.push_back({at, at + length, true});
      previous = at + length;
    }
    at += length;
  }
  if (previous != text.size()) out.push_back({previous, text.size(), false});
  return out;
}

class CharacterSplit : public PreTokenizer {
 public:
  CharacterSplit(std::function<bool(uint32_t)> test, SplitBehavior behavior)
      : test_(std::move(test)), behavior_(behavior) {}
  Status Apply(Pieces* pieces) const override {
    CutPieces(pieces, [this](const NormalizedString& text, Pieces* out) {
      AppendParts(text, MatchCharacters(text.text(), test_), behavior_, out);
    });
    return OkStatus();
  }

 private:
  std::function<bool(uint32_t)> test_;
  SplitBehavior behavior_;
};

class PatternSplit : public PreTokenizer {
 public:
  PatternSplit(SplitPattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  Status Apply(Pieces* pieces) const override {
    Status status;
    CutPieces(pieces, [&](const NormalizedString& text, Pieces* out) {
      if (!status.ok()) return;
      StatusOr<std::vector<Match>> matches = pattern_.FindMatches(text.text());
      status = matches.status();
      if (!status.ok()) return;
      if (invert_) {
        for (Match& m : *matches) m.is_match = !m.is_match;
      }
      AppendParts(text, *matches, behavior_, out);
    });
    return status;
  }
  void AppendSteps(std::vector<PreTokenizerStep>* out) const override {
    PreTokenizerStep step;
    if (!pattern_.literal().empty() && !invert_) step.kind = PreTokenizerStep::Kind::kSplitLiteral;
    step.literal = pattern_.literal();
    out->push_back(std::move(step));
  }

 private:
  SplitPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// \w+|[^\w\s]+
class WhitespacePreTokenizer : public PreTokenizer {
 public:
  Status Apply(Pieces* pieces) const override {
    CutPieces(pieces, [](const NormalizedString& text, Pieces* out) {
      std::string_view s = text.text();
      size_t begin = 0;
      int kind = 0;
      for (size_t at = 0; at <= s.size();) {
        size_t length = at < s.size() ? Utf8SequenceLength(s.substr(at)) : 1;
        int next = 0;
        if (at < s.size()) {
          CharProperties p = PropertiesOf(Utf8Decode(s.substr(at), length));
          next = p.is_regex_word() ? 1 : p.is_space() ? 0 : 2;
        }
        if (next != kind) {
          if (kind != 0) out->push_back({text.Slice(begin, at), std::nullopt});
          begin = at;
          kind = next;
        }
        at += length;
      }
    });
    return OkStatus();
  }
};

class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}
  Status Apply(Pieces* pieces) const override {
    CutPieces(pieces, [this](NormalizedString& text, Pieces* out) {
      if (add_prefix_space_ && !text.text().starts_with(' ')) text.Prepend(" ");
      if (!use_regex_ || text.empty()) {
        out->push_back({std::move(text), std::nullopt});
        return;
      }
      std::vector<Match> matches;
      ScanMatches(KnownPattern::kGpt2, text.text(), &matches);
      AppendParts(text, matches, SplitBehavior::kIsolated, out);
    });
    for (Piece& piece : *pieces) {
      if (!piece.added) SpellBytes(&piece.text);
    }
    return OkStatus();
  }

 private:
  bool add_prefix_space_;
  bool use_regex_;
};

class MetaspacePreTokenizer : public PreTokenizer {
 public:
  using Scheme = PreTokenizerStep::Scheme;
  MetaspacePreTokenizer(uint32_t replacement, Scheme scheme, bool split)
      : replacement_(replacement), scheme_(scheme), split_(split) {
    AppendUtf8(replacement, &text_);
  }
  Status Apply(Pieces* pieces) const override {
    CutPieces(pieces, [&](NormalizedString& text, Pieces* out) {
      text.Replace(FindLiteral(" ", text.text()), text_);
      bool wanted =
          scheme_ == Scheme::kAlways || (scheme_ == Scheme::kFirst && text.original().begin == 0);
      if (wanted && !text.text().starts_with(text_)) text.Prepend(text_);
      if (!split_) {
        out->push_back({std::move(text), std::nullopt});
        return;
      }
      AppendParts(text,
                  MatchCharacters(text.text(), [this](uint32_t c) { return c == replacement_; }),
                  SplitBehavior::kMergedWithNext, out);
    });
    return OkStatus();
  }
  void AppendSteps(std::vector<PreTokenizerStep>* out) const override {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::kMetaspace;
    step.replacement = replacement_;
    step.scheme = scheme_;
    step.split = split_;
    out->push_back(std::move(step));
  }

 private:
  uint32_t replacement_;
  std::string text_;
  Scheme scheme_;
  bool split_;
};

class FixedLengthPreTokenizer : public PreTokenizer {
 public:
  explicit FixedLengthPreTokenizer(size_t length) : length_(length) {}
  Status Apply(Pieces* pieces) const override {
    CutPieces(pieces, [this](const NormalizedString& text, Pieces* out) {
      std::string_view s = text.text();
      size_t begin = 0;
      size_t count = 0;
      for (size_t at = 0; at < s.size();) {
        at += Utf8SequenceLength(s.substr(at));
        if (++count == length_ || at == s.size()) {
          out->push_back({text.Slice(begin, at), std::nullopt});
          begin = at;
          count = 0;
        }
      }
    });
    return OkStatus();
  }

 private:
  size_t length_;
};

// Cuts where the script changes; a space belongs to the script before it, and is lost in front of the first.
class UnicodeScriptsPreTokenizer : public PreTokenizer {
 public:
  Status Apply(Pieces* pieces) const override {
    CutPieces(pieces, [](const NormalizedString& text, Pieces* out) {
      std::string_view s = text.text();
      constexpr int kUnset = -2;
      int last = kUnset;
      size_t begin = 0;
      for (size_t at = 0; at < s.size();) {
        size_t length = Utf8SequenceLength(s.substr(at));
        int script = SplitScriptOf(Utf8Decode(s.substr(at), length));
        if (script != kAnyScript && last != script) {
          if (last != kUnset) out->push_back({text.Slice(begin, at), std::nullopt});
          begin = at;
        }
        if (script != kAnyScript) last = script;
        at += length;
      }
      if (begin < s.size() && last != kUnset) {
        out->push_back({text.Slice(begin, s.size()), std::nullopt});
      }
    });
    return OkStatus();
  }
};

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<PreTokenizerPtr> parts) : parts_(std::move(parts)) {}
  Status Apply(Pieces* pieces) const override {
    for (const PreTokenizerPtr& part : parts_) PORTICO_RETURN_IF_ERROR(part->Apply(pieces));
    return OkStatus();
  }
  void AppendSteps(std::vector<PreTokenizerStep>* out) const override {
    for (const PreTokenizerPtr& part : parts_) part->AppendSteps(out);
  }

 private:
  std::vector<PreTokenizerPtr> parts_;
};

bool IsSpace(uint32_t c) { return PropertiesOf(c).is_space(); }
bool IsPunctuation(uint32_t c) { return PropertiesOf(c).is_punctuation(); }
bool IsNumeric(uint32_t c) { return PropertiesOf(c).is_numeric(); }

class WhitespaceSplitPreTokenizer : public CharacterSplit {
 public:
  WhitespaceSplitPreTokenizer() : CharacterSplit(IsSpace, SplitBehavior::kRemoved) {}
  void AppendSteps(std::vector<PreTokenizerStep>* out) const override {
    out->emplace_back().kind = PreTokenizerStep::Kind::kWhitespaceSplit;
  }
};

class BertPreTokenizer : public PreTokenizer {
 public:
  Status Apply(Pieces* pieces) const override {
    PORTICO_RETURN_IF_ERROR(spaces_.Apply(pieces));
    return punctuation_.Apply(pieces);
  }
  void AppendSteps(std::vector<PreTokenizerStep>* out) const override {
    out->emplace_back().kind = PreTokenizerStep::Kind::kBert;
  }

 private:
  CharacterSplit spaces_{IsSpace, SplitBehavior::kRemoved};
  CharacterSplit punctuation_{IsPunctuation, SplitBehavior::kIsolated};
};

}  // namespace

PreTokenizerPtr MakeSequence(std::vector<PreTokenizerPtr> parts) {
  return std::make_unique<SequencePreTokenizer>(std::move(parts));
}

PreTokenizerPtr MakePatternSplit(SplitPattern pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<PatternSplit>(std::move(pattern), behavior, invert);
}

PreTokenizerPtr MakeByteLevel(bool add_prefix_space, bool use_regex) {
  return std::make_unique<ByteLevelPreTokenizer>(add_prefix_space, use_regex);
}

PreTokenizerPtr MakeMetaspace(uint32_t replacement, PreTokenizerStep::Scheme scheme, bool split) {
  return std::make_unique<MetaspacePreTokenizer>(replacement, scheme, split);
}

PreTokenizerPtr MakeBert() { return std::make_unique<BertPreTokenizer>(); }

PreTokenizerPtr MakeWhitespace() { return std::make_unique<WhitespacePreTokenizer>(); }

PreTokenizerPtr MakeWhitespaceSplit() { return std::make_unique<WhitespaceSplitPreTokenizer>(); }

PreTokenizerPtr MakePunctuation(SplitBehavior behavior) {
  return std::make_unique<CharacterSplit>(IsPunctuation, behavior);
}

PreTokenizerPtr MakeDigits(bool individual) {
  return std::make_unique<CharacterSplit>(
      IsNumeric, individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizerPtr MakeDelimiterSplit(uint32_t delimiter) {
  return std::make_unique<CharacterSplit>([delimiter](uint32_t c) { return c == delimiter; },
                                          SplitBehavior::kRemoved);
}

PreTokenizerPtr MakeUnicodeScripts() { return std::make_unique<UnicodeScriptsPreTokenizer>(); }

PreTokenizerPtr MakeFixedLength(size_t length) {
  return std::make_unique<FixedLengthPreTokenizer>(length);
}

}  // namespace portico::tokenizer
