// The pipeline's ways through a fused encoder, and the byte-level encoder's with places.
#include <utility>

#include "tokenizer/char_offsets.h"
#include "tokenizer/id_sink.h"
#include "tokenizer/pipeline.h"

namespace portico::tokenizer {

bool Pipeline::AppendIdsFused(std::string_view text, bool parse_special,
                              std::vector<TokenId>* ids) const {
  size_t before = ids->size();
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
