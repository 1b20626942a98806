#include "tokenizer/decode/decode_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/model/byte_level.h"

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

DecodeTable::DecodeTable(const DecodePlan& plan, const Vocabulary& vocabulary) {
  Resize(vocabulary.max_id() + 1);
  bytes_.reserve(size_t{8} * vocabulary.size());
  for (TokenId id = 0; id < size(); ++id) {
    if (!vocabulary.Has(id)) continue;
    entries_.Edit(static_cast<size_t>(id)) = Decoded(plan, vocabulary.Spelling(id), &bytes_);
  }
  bytes_.shrink_to_fit();
}

void DecodeTable::Add(const DecodePlan& plan, TokenId id, std::string_view text, bool special) {
  Entry e = Decoded(plan, text, &more_);
  e.special = special;
  e.apart = 1;
  entries_.Edit(static_cast<size_t>(id)) = e;
}

// The entry of a token that is spelled so; its bytes go to the end of `to`.
DecodeTable::Entry DecodeTable::Decoded(const DecodePlan& plan, std::string_view text,
                                        StoredRows<char>* to) {
  int byte = -1;
  std::string bytes;
  if (plan.kind == DecodePlan::Kind::kByteLevel) {
    AppendByteLevelDecoded(text, &bytes);
  } else if (plan.kind == DecodePlan::Kind::kFallback) {
    size_t at = 0;
    for (size_t found = text.find(plan.replaced); found != std::string_view::npos;
         found = text.find(plan.replaced, at)) {
      bytes.append(text.substr(at, found - at)).append(plan.replacement);
      at = found + plan.replaced.size();
    }
    bytes.append(text.substr(at));
    byte = ByteOfFallbackToken(bytes);
    if (byte >= 0) bytes.assign(1, static_cast<char>(byte));
  } else if (plan.kind == DecodePlan::Kind::kTokenwise) {
    std::vector<std::string> tokens = {"", std::string(text)};
    plan.each->Apply(&tokens);
    bytes = std::move(tokens[1]);
  } else {
    bytes = text;
  }
  Entry e;
  e.offset = static_cast<uint32_t>(to->size());
  e.length = static_cast<uint32_t>(std::min<size_t>(bytes.size(), (1u << 24) - 1));
  e.has = 1;
  e.is_byte = byte >= 0;
  to->append(bytes.data(), bytes.size());
  return e;
}

void DecodeTable::Save(CompiledWriter* out) const {
  out->Rows(entries_);
  out->Rows(bytes_);
}

std::optional<DecodeTable> DecodeTable::Restore(std::string_view bytes, TokenId size) {
  CompiledReader in(bytes);
  DecodeTable out;
  if (!in.Rows(&out.entries_) || !in.Rows(&out.bytes_) || !in.AtEnd() || out.size() != size) {
    return std::nullopt;
  }
  bool known = true;
  for (const Entry& e : out.entries_) {
    known &= uint64_t{e.offset} + e.length <= out.bytes_.size() && e.apart == 0;
  }
  if (!known) return std::nullopt;
  return out;
}

std::string DecodePlanned(const DecodePlan& plan, const DecodeTable& table,
                          std::span<const TokenId> ids, bool skip_special_tokens) {
  std::string out;
  out.reserve(ids.size() * 4);
  if (plan.kind == DecodePlan::Kind::kByteLevel) {
    for (TokenId id : ids) {
      if (table.Shows(id, skip_special_tokens)) out.append(table.Bytes(table.At(id)));
    }
    return IsValidUtf8(out) ? out : ToValidUtf8(out);
  }
  std::string run;
  for (TokenId id : ids) {
    if (!table.Shows(id, skip_special_tokens)) continue;
    const DecodeTable::Entry& e = table.At(id);
    if (e.is_byte) {
      run.append(table.Bytes(e));
      continue;
    }
    if (!run.empty()) AppendRun(run, &out);
    run.clear();
    out.append(table.Bytes(e));
  }
  AppendRun(run, &out);
  StripStart(plan, &out);
  return out;
}

}  // namespace portico::tokenizer
