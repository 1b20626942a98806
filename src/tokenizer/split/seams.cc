#include "tokenizer/split/seams.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/pipeline_steps.h"
#include "tokenizer/split/char_class.h"

namespace portico::tokenizer {
namespace {

constexpr std::string_view kFullStop = "\u3002";
constexpr std::string_view kComma = "\uFF0C";

bool IsStop(std::string_view text) {
  return text.starts_with(kFullStop) || text.starts_with(kComma);
}

// None of these patterns has a match with a space behind another character than a space, or a letter before a
// full stop, and none looks further back or ahead than one character of white space.
bool CutsBeforeSpaces(ByteLevelPlan::Kind kind) {
  using Kind = ByteLevelPlan::Kind;
  return kind == Kind::kGpt2 || kind == Kind::kCl100k || kind == Kind::kQwen2 ||
         kind == Kind::kO200k || kind == Kind::kDeepSeekV3 || kind == Kind::kDigitsGpt2;
}

// What a space becomes, where the normalizer keeps the sides of a seam apart; else nothing.
std::optional<std::string> ImageOfSpace(const Normalizer* normalizer) {
  std::string image = " ";
  if (normalizer == nullptr) return image;
  std::vector<NormalizerStep> steps;
  normalizer->AppendSteps(&steps);
  for (const NormalizerStep& step : steps) {
    if (step.kind == NormalizerStep::Kind::kOther) return std::nullopt;
    if (step.kind != NormalizerStep::Kind::kReplace) continue;
    if (step.from == image) {
      image = step.to;
    } else if (step.from.find(image) != std::string::npos) {
      return std::nullopt;
    }
    if (image.empty()) return std::nullopt;
  }
  return image;
}

std::string Normalized(const Normalizer* normalizer, std::string_view text) {
  NormalizedString s(text);
  if (normalizer != nullptr && !normalizer->Apply(&s).ok()) return {};
  return s.text();
}

// A part begins with X alone (EncodePart), which a model without an unknown token may not know though it knows the whole.
bool Encodes(const Pipeline& pipeline, char c) {
  Tokenizer::EncodeOptions plain;
  plain.add_special_tokens = false;
  std::vector<TokenId> ids;
  return pipeline.EncodeIds({&c, 1}, plain, &ids).ok();
}

enum class Cutting { kUnknown, kAtSpace, kNever };

// Whether the pre-tokenizer ends a piece before the image of each space that follows something else.
Cutting CuttingOf(const PreTokenizer* pre_tokenizer, std::string* image) {
  using Kind = PreTokenizerStep::Kind;
  std::vector<PreTokenizerStep> steps;
  if (pre_tokenizer != nullptr) pre_tokenizer->AppendSteps(&steps);
  Cutting cutting = Cutting::kNever;
  for (const PreTokenizerStep& step : steps) {
    if (cutting == Cutting::kAtSpace) break;  // later steps see one piece at a time
    switch (step.kind) {
      case Kind::kWhitespaceSplit:
      case Kind::kBert:
        if (*image == " ") cutting = Cutting::kAtSpace;
        break;
      case Kind::kMetaspace: {
        std::string replacement;
        AppendUtf8(step.replacement, &replacement);
        if (*image == " ") *image = replacement;
        if (step.split && *image == replacement) cutting = Cutting::kAtSpace;
        break;
      }
      case Kind::kSplitLiteral:
        if (step.literal.find(*image) != std::string::npos) return Cutting::kUnknown;
        break;
      default:
        return Cutting::kUnknown;
    }
  }
  return cutting;
}

bool MergesAlone(const Model& model) {
  const auto* bpe = dynamic_cast<const Bpe*>(&model);
  return bpe != nullptr && !bpe->options().ignore_merges &&
         bpe->options().continuing_subword_prefix.empty() &&
         bpe->options().end_of_word_suffix.empty();
}

}  // namespace

Seams::Seams(const Pipeline& pipeline) {
  const PipelineParts& parts = pipeline.parts();
  if (CutsBeforeSpaces(parts.byte_level.kind)) {
    if (parts.normalizer && !parts.nfc_only) return;
    ForByteLevel();
    // The prefix belongs to a text's start; a text that starts with a space gets none.
    if (parts.byte_level.add_prefix_space) letters_before_stop_ = false;
  } else if (!ForOthers(pipeline)) {
    return;
  }
  ExcludeAddedTokens(pipeline.added_tokens());
  before_space_any_ = std::find(before_space_, before_space_ + 128, true) != before_space_ + 128;
}

void Seams::ForByteLevel() {
  std::fill(before_space_ + 0x21, before_space_ + 0x7F, true);
  letters_before_space_ = true;
  letters_before_stop_ = true;
}

bool Seams::ForOthers(const Pipeline& pipeline) {
  const PipelineParts& parts = pipeline.parts();
  const Normalizer* normalizer = parts.normalizer.get();
  std::optional<std::string> image = ImageOfSpace(normalizer);
  if (!image) return false;
  const std::string normal_space = *image;
  Cutting cutting = CuttingOf(parts.pre_tokenizer.get(), &*image);
  if (cutting == Cutting::kUnknown) return false;
  if (cutting == Cutting::kNever && !MergesAlone(*parts.model)) return false;
  needs_guard_ = true;
  for (char c = 0x21; c < 0x7F; ++c) {
    // The normalizer leaves X and the space as they are known to be.
    std::string alone = Normalized(normalizer, {&c, 1});
    std::string after(1, c);
    std::string_view kept = alone;
    bool lowered = kept.ends_with(static_cast<char>(c | 0x20)) && c >= 'A' && c <= 'Z';
    before_space_[static_cast<size_t>(c)] =
        (kept.ends_with(c) || lowered) &&
        Normalized(normalizer, after + " " + after) == alone + normal_space + kept.back() &&
        Encodes(pipeline, c);
  }
  if (cutting == Cutting::kNever) ExcludeCrossedByMerges(parts.model->vocabulary(), *image);
  return true;
}

void Seams::ExcludeCrossedByMerges(const Vocabulary& vocabulary, std::string_view image) {
  if (!vocabulary.Find(image)) std::fill(before_space_, before_space_ + 128, false);
  for (char c = 0x21; c < 0x7F; ++c) {
    if (!vocabulary.Find({&c, 1})) before_space_[static_cast<size_t>(c)] = false;
  }
  for (TokenId id = 0; id <= vocabulary.max_id(); ++id) {
    std::string_view token = vocabulary.Spelling(id);
    for (size_t at = token.find(image, 1); at < token.size(); at = token.find(image, at + 1)) {
      auto before = static_cast<unsigned char>(token[at - 1]);
      if (before < 0x80) before_space_[before] = false;
    }
  }
}

void Seams::ExcludeAddedTokens(const AddedTokens& added) {
  for (const auto& [id, entry] : added.entries()) {
    ExcludeToken(entry.token.content);
    ExcludeToken(entry.text);
  }
}

void Seams::ExcludeToken(std::string_view content) {
  if (content.empty()) return;
  auto exclude = [&](char x) {
    auto byte = static_cast<unsigned char>(x);
    if (byte < 0x80) {
      before_space_[byte] = false;
    } else {
      letters_before_space_ = letters_before_stop_ = false;
    }
  };
  exclude(content.back());
  for (size_t i = 1; i < content.size(); ++i) {
    if (content[i] == ' ' || content.substr(i).starts_with("\u2581")) exclude(content[i - 1]);
    if (IsStop(content.substr(i))) letters_before_stop_ = false;
  }
}

size_t Seams::Find(std::string_view text, size_t from, size_t to) const {
  const CharClasses& classes = CharClasses::Get();
  auto letter_ends_at = [&](size_t at) {
    size_t begin = at - 1;
    while (begin > 0 && IsTailByte(text[begin])) --begin;
    return (ClassAt(classes, text.data() + begin).char_class & kLetter) != 0;
  };
  for (size_t at = std::max<size_t>(from, 1); at < to; ++at) {
    auto before = static_cast<unsigned char>(text[at - 1]);
    if (text[at] == ' ') {
      if (before < 0x80 ? before_space_[before] : letters_before_space_ && letter_ends_at(at)) {
        return at;
      }
    } else if (letters_before_stop_ && before >= 0x80 && IsStop(text.substr(at)) &&
               letter_ends_at(at)) {
      return at;
    }
  }
  return to;
}

Status Seams::EncodePart(const Tokenizer& tokenizer, std::string_view text, size_t begin,
                         size_t end, const Tokenizer::EncodeOptions& options,
                         std::vector<TokenId>* ids) const {
  Tokenizer::EncodeOptions plain = options;
  plain.add_special_tokens = false;
  if (begin == 0 || !needs_guard_) {
    return tokenizer.EncodeWith(text.substr(begin, end - begin), plain, ids);
  }
  std::vector<TokenId> guard;
  PORTICO_RETURN_IF_ERROR(tokenizer.EncodeWith(text.substr(begin - 1, 1), plain, &guard));
  const auto before = static_cast<std::ptrdiff_t>(ids->size());
  PORTICO_RETURN_IF_ERROR(
      tokenizer.EncodeWith(text.substr(begin - 1, end - begin + 1), plain, ids));
  const auto dropped = static_cast<std::ptrdiff_t>(guard.size());
  ids->erase(ids->begin() + before, ids->begin() + before + dropped);
  return OkStatus();
}

}  // namespace portico::tokenizer
