// A frame ends with a checksum of all its bytes, so a file is whole if the checksum from the head of its last frame to its
// end is 0. Heads are looked for from the end: they begin with a pattern that the coded samples may contain too, and end
// with a checksum of one byte, which one pattern in 256 has by chance. Where three heads, the last ones, lead to no frame
// that ends with the file, the last frame is cut: patterns in one frame that pass for heads three times are rarer than
// one in a billion files.
#include "media/flac_end.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace portico::media {
namespace {

constexpr int kHeadsTried = 3;
// No frame begins before it: "fLaC" and the block that describes the stream come first.
constexpr size_t kFirstFrame = 42;

// Of polynomials without their highest bit, most significant bit first.
template <typename Checksum, Checksum kPolynomial>
constexpr std::array<Checksum, 256> MakeChecksums() {
  constexpr int kBits = sizeof(Checksum) * 8;
  std::array<Checksum, 256> table{};
  for (size_t byte = 0; byte < 256; ++byte) {
    auto sum = static_cast<uint32_t>(byte) << (kBits - 8);
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = ((sum >> (kBits - 1)) & 1) != 0;
      sum = (sum << 1) ^ (carry ? uint32_t{kPolynomial} : 0);
    }
    table[byte] = static_cast<Checksum>(sum);
  }
  return table;
}
constexpr auto kHeadChecksums = MakeChecksums<uint8_t, 0x07>();
constexpr auto kFrameChecksums = MakeChecksums<uint16_t, 0x8005>();

// 0 where the bytes end with their checksum.
uint8_t HeadChecksum(std::string_view bytes) {
  uint8_t sum = 0;
  for (const char c : bytes) sum = kHeadChecksums[sum ^ static_cast<uint8_t>(c)];
  return sum;
}

uint16_t FrameChecksum(std::string_view bytes) {
  uint16_t sum = 0;
  for (const char c : bytes) {
    const size_t at = (sum >> 8) ^ static_cast<uint8_t>(c);
    sum = static_cast<uint16_t>((sum << 8) ^ kFrameChecksums[at]);
  }
  return sum;
}

// Whether a frame's head begins there.
bool BeginsFrame(std::string_view bytes) {
  const auto byte = [bytes](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  constexpr size_t kFixed = 4;
  if (bytes.size() <= kFixed || byte(0) != 0xFF || (byte(1) & 0xFE) != 0xF8) return false;
  const int block = byte(2) >> 4;
  const int rate = byte(2) & 0xF;
  if (block == 0 || rate == 0xF || byte(3) >> 4 > 10 || (byte(3) & 1) != 0) return false;
  // The number of the frame or of its first sample, coded as UTF-8 codes characters, in up to 7 bytes.
  size_t number = 0;
  while (number < 8 && ((byte(kFixed) >> (7 - number)) & 1) != 0) ++number;
  if (number == 1 || number == 8) return false;
  const size_t block_bytes = block == 6 ? 1 : block == 7 ? 2 : 0;
  const size_t rate_bytes = rate == 12 ? 1 : rate == 13 || rate == 14 ? 2 : 0;
  const size_t size = kFixed + (number == 0 ? 1 : number) + block_bytes + rate_bytes + 1;
  return bytes.size() >= size && HeadChecksum(bytes.substr(0, size)) == 0;
}

}  // namespace

bool FlacEndsWithinFrame(std::string_view bytes) {
  int tried = 0;
  size_t at = bytes.size();
  while (tried < kHeadsTried && at > kFirstFrame) {
    at = bytes.rfind('\xFF', at - 1);
    if (at == std::string_view::npos || at < kFirstFrame) break;
    if (!BeginsFrame(bytes.substr(at))) continue;
    if (FrameChecksum(bytes.substr(at)) == 0) return false;
    ++tried;
  }
  return tried > 0;
}

}  // namespace portico::media
