#include "text/normalization.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <unordered_map>

#include "base/stable_sort.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace portico {
namespace {

using namespace unicode_tables;

constexpr uint32_t kLimit = 0x110000;
constexpr uint32_t kHangul = 0xAC00;
constexpr uint32_t kHangulCount = 11172;
constexpr uint32_t kJamoL = 0x1100;
constexpr uint32_t kJamoV = 0x1161;
constexpr uint32_t kJamoT = 0x11A7;
constexpr uint32_t kJamoVCount = 21;
constexpr uint32_t kJamoTCount = 28;

// Where an entry (character, n, n characters) of a table begins, by character.
using DecompositionIndex = std::unordered_map<uint32_t, const uint32_t*>;

DecompositionIndex IndexOf(const uint32_t* table, size_t size) {
  DecompositionIndex index;
  for (size_t at = 0; at + 1 < size; at += 2 + table[at + 1])
    index.emplace(table[at], table + at + 1);
  return index;
}

class Tables {
 public:
  static const Tables& Get() {
    static const Tables* const tables = new Tables;
    return *tables;
  }

  // [n, n characters], or null.
  const uint32_t* Decomposition(uint32_t c, bool compatible) const {
    if (!decomposes_[c / kPage]) return nullptr;
    if (compatible) {
      if (auto it = compatible_.find(c); it != compatible_.end()) return it->second;
    }
    auto it = canonical_.find(c);
    return it == canonical_.end() ? nullptr : it->second;
  }

  uint8_t CombiningClass(uint32_t c) const {
    return class_pages_[class_page_of_[c / kPage]][c % kPage];
  }

  // 0 if they do not compose.
  uint32_t Compose(uint32_t a, uint32_t b) const {
    if (a - kJamoL < 19 && b - kJamoV < kJamoVCount) {
      return kHangul + ((a - kJamoL) * kJamoVCount + (b - kJamoV)) * kJamoTCount;
    }
    if (a - kHangul < kHangulCount && (a - kHangul) % kJamoTCount == 0 && b > kJamoT &&
        b < kJamoT + kJamoTCount) {
      return a + (b - kJamoT);
    }
    auto it = compositions_.find(uint64_t{a} << 32 | b);
    return it == compositions_.end() ? 0 : it->second;
  }

  // What NFC may do with the character: nothing, or it decomposes for good or may join the one before it.
  bool MayChangeInNfc(uint32_t c) const { return (nfc_unsure_[c >> 6] >> (c & 63) & 1) != 0; }
  // Whether all 64 characters from c on, a multiple of 64, are starters that NFC leaves alone.
  bool ArePlainInNfc(uint32_t c) const { return plain_[c >> 6]; }

 private:
  static constexpr size_t kPage = 256;
  using Page = std::array<uint8_t, kPage>;

  Tables() : class_pages_(1), nfc_unsure_(kLimit / 64), plain_(kLimit / 64) {
    canonical_ = IndexOf(kCanonical, kCanonicalSize);
    compatible_ = IndexOf(kCompatible, kCompatibleSize);
    for (const auto* index : {&canonical_, &compatible_}) {
      for (const auto& entry : *index) decomposes_[entry.first / kPage] = true;
    }
    uint32_t at = 0;
    for (size_t i = 0; i + 1 < kCombiningRunsSize; i += 2) {
      uint32_t end = at + kCombiningRuns[i];
      for (uint32_t c = at; c < end && kCombiningRuns[i + 1] != 0; ++c) {
        SetClass(c, static_cast<uint8_t>(kCombiningRuns[i + 1]));
      }
      at = end;
    }
    for (const auto& entry : canonical_) SetUnsure(entry.first);
    for (size_t i = 0; i + 2 < kCompositionsSize; i += 3) {
      compositions_.emplace(uint64_t{kCompositions[i]} << 32 | kCompositions[i + 1],
                            kCompositions[i + 2]);
      ClearUnsure(kCompositions[i + 2]);
    }
    for (size_t i = 0; i + 2 < kCompositionsSize; i += 3) SetUnsure(kCompositions[i + 1]);
    for (uint32_t c = kJamoV; c < kJamoT + kJamoTCount; ++c) SetUnsure(c);
    for (uint32_t c = 0; c < kLimit; c += 64) {
      const uint8_t* classes = &class_pages_[class_page_of_[c / kPage]][c % kPage];
      plain_[c >> 6] = nfc_unsure_[c >> 6] == 0 && std::count(classes, classes + 64, 0) == 64;
    }
  }

