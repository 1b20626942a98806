#include "tokenizer/char_atoms.h"

#include <algorithm>
#include <string>

#include "text/utf8.h"
#include "tokenizer/byte_level.h"

namespace portico::tokenizer {
namespace {

constexpr size_t kMinSlots = 1024;

bool IsTail(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

size_t Border(char last, char first) {
  return size_t{static_cast<unsigned char>(last)} << 8 | static_cast<unsigned char>(first);
}

size_t CharLength(char lead) {
  auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

// Whether the last character of `bytes` lacks bytes.
bool EndsInside(std::string_view bytes) {
  size_t at = bytes.size();
  while (at > 0 && IsTail(bytes[at - 1])) --at;
  return at == 0 || CharLength(bytes[at - 1]) > bytes.size() - at + 1;
}

// Merges a character's bytes alone; true if they become one token, with the latest rank in `*last_rank`.
bool MergeAlone(const MergeTable& merges, std::vector<TokenId> ids, TokenId* whole,
                uint32_t* last_rank) {
  *last_rank = 0;
  while (ids.size() > 1) {
    size_t best = 0;
    Merge least;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      Merge m = merges.Get(ids[i], ids[i + 1]);
      if (m.rank < least.rank) {
        least = m;
        best = i;
      }
    }
    if (least.rank == Merge::kNone) return false;
    *last_rank = std::max(*last_rank, least.rank);
    ids[best] = least.id;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  *whole = ids[0];
  return true;
}

}  // namespace

CharAtoms::CharAtoms(const Bpe& model, const TokenId* byte_ids)
    : byte_ids_(byte_ids), atoms_(kMinSlots), border_(size_t{256} * 256, Merge::kNone) {
  NoteBorders(model);
  const Vocabulary& vocabulary = model.vocabulary();
  std::string bytes;
  for (TokenId id = 0; id <= vocabulary.max_id(); ++id) {
    std::string_view spelling = vocabulary.Spelling(id);
    if (spelling.size() > 8 || spelling.size() < 2) continue;  // four bytes, two for each
    bytes.clear();
    AppendByteLevelDecoded(spelling, &bytes);
    if (bytes.size() < 2 || Utf8SequenceLength(bytes) != bytes.size()) continue;
    std::vector<TokenId> ids;
    for (char c : bytes) ids.push_back(byte_ids[static_cast<unsigned char>(c)]);
    Atom atom;
    atom.code_point = Utf8Decode(bytes, bytes.size());
    if (MergeAlone(model.merges(), std::move(ids), &atom.id, &atom.last_rank)) Add(atom);
  }
}

void CharAtoms::NoteBorders(const Bpe& model) {
  // Per token: its first and last byte, and whether it begins or ends inside a character.
  struct Ends {
    char first = 0;
    char last = 0;
    bool begins_inside = false;
    bool ends_inside = false;
  };
  const Vocabulary& vocabulary = model.vocabulary();
  std::vector<Ends> ends(static_cast<size_t>(vocabulary.max_id()) + 1);
  std::string bytes;
  for (TokenId id = 0; id <= vocabulary.max_id(); ++id) {
    bytes.clear();
    AppendByteLevelDecoded(vocabulary.Spelling(id), &bytes);
    if (bytes.empty()) continue;
    ends[static_cast<size_t>(id)] = {bytes.front(), bytes.back(), IsTail(bytes.front()),
                                     EndsInside(bytes)};
  }
  model.merges().ForEach([&](TokenId left, TokenId right, Merge merge) {
    const Ends& a = ends[static_cast<size_t>(left)];
    const Ends& b = ends[static_cast<size_t>(right)];
    bool on_border = !IsTail(b.first);
    if (!on_border || !(a.begins_inside || a.ends_inside || b.ends_inside)) return;
    uint32_t& earliest = border_[Border(a.last, b.first)];
    earliest = std::min(earliest, merge.rank);
  });
}

void CharAtoms::Add(Atom atom) {
  if ((count_ + 1) * 2 > atoms_.size()) {
    std::vector<Atom> old(atoms_.size() * 2);
    old.swap(atoms_);
    count_ = 0;
    for (const Atom& a : old) {
      if (a.id >= 0) Add(a);
    }
  }
  size_t mask = atoms_.size() - 1;
  size_t at = (atom.code_point * 0x9E3779B1u >> 7) & mask;
  while (atoms_[at].id >= 0 && atoms_[at].code_point != atom.code_point) at = (at + 1) & mask;
  count_ += atoms_[at].id < 0 ? 1 : 0;
  atoms_[at] = atom;
}

const CharAtoms::Atom* CharAtoms::Find(uint32_t code_point) const {
  size_t mask = atoms_.size() - 1;
  size_t at = (code_point * 0x9E3779B1u >> 7) & mask;
  while (atoms_[at].id >= 0 && atoms_[at].code_point != code_point) at = (at + 1) & mask;
  return atoms_[at].id < 0 ? nullptr : &atoms_[at];
}

void CharAtoms::AppendSymbols(std::string_view piece, std::vector<Token>* symbols) const {
  size_t previous = symbols->size();  // where the character before begins in `symbols`
  bool previous_whole = false;
  uint32_t previous_rank = 0;
  auto spell = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      symbols->push_back({byte_ids_[static_cast<unsigned char>(piece[i])], i, i + 1});
    }
  };
  for (uint32_t at = 0; at < piece.size();) {
    auto length = static_cast<uint32_t>(CharLength(piece[at]));
    const Atom* atom = nullptr;
    bool whole = length == 1;
    uint32_t rank = 0;
    if (length > 1) {
      atom = Find(Utf8Decode(piece.substr(at), length));
      whole = atom != nullptr;
      rank = whole ? atom->last_rank : Merge::kNone;
    }
    // A border that may be crossed early takes both its characters apart.
    bool safe =
        at == 0 || border_[Border(piece[at - 1], piece[at])] > std::max(rank, previous_rank);
    if (!safe && previous_whole && symbols->back().end - symbols->back().begin > 1) {
      Token taken = symbols->back();
      symbols->resize(previous);
      spell(taken.begin, taken.end);
    }
    previous = symbols->size();
    if (safe && whole && length > 1) {
      symbols->push_back({atom->id, at, at + length});
    } else {
      spell(at, at + length);
    }
    previous_whole = whole;
    previous_rank = length == 1 ? 0 : rank;
    at += length;
  }
}

}  // namespace portico::tokenizer
