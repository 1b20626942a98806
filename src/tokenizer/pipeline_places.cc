// The pipeline's ways to the places of tokens without a NormalizedString.
#include <algorithm>
#include <optional>
#include <utility>

#include "text/normalization.h"
#include "tokenizer/fused/id_sink.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/normalize/aligned_nfc.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {
namespace {

// AddedTokens::Split(), or nothing where parts overlap: a token that takes the spaces behind it may take those of the
// next one, which is still found, as in the reference. Such places do not follow one another.
std::optional<std::vector<AddedTokens::Part>> SplitInOrder(const AddedTokens& added,
                                                           std::string_view text, bool normalized,
                                                           bool parse_special) {
  std::vector<AddedTokens::Part> parts;
  added.Split(text, normalized, parse_special, &parts);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].begin < parts[i - 1].end) return std::nullopt;
  }
  return parts;
}

}  // namespace

bool Pipeline::MayPlace() const {
  return fused_ || (fast_ && (!parts_.normalizer || parts_.nfc_only));
}

bool Pipeline::MayTrim(std::string_view text) const {
  // Elsewhere spaces in the text are not those of the tokens.
  return fast_ && parts_.post_processor && parts_.post_processor->trim() == OffsetTrim::kSpaces &&
         !parts_.byte_level.add_prefix_space && (!parts_.nfc_only || IsSurelyNfc(text));
}

// A part without added tokens that no normalizer changes.
bool Pipeline::PlacePart(std::string_view part, bool at_start, PlaceSink* places,
                         std::vector<TokenId>* ids, TokenTexts* texts) const {
  const size_t first = ids->size();
  const size_t told = places->size();
  if (fast_) {
    fast_->Encode(part, ids, places);
    if (texts) fast_->SpellTokens(part, std::span<const TokenId>(*ids).subspan(first), texts);
    return true;
  }
  {
    IdSink out(ids, part.size() / 4);
    if (!fused_->EncodePlaced(part, at_start, &out, places)) return false;
  }
  if (texts) SpellTokens(std::span<const TokenId>(*ids).subspan(first), told, *places, texts);
  return true;
}

// Appends what tokens of a fused encoder and the added ones between them show; the first is the sink's token `told`.
void Pipeline::SpellTokens(std::span<const TokenId> ids, size_t told, const PlaceSink& places,
                           TokenTexts* texts) const {
  auto own = std::lower_bound(places.texts().begin(), places.texts().end(), told,
                              [](const auto& text, size_t number) { return text.first < number; });
  for (TokenId id : ids) {
    if (own != places.texts().end() && own->first == told) {
      texts->Add((own++)->second);
    } else {
      std::string_view spelling = parts_.model->vocabulary().Spelling(id);
      texts->Add(spelling.empty() ? IdToToken(id) : spelling);
    }
    ++told;
  }
}

// A part of a text without the added tokens that are looked for in the text as it is given.
bool Pipeline::PlaceByteLevel(std::string_view part, bool parse_special, PlaceSink* places,
                              std::vector<TokenId>* ids, TokenTexts* texts) const {
  if (!added_.SearchesNormalized()) return PlacePart(part, false, places, ids, texts);
  const auto inner = SplitInOrder(added_, part, /*normalized=*/true, parse_special);
  if (!inner) return false;
  for (const AddedTokens::Part& p : *inner) {
    if (p.begin == p.end) continue;
    std::string_view text = part.substr(p.begin, p.end - p.begin);
    if (!p.id) {
      if (!PlacePart(text, false, places, ids, texts)) return false;
      continue;
    }
    ids->push_back(*p.id);
    places->AddWhole(text.data(), text.data() + text.size());
    if (texts) texts->Add(text);
  }
  return true;
}

// The same for a part that NFC may change.
bool Pipeline::PlaceNormalized(std::string_view part, bool parse_special, PlaceSink* places,
                               std::vector<TokenId>* ids, TokenTexts* texts) const {
  const std::optional<AlignedNfc> nfc = AlignedNfc::Of(part);
  if (!nfc) return false;
  std::vector<Span> spans;
  spans.reserve(part.size() / 2);
  std::vector<int32_t> words;
  uint32_t count = 0;
  {
    const PlaceLists lists{.bytes = &spans, .words = places->WantsWords() ? &words : nullptr};
    PlaceSink inner(nfc->text(), lists, /*trims=*/false);
    if (!PlaceByteLevel(nfc->text(), parse_special, &inner, ids, texts)) return false;
    count = inner.words();
  }
  nfc->ToOriginal(&spans);
  const uint32_t begin = places->ByteAt(part.data());
  for (Span& span : spans) span = {span.begin + begin, span.end + begin};
  places->AddStretch(part.data(), part.data() + part.size(), spans, words, count);
  return true;
}

