#include "tokenizer/decode_table.h"

#include <algorithm>

#include "text/utf8.h"
#include "tokenizer/byte_level.h"

namespace portico::tokenizer {
namespace {

// The bytes of a run of <0x..> tokens: their text, or U+FFFD for each where they are no text.
void AppendRun(std::string_view run, std::string* out) {
  if (IsValidUtf8(run)) {
    out->append(run);
    return;
  }
  for (size_t i = 0; i < run.size(); ++i) out->append(kReplacementCharacter);
}

void StripStart(const DecodePlan& plan, std::string* text) {
  size_t from = 0;
  for (size_t n = 0; n < plan.strip_count && text->compare(from, 1, plan.stripped) == 0; ++n)
    ++from;
  text->erase(0, from);
}

}  // namespace

void DecodeTable::Set(const DecodePlan& plan, TokenId id, std::string_view text, bool special) {
  Entry& e = entries_[static_cast<size_t>(id)];
  size_t offset = bytes_.size();
  if (plan.kind == DecodePlan::Kind::kByteLevel) {
    AppendByteLevelDecoded(text, &bytes_);
  } else if (plan.kind == DecodePlan::Kind::kFallback) {
    std::string replaced;
    size_t at = 0;
    for (size_t found = text.find(plan.replaced); found != std::string_view::npos;
         found = text.find(plan.replaced, at)) {
      replaced.append(text.substr(at, found - at)).append(plan.replacement);
      at = found + plan.replaced.size();
    }
    replaced.append(text.substr(at));
    int byte = ByteOfFallbackToken(replaced);
    e.is_byte = byte >= 0;
    byte >= 0 ? bytes_.push_back(static_cast<char>(byte)) : (bytes_.append(replaced), void());
  } else {
    bytes_.append(text);
  }
  e.offset = static_cast<uint32_t>(offset);
  e.length = static_cast<uint32_t>(std::min<size_t>(bytes_.size() - offset, (1u << 24) - 1));
  e.has = 1;
  e.special = special;
}

std::string DecodePlanned(const DecodePlan& plan, const DecodeTable& table,
                          std::span<const TokenId> ids, bool skip_special_tokens) {
  std::string out;
  out.reserve(ids.size() * 4);
  auto wanted = [&](TokenId id) {
    return table.Has(id) && !(skip_special_tokens && table.At(id).special);
  };
  if (plan.kind == DecodePlan::Kind::kByteLevel) {
    for (TokenId id : ids) {
      if (wanted(id)) out.append(table.Bytes(table.At(id)));
    }
    return IsValidUtf8(out) ? out : ToValidUtf8(out);
  }
  std::string run;
  for (TokenId id : ids) {
    if (!wanted(id)) continue;
    const DecodeTable::Entry& e = table.At(id);
    if (e.is_byte) {
      run.append(table.Bytes(e));
      continue;
    }
    AppendRun(run, &out);
    run.clear();
    out.append(table.Bytes(e));
  }
  AppendRun(run, &out);
  StripStart(plan, &out);
  return out;
}

}  // namespace portico::tokenizer