  void SetClass(uint32_t c, uint8_t combining_class) {
    uint8_t& page = class_page_of_[c / kPage];
    if (page == 0) {
      page = static_cast<uint8_t>(class_pages_.size());
      class_pages_.emplace_back();
    }
    class_pages_[page][c % kPage] = combining_class;
  }

  void SetUnsure(uint32_t c) { nfc_unsure_[c >> 6] |= uint64_t{1} << (c & 63); }
  void ClearUnsure(uint32_t c) { nfc_unsure_[c >> 6] &= ~(uint64_t{1} << (c & 63)); }

  DecompositionIndex canonical_;
  DecompositionIndex compatible_;
  std::unordered_map<uint64_t, uint32_t> compositions_;
  bool decomposes_[kLimit / kPage] = {};        // one of the page's characters
  uint8_t class_page_of_[kLimit / kPage] = {};  // the pages without marks share the first
  std::vector<Page> class_pages_;
  std::vector<uint64_t> nfc_unsure_;
  std::vector<uint8_t> plain_;  // by 64 characters
};

struct Pending {
  uint8_t combining_class;
  NormalizedChar value;
};

// Decomposes, and puts runs of combining marks in canonical order (stable by class).
class Decomposer {
 public:
  Decomposer(const Tables& tables, bool compatible, std::vector<NormalizedChar>* out)
      : tables_(tables), compatible_(compatible), out_(out) {}

  void Add(uint32_t c) {
    if (c - kHangul < kHangulCount) {
      uint32_t index = c - kHangul;
      Put(kJamoL + index / (kJamoVCount * kJamoTCount), 0);
      Put(kJamoV + index / kJamoTCount % kJamoVCount, 1);
      if (index % kJamoTCount != 0) Put(kJamoT + index % kJamoTCount, 1);
    } else if (const uint32_t* entry = c < 0x80 ? nullptr : tables_.Decomposition(c, compatible_)) {
      for (uint32_t i = 0; i < entry[0]; ++i) Put(entry[1 + i], i > 0 ? 1 : 0);
    } else {
      Put(c, 0);
    }
  }

  void Finish() {
    StableSort(&pending_, [](const Pending& a, const Pending& b) {
      return a.combining_class < b.combining_class;
    });
    for (const Pending& p : pending_) out_->push_back(p.value);
    pending_.clear();
  }

 private:
  void Put(uint32_t c, int32_t change) {
    uint8_t combining_class = c < 0x300 ? uint8_t{0} : tables_.CombiningClass(c);
    if (combining_class == 0) {
      Finish();
      out_->push_back({c, change});
    } else {
      pending_.push_back({combining_class, {c, change}});
    }
  }

  const Tables& tables_;
  bool compatible_;
  std::vector<NormalizedChar>* out_;
  std::vector<Pending> pending_;
};

// Composes decomposed[from..] in place, in the manner of the reference: a character that joined its base adds its
// change, less one, to the base's.
void Compose(const Tables& tables, size_t from, std::vector<NormalizedChar>* chars) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t base = kNone;
  size_t out = from;
  int last_class = -1;  // of the marks kept behind the base
  for (size_t i = from; i < chars->size(); ++i) {
    NormalizedChar c = (*chars)[i];
    uint8_t combining_class = tables.CombiningClass(c.code_point);
    if (base != kNone && last_class < static_cast<int>(combining_class)) {
      if (uint32_t whole = tables.Compose((*chars)[base].code_point, c.code_point)) {
        (*chars)[base].code_point = whole;
        (*chars)[base].change += c.change - 1;
        continue;
      }
    }
    if (combining_class == 0) {
      base = out;
      last_class = -1;
    } else if (base != kNone) {
      last_class = combining_class;
    }
    (*chars)[out++] = c;
  }
  chars->resize(out);
}

size_t CharLength(char lead) {
  auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// No character below U+0300 (bytes CC 80) changes in NFC unless one from there on follows. Returns the first
// position with such a lead byte.
size_t FindLeadFrom0300(std::string_view text, size_t at) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  for (uint64_t word = 0; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & kHighBits) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0xCC) ++at;
  return at;
}

