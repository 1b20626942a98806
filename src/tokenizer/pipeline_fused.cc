// The pipeline's ways through a fused encoder.
#include <utility>

#include "tokenizer/fused/id_sink.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {
namespace {

bool EncodePart(const FusedEncoder& encoder, std::string_view part, bool at_start, IdSink* out,
                NoPlaces*) {
  return encoder.Encode(part, at_start, out);
}
bool EncodePart(const FusedEncoder& encoder, std::string_view part, bool at_start, IdSink* out,
                PlaceSink* places) {
  return encoder.EncodePlaced(part, at_start, out, places);
}

}  // namespace

// As a text goes by in stretches inside of an encoder (text_cache.h), so it does here where its lines or words are
// added tokens and what lies between them is too short to be kept. A stretch begins and ends behind an added token, and
// what decided its tokens ends within TextCache::kBehind bytes behind it, or it ends with the text.
template <typename Places>
bool Pipeline::AppendStretches(std::string_view text, IdSink* out, Places* places) const {
  TextCache& texts = *fused_->raw_texts();
  for (size_t at = 0; at < text.size();) {
    const size_t readable = text.size() - at;
    // The text's own beginning may be encoded otherwise.
    const bool keep = at > 0 && readable >= TextCache::kReadable;
    const size_t least = TextCache::LeastOf(readable);
    uint64_t hash = 0;
    if (keep) {
      hash = TextCache::HashOf(text.data() + at);
      const TextCache::Found found = texts.Find(text.data() + at, readable, hash);
      if (found.bytes > 0 && places->Copy(text.data() + at, found)) {
        out->Append(found.ids.data(), found.ids.size());
        at += found.bytes;
        continue;
      }
    }
    const size_t first = out->size();
    const auto mark = places->BeginStretch(text.data() + at);
    if (keep) places->Hold();
    size_t end = at;
    size_t looked = at;
    bool firm = false;
    do {
      const std::optional<WordFinder::Found> token = added_.FindRaw(text, end, &looked);
      const size_t part_end = token ? token->begin : text.size();
      if (part_end - at >= TextCache::kMost) places->Release();
      if (part_end > end &&
          !EncodePart(*fused_, text.substr(end, part_end - end), end == 0, out, places)) {
        return false;
      }
      if (token) {
        out->Append(token->id);
        places->AddWhole(text.data() + token->begin, text.data() + token->end);
      }
      end = token ? token->end : text.size();
      firm = end == text.size() || (token && looked <= end + TextCache::kBehind);
    } while (end < text.size() && end - at < TextCache::kMost && (end - at < least || !firm));
    const size_t length = end - at;
    if (keep && firm && TextCache::MayStore(length, readable - length) && places->MayKeep() &&
        texts.Seen(hash)) {
      texts.Store(text.data() + at, length, readable - length, hash, out->From(first),
                  places->Pack(mark, length));
    }
    places->Release();
    at = end;
  }
  return true;
}

bool Pipeline::AppendIdsFused(std::string_view text, bool parse_special,
                              std::vector<TokenId>* ids) const {
  size_t before = ids->size();
  if (parse_special && added_.AreRawWords()) {
    bool ok = false;
    {
      IdSink out(ids, text.size() / 4);
      NoPlaces places;
      ok = AppendStretches(text, &out, &places);
    }
    if (!ok) ids->resize(before);
    return ok;
  }
  std::vector<AddedTokens::Part> parts;
  added_.Split(text, /*normalized=*/false, parse_special, &parts);
  bool ok = true;
  {
    IdSink out(ids, text.size() / 4);
    for (const AddedTokens::Part& part : parts) {
      if (part.id) {
        out.Append(*part.id);
        continue;
      }
      std::string_view piece = text.substr(part.begin, part.end - part.begin);
      ok = fused_->Encode(piece, part.begin == 0, &out);
      if (!ok) break;
    }
  }
  if (!ok) ids->resize(before);
  return ok;
}

bool Pipeline::PlaceStretches(std::string_view text, PlaceSink* places,
                              std::vector<TokenId>* ids) const {
  IdSink out(ids, text.size() / 4);
  return AppendStretches(text, &out, places);
}

}  // namespace portico::tokenizer
