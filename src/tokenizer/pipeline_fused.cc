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

bool Pipeline::EncodeSequenceFused(std::string_view text, uint32_t type_id, bool parse_special,
                                   Encoding* out) const {
  std::vector<PlacedToken> tokens;
  std::vector<size_t> added;  // those of them that are added tokens
  uint32_t word = 0;
  for (const AddedTokens::Part& part : PartsAsGiven(text, parse_special)) {
    auto begin = static_cast<uint32_t>(part.begin);
    if (part.id) {
      added.push_back(tokens.size());
      tokens.push_back({*part.id, begin, static_cast<uint32_t>(part.end), word++});
      continue;
    }
    size_t first = tokens.size();
    std::string_view piece = text.substr(part.begin, part.end - part.begin);
    uint32_t words = 0;
    bool known = fused_ ? fused_->EncodeTokens(piece, begin == 0, &tokens, &words)
                        : fast_->EncodeTokens(piece, &tokens, &words);
    if (!known) return false;
    for (; first < tokens.size(); ++first) {
      PlacedToken& t = tokens[first];
      t = {t.id, t.begin + begin, t.end + begin, t.word + word};
    }
    word += words;
  }
  size_t count = tokens.size();
  CharOffsets chars(text);
  out->ids.resize(count);
  out->tokens.reserve(count);
  out->offsets.resize(count);
  out->byte_offsets.resize(count);
  out->word_ids.resize(count);
  out->type_ids.assign(count, type_id);
  out->attention_mask.assign(count, 1);
  out->special_tokens_mask.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const PlacedToken& t = tokens[i];
    Span bytes{t.begin, t.end};
    out->ids[i] = t.id;
    out->byte_offsets[i] = bytes;
    out->offsets[i] = chars.Of(bytes);
    out->word_ids[i] = static_cast<int32_t>(t.word);
    out->tokens.emplace_back(parts_.model->vocabulary().Spelling(t.id));
  }
  // An added token shows the text that it took, spaces around it too.
  for (size_t i : added) {
    out->tokens[i] = text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
  }
  return true;
}

}  // namespace portico::tokenizer