// The end of the run of three-byte characters from `at` on that NFC leaves alone, as nearly all of East Asia's; `*last`
// is then where its last one begins.
size_t SkipPlain(const Tables& tables, std::string_view text, size_t at, size_t* last) {
  while (at + 3 <= text.size()) {
    auto lead = static_cast<unsigned char>(text[at]);
    if (lead >> 4 != 0xE) break;
    auto second = static_cast<unsigned char>(text[at + 1]);
    if (!tables.ArePlainInNfc(uint32_t{lead & 15u} << 12 | uint32_t{second & 63u} << 6)) break;
    *last = at;
    at += 3;
  }
  return at;
}

// The end of the first character at or behind `at` that NFC may change or that is out of order, and in `*start` the
// beginning of the last starter before it; npos if there is none.
size_t FindUnsure(const Tables& tables, std::string_view text, size_t at, size_t* start) {
  uint8_t last_class = 0;
  size_t starter = at;
  while (at < text.size()) {
    size_t next = FindLeadFrom0300(text, at);
    if (next != at) {
      last_class = 0;
      size_t back = next;
      if (next < text.size()) {
        do --back;
        while (IsTailByte(text[back]));
        starter = back;
      }
      at = next;
      continue;
    }
    if (size_t plain = SkipPlain(tables, text, at, &starter); plain != at) {
      last_class = 0;
      at = plain;
      continue;
    }
    size_t length = CharLength(text[at]);
    uint32_t c = Utf8Decode(text.substr(at), length);
    uint8_t combining_class = tables.CombiningClass(c);
    if (tables.MayChangeInNfc(c) || (combining_class != 0 && last_class > combining_class)) {
      *start = combining_class == 0 && !tables.MayChangeInNfc(c) ? at : starter;
      return at + length;
    }
    if (combining_class == 0) starter = at;
    last_class = combining_class;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace

void NormalizeTo(NormalForm form, std::string_view text, std::vector<NormalizedChar>* out) {
  const Tables& tables = Tables::Get();
  bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  size_t from = out->size();
  Decomposer decomposer(tables, compatible, out);
  for (size_t at = 0; at < text.size();) {
    size_t length = CharLength(text[at]);
    decomposer.Add(Utf8Decode(text.substr(at), length));
    at += length;
  }
  decomposer.Finish();
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) Compose(tables, from, out);
}

bool IsSurelyNfc(std::string_view text) {
  if (FindLeadFrom0300(text, 0) == text.size()) return true;
  size_t start = 0;
  return FindUnsure(Tables::Get(), text, 0, &start) == std::string_view::npos;
}

bool IsNfc(std::string_view text) { return IsSurelyNfc(text) || ToNfc(text) == text; }

std::vector<NfcPart> NfcPartsOf(std::string_view text, std::vector<NormalizedChar>* chars) {
  const Tables& tables = Tables::Get();
  std::vector<NfcPart> parts;
  for (size_t done = 0; done < text.size();) {
    size_t start = 0;
    size_t end = FindUnsure(tables, text, done, &start);
    if (end == std::string_view::npos) break;
    // On to the next character that neither composes nor is a mark: the text is independent on its two sides.
    while (end < text.size()) {
      size_t length = CharLength(text[end]);
      uint32_t c = Utf8Decode(text.substr(end), length);
      if (tables.CombiningClass(c) == 0 && !tables.MayChangeInNfc(c)) break;
      end += length;
    }
    const size_t before = chars->size();
    NormalizeTo(NormalForm::kNfc, text.substr(start, end - start), chars);
    parts.push_back({start, end, chars->size() - before});
    done = end;
  }
  return parts;
}

std::string ToNfc(std::string_view text) {
  std::vector<NormalizedChar> chars;
  std::string out;
  out.reserve(text.size() + 16);
  size_t done = 0;
  const std::vector<NfcPart> parts = NfcPartsOf(text, &chars);
  const NormalizedChar* next = chars.data();
  for (const NfcPart& part : parts) {
    out.append(text.substr(done, part.begin - done));
    for (size_t i = 0; i < part.chars; ++i) AppendUtf8((next++)->code_point, &out);
    done = part.end;
  }
  out.append(text.substr(done));
  return out;
}

}  // namespace portico