bool Pipeline::PlaceText(std::string_view text, bool parse_special, PlaceSink* places,
                         std::vector<TokenId>* ids, TokenTexts* texts) const {
  if (fused_ && parse_special && added_.AreRawWords() && (texts == nullptr || ids_tell_added_)) {
    const size_t first = ids->size();
    const size_t told = places->size();
    if (!PlaceStretches(text, places, ids)) return false;
    if (texts) SpellTokens(std::span<const TokenId>(*ids).subspan(first), told, *places, texts);
    return true;
  }
  const auto parts = SplitInOrder(added_, text, /*normalized=*/false, parse_special);
  if (!parts) return false;
  for (const AddedTokens::Part& p : *parts) {
    if (p.begin == p.end) continue;
    std::string_view part = text.substr(p.begin, p.end - p.begin);
    bool ok = true;
    if (p.id) {
      ids->push_back(*p.id);
      places->AddWhole(part.data(), part.data() + part.size());
      // It shows the text that it took, spaces around it too.
      if (texts) texts->Add(part);
    } else if (fused_) {
      ok = PlacePart(part, p.begin == 0, places, ids, texts);
    } else if (parts_.nfc_only && !IsSurelyNfc(part)) {
      ok = PlaceNormalized(part, parse_special, places, ids, texts);
    } else {
      ok = PlaceByteLevel(part, parse_special, places, ids, texts);
    }
    if (!ok) return false;
  }
  return true;
}

bool Pipeline::EncodeSequenceFused(std::string_view text, uint32_t type_id, bool parse_special,
                                   Encoding* out) const {
  out->trimmed = MayTrim(text);
  {
    const PlaceLists lists{.bytes = &out->byte_offsets,
                           .chars = &out->offsets,
                           .words = &out->word_ids,
                           .texts = true};
    PlaceSink places(text, lists, out->trimmed);
    if (!PlaceText(text, parse_special, &places, &out->ids, &out->tokens)) return false;
  }
  const size_t count = out->ids.size();
  out->type_ids.assign(count, type_id);
  out->attention_mask.assign(count, 1);
  out->special_tokens_mask.assign(count, 0);
  return true;
}

Status Pipeline::EncodeOffsets(std::string_view text, const Tokenizer::EncodeOptions& options,
                               OffsetUnit unit, std::vector<TokenId>* ids,
                               std::vector<Span>* offsets) const {
  const size_t first_id = ids->size();
  const size_t first_offset = offsets->size();
  const bool trims = MayTrim(text);
  const bool as_placed =
      trims || !parts_.post_processor || parts_.post_processor->trim() == OffsetTrim::kNone;
  if (MayPlace() && as_placed && frame_.known && TruncationOf(options) == nullptr &&
      PaddingOf(options) == nullptr) {
    auto frame = [&](const std::vector<TokenId>& around) {
      if (!options.add_special_tokens) return;
      ids->insert(ids->end(), around.begin(), around.end());
      offsets->resize(offsets->size() + around.size());
    };
    frame(frame_.before);
    bool ok = false;
    {
      PlaceLists lists;
      (unit == OffsetUnit::kBytes ? lists.bytes : lists.chars) = offsets;
      PlaceSink places(text, lists, trims);
      ok = PlaceText(text, options.parse_special, &places, ids, nullptr);
    }
    frame(frame_.after);
    if (ok) return OkStatus();
    ids->resize(first_id);
    offsets->resize(first_offset);
  }
  PORTICO_ASSIGN_OR_RETURN(const Encoding encoding, EncodeFull(text, nullptr, options));
  const std::vector<Span>& found =
      unit == OffsetUnit::kBytes ? encoding.byte_offsets : encoding.offsets;
  ids->insert(ids->end(), encoding.ids.begin(), encoding.ids.end());
  offsets->insert(offsets->end(), found.begin(), found.end());
  return OkStatus();
}

}  // namespace portico::tokenizer
