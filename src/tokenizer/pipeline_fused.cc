// The pipeline's ways through a fused encoder, and the byte-level encoder's with places.
#include <utility>

#include "tokenizer/char_offsets.h"
#include "tokenizer/id_sink.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {

// As a text goes by in stretches inside of an encoder (text_cache.h), so it does here where its lines or words are
// added tokens and what lies between them is too short to be kept. A stretch begins and ends behind an added token, and
// what decided its tokens ends within TextCache::kBehind bytes behind it.
bool Pipeline::AppendStretches(std::string_view text, IdSink* out) const {
  TextCache& texts = *fused_->raw_texts();
  for (size_t at = 0; at < text.size();) {
    const size_t readable = text.size() - at;
    // The text's own beginning may be encoded otherwise.
    const bool keep = at > 0 && readable >= TextCache::kLeast + TextCache::kBehind;
    uint64_t hash = 0;
    if (keep) {
      hash = TextCache::HashOf(text.data() + at);
      const TextCache::Found found = texts.Find(text.data() + at, readable, hash);
      if (found.bytes > 0) {
        out->Append(found.ids.data(), found.ids.size());
        at += found.bytes;
        continue;
      }
    }
    const size_t first = out->size();
    size_t end = at;
    size_t looked = at;
    bool firm = false;
    do {
      const std::optional<WordFinder::Found> token = added_.FindRaw(text, end, &looked);
      const size_t part_end = token ? token->begin : text.size();
      if (part_end > end && !fused_->Encode(text.substr(end, part_end - end), end == 0, out)) {
        return false;
      }
      if (token) out->Append(token->id);
      end = token ? token->end : text.size();
      firm = token && looked <= end + TextCache::kBehind;
    } while (end < text.size() && end - at < TextCache::kMost &&
             (end - at < TextCache::kLeast || !firm));
    const size_t length = end - at;
    if (keep && firm && length < TextCache::kMost && readable >= length + TextCache::kBehind) {
      texts.Note(text.data() + at, length, hash, out->From(first));
    }
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
      IdSink out(ids);
      ok = AppendStretches(text, &out);
    }
    if (!ok) ids->resize(before);
    return ok;
  }
  std::vector<AddedTokens::Part> parts;
  added_.Split(text, /*normalized=*/false, parse_special, &parts);
  bool ok = true;
  {
    IdSink out(ids);
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

std::vector<AddedTokens::Part> Pipeline::PartsAsGiven(std::string_view text,
                                                      bool parse_special) const {
  std::vector<AddedTokens::Part> parts;
  added_.Split(text, /*normalized=*/false, parse_special, &parts);
  if (!added_.SearchesNormalized()) return parts;
  std::vector<AddedTokens::Part> all;
  std::vector<AddedTokens::Part> inner;
  for (const AddedTokens::Part& part : parts) {
    if (part.id) {
      all.push_back(part);
      continue;
    }
    inner.clear();
    added_.Split(text.substr(part.begin, part.end - part.begin), /*normalized=*/true, parse_special,
                 &inner);
    for (const AddedTokens::Part& p : inner) {
      if (p.begin < p.end) all.push_back({part.begin + p.begin, part.begin + p.end, p.id});
    }
  }
  return all;
}

bool Pipeline::PlaceFused(std::string_view text, bool parse_special, bool whole,
                          Placed* out) const {
  std::vector<PlacedToken> tokens;
  std::vector<uint32_t> ends;
  int32_t word = 0;
  for (const AddedTokens::Part& part : PartsAsGiven(text, parse_special)) {
    auto begin = static_cast<uint32_t>(part.begin);
    size_t first = out->ids.size();
    std::string_view piece = text.substr(part.begin, part.end - part.begin);
    if (part.id) {
      out->ids.push_back(*part.id);
      out->spans.push_back({begin, static_cast<uint32_t>(part.end)});
      out->words.push_back(word++);
      // It shows the text that it took, spaces around it too.
      if (whole) out->texts.Add(piece);
    } else if (fast_) {
      ends.clear();
      if (whole) ends.reserve(piece.size() / 4);
      fast_->Encode(piece, &out->ids, whole ? &ends : nullptr);
      auto ids = std::span<const TokenId>(out->ids).subspan(first);
      out->spans.resize(out->ids.size());
      fast_->Place(piece, ids, begin, out->spans.data() + first);
      if (!whole) continue;
      out->words.resize(out->ids.size());
      word = fast_->NumberWords(ids, ends, word, out->words.data() + first);
      fast_->SpellTokens(piece, ids, &out->texts);
    } else {
      tokens.clear();
      uint32_t words = 0;
      if (!fused_->EncodeTokens(piece, begin == 0, &tokens, &words)) return false;
      for (const PlacedToken& t : tokens) {
        out->ids.push_back(t.id);
        if (whole) out->texts.Add(parts_.model->vocabulary().Spelling(t.id));
        out->spans.push_back({t.begin + begin, t.end + begin});
        out->words.push_back(word + static_cast<int32_t>(t.word));
      }
      word += static_cast<int32_t>(words);
    }
  }
  return true;
}

bool Pipeline::EncodeSequenceFused(std::string_view text, uint32_t type_id, bool parse_special,
                                   Encoding* out) const {
  Placed placed;
  if (!PlaceFused(text, parse_special, /*whole=*/true, &placed)) return false;
  size_t count = placed.ids.size();
  out->ids = std::move(placed.ids);
  out->byte_offsets = std::move(placed.spans);
  out->word_ids = std::move(placed.words);
  out->tokens = std::move(placed.texts);
  out->offsets = CharOffsets(text).Of(out->byte_offsets);
  out->type_ids.assign(count, type_id);
  out->attention_mask.assign(count, 1);
  out->special_tokens_mask.assign(count, 0);
  return true;
}

}  // namespace portico::tokenizer
