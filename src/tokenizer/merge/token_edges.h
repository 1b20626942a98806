// How the bytes of a token lie on the border of two characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/model/byte_tokens.h"

namespace portico::tokenizer {

// Of a character that begins with `lead`, in bytes.
inline uint32_t CharLengthOf(char lead) {
  auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

// With a whole character, with a part of one, or not at all.
struct TokenEdge {
  enum Kind { kNone, kWhole, kPart } kind = kNone;
  uint32_t code_point = 0;  // kWhole
};

// The token's left edge; of one that begins inside a character, kNone.
inline TokenEdge LeftEdge(std::string_view bytes) {
  if (bytes.empty() || IsTailByte(bytes[0])) return {};
  size_t length = CharLengthOf(bytes[0]);
  if (length > bytes.size()) return {TokenEdge::kPart, 0};
  if (Utf8SequenceLength(bytes) != length) return {};
  return {TokenEdge::kWhole, Utf8Decode(bytes, length)};
}

// The right one; of a token that ends inside a character, kNone.
inline TokenEdge RightEdge(std::string_view bytes) {
  if (bytes.empty()) return {};
  size_t at = bytes.size() - 1;
  while (at > 0 && IsTailByte(bytes[at])) --at;
  if (IsTailByte(bytes[at])) return {TokenEdge::kPart, 0};
  std::string_view last = bytes.substr(at);
  if (Utf8SequenceLength(last) != last.size()) return {};
  return {TokenEdge::kWhole, Utf8Decode(last, last.size())};
}

struct TokenEdges {
  TokenEdge left;
  TokenEdge right;
};

// By id.
inline std::vector<TokenEdges> EdgesOf(const ByteTokens& tokens) {
  std::vector<TokenEdges> edges(static_cast<size_t>(tokens.limit()));
  for (TokenId id = 0; id < tokens.limit(); ++id) {
    edges[static_cast<size_t>(id)] = {LeftEdge(tokens.Of(id)), RightEdge(tokens.Of(id))};
  }
  return edges;
}

}  // namespace portico::tokenizer
