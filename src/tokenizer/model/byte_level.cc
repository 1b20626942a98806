#include "tokenizer/model/byte_level.h"

#include <vector>

#include "text/utf8.h"
#include "tokenizer/normalize/normalized_string.h"

namespace portico::tokenizer {
namespace {

constexpr uint32_t kCharLimit = 256 + 68;

constexpr std::array<int16_t, kCharLimit> kBytes = [] {
  std::array<int16_t, kCharLimit> bytes{};
  for (int16_t& b : bytes) b = -1;
  for (int16_t b = 0; b < 256; ++b) bytes[kByteLevelChars[static_cast<size_t>(b)]] = b;
  return bytes;
}();

}  // namespace

int ByteOfByteLevelChar(uint32_t code_point) {
  return code_point < kCharLimit ? kBytes[code_point] : -1;
}

void AppendByteLevelBytes(std::string_view token, std::string* out) {
  size_t before = out->size();
  for (size_t at = 0; at < token.size();) {
    // Printable ASCII stands for itself.
    if (token[at] > 0x20 && token[at] < 0x7F) {
      out->push_back(token[at++]);
      continue;
    }
    size_t length = Utf8SequenceLength(token.substr(at));
    int byte = length == 0 ? -1 : ByteOfByteLevelChar(Utf8Decode(token.substr(at), length));
    if (byte < 0) {
      out->resize(before);
      return;
    }
    out->push_back(static_cast<char>(byte));
    at += length;
  }
}

void AppendByteLevelDecoded(std::string_view token, std::string* out) {
  size_t before = out->size();
  AppendByteLevelBytes(token, out);
  if (out->size() == before) out->append(token);
}

std::string ToByteLevel(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) AppendUtf8(kByteLevelChars[static_cast<unsigned char>(c)], &out);
  return out;
}

void SpellBytes(NormalizedString* text) {
  std::vector<NormalizedChar> chars;
  chars.reserve(text->text().size());
  for (char c : text->text()) {
    chars.push_back({kByteLevelChars[static_cast<unsigned char>(c)], IsTailByte(c) ? 1 : 0});
  }
  text->Transform(chars, 0);
}

}  // namespace portico::tokenizer
