#include "tokenizer/normalize/charsmap.h"

#include <cstring>

#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
uint32_t Offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }
uint32_t Value(uint32_t unit) { return unit & ((1u << 31) - 1); }

int Base64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

StatusOr<std::string> DecodeBase64(std::string_view text) {
  auto bad = [] { return Error(StatusCode::kInvalidArgument, "text is not base64"); };
  if (text.size() % 4 != 0) return bad();
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text.substr(0, text.size() - padding)) {
    int digit = Base64Digit(c);
    if (digit < 0) return bad();
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>(bits >> count));
    }
  }
  if ((bits & ((1u << count) - 1)) != 0) return bad();
  return out;
}

StatusOr<Charsmap> Charsmap::Parse(std::string_view blob) {
  uint32_t size = 0;
  if (blob.size() < 4) {
    return Error(StatusCode::kInvalidArgument, "the precompiled_charsmap is cut short");
  }
  std::memcpy(&size, blob.data(), 4);
  if (size / 4 * 4 > blob.size() - 4) {
    return Error(StatusCode::kInvalidArgument, "the precompiled_charsmap is cut short");
  }
  Charsmap map;
  map.units_.resize(size / 4);
  if (size >= 4) std::memcpy(map.units_.data(), blob.data() + 4, size / 4 * 4);
  map.replacements_ = std::string(blob.substr(4 + size / 4 * 4));
  if (!IsValidUtf8(map.replacements_)) {
    return Error(StatusCode::kInvalidArgument, "the precompiled_charsmap is not UTF-8");
  }
  return map;
}

template <typename Found>
void Charsmap::Walk(std::string_view text, Found found) const {
  if (units_.empty()) return;
  size_t node = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c == 0) return;
    node ^= c;
    if (node >= units_.size() || Label(units_[node]) != c) return;
    uint32_t unit = units_[node];
    node ^= Offset(unit);
    if (node >= units_.size()) return;
    if (HasLeaf(unit) && !found(i + 1, Value(units_[node]))) return;
  }
}

std::string_view Charsmap::ReplacementAt(uint32_t offset) const {
  if (offset >= replacements_.size()) return {};
  std::string_view rest = std::string_view(replacements_).substr(offset);
  return rest.substr(0, rest.find('\0'));
}

std::optional<std::string_view> Charsmap::Shortest(std::string_view text) const {
  std::optional<std::string_view> out;
  Walk(text, [&](size_t, uint32_t value) {
    out = ReplacementAt(value);
    return false;
  });
  return out;
}

std::optional<std::pair<size_t, std::string_view>> Charsmap::Longest(std::string_view text) const {
  std::optional<std::pair<size_t, std::string_view>> out;
  Walk(text, [&](size_t length, uint32_t value) {
    out.emplace(length, ReplacementAt(value));
    return true;
  });
  return out;
}

}  // namespace portico::tokenizer
