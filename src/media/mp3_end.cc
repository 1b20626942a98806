#include "media/mp3_end.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace portico::media {
namespace {

constexpr size_t kTagHead = 10;
// kbit/s, by the head's index.
constexpr std::array<size_t, 15> kRates1 = {0,   32,  40,  48,  56,  64,  80, 96,
                                            112, 128, 160, 192, 224, 256, 320};
constexpr std::array<size_t, 15> kRates2 = {0,  8,  16, 24,  32,  40,  48, 56,
                                            64, 80, 96, 112, 128, 144, 160};
constexpr std::array<size_t, 3> kSampleRates = {44100, 48000, 32000};  // of version 1

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint32_t BigEndian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = (value << 8) | ByteAt(bytes, at + i);
  return value;
}

struct Mp3Frame {
  size_t size = 0;       // bytes
  size_t side_info = 0;  // bytes behind the head
};

// Of the frame that begins there; none if none does or its size is free.
std::optional<Mp3Frame> FrameOf(std::string_view bytes) {
  if (bytes.size() < kMp3FrameHead) return std::nullopt;
  if (ByteAt(bytes, 0) != 0xFF || (ByteAt(bytes, 1) & 0xE6) != 0xE2) return std::nullopt;
  const int version = (ByteAt(bytes, 1) >> 3) & 3;  // 3: 1, 2: 2, 0: 2.5
  const size_t bit_rate = ByteAt(bytes, 2) >> 4;
  const size_t sample_rate = (ByteAt(bytes, 2) >> 2) & 3;
  if (version == 1 || bit_rate == 0 || bit_rate == 15 || sample_rate == 3) return std::nullopt;
  const bool first = version == 3;
  const size_t hertz = kSampleRates[sample_rate] >> (first ? 0 : version == 2 ? 1 : 2);
  const size_t kbits = first ? kRates1[bit_rate] : kRates2[bit_rate];
  const bool mono = ByteAt(bytes, 3) >> 6 == 3;
  Mp3Frame frame;
  frame.size = (first ? 144U : 72U) * kbits * 1000 / hertz + ((ByteAt(bytes, 2) >> 1) & 1);
  frame.side_info = first ? (mono ? 17 : 32) : (mono ? 9 : 17);
  return frame;
}

// Where the first frame begins, behind a tag of ID3v2.
size_t BehindTag(std::string_view bytes) {
  if (!bytes.starts_with("ID3") || bytes.size() < kTagHead) return 0;
  size_t size = 0;
  for (size_t i = 6; i < kTagHead; ++i) size = (size << 7) | (ByteAt(bytes, i) & 0x7F);
  const bool footer = (ByteAt(bytes, 5) & 0x10) != 0;
  return kTagHead + size + (footer ? kTagHead : 0);
}

// How many frames follow this one, as it tells; 0: it does not.
size_t ToldFrames(std::string_view frame, size_t side_info) {
  constexpr size_t kVbriAt = kMp3FrameHead + 32;
  constexpr size_t kVbriFrames = 14;
  if (frame.size() >= kVbriAt + kVbriFrames + 4 && frame.substr(kVbriAt).starts_with("VBRI")) {
    return BigEndian(frame, kVbriAt + kVbriFrames);
  }
  const size_t at = kMp3FrameHead + side_info;
  if (frame.size() < at + 12) return 0;
  const std::string_view tag = frame.substr(at);
  if (!tag.starts_with("Xing") && !tag.starts_with("Info")) return 0;
  return (BigEndian(tag, 4) & 1) != 0 ? BigEndian(tag, 8) : 0;
}

// What may follow the last frame: a tag, or nothing but zeros.
bool IsTail(std::string_view bytes) {
  return bytes.starts_with("TAG") || bytes.starts_with("APETAGEX") ||
         bytes.starts_with("LYRICSBEGIN") ||
         bytes.find_first_not_of('\0') == std::string_view::npos;
}

}  // namespace

size_t Mp3FrameBytes(std::string_view bytes) {
  const std::optional<Mp3Frame> frame = FrameOf(bytes);
  return frame ? frame->size : 0;
}

bool Mp3IsCut(std::string_view bytes) {
  size_t at = BehindTag(bytes);
  if (at > 0 && at >= bytes.size()) return true;
  size_t told = 0;
  size_t frames = 0;
  for (; at < bytes.size(); ++frames) {
    const std::string_view rest = bytes.substr(at);
    const std::optional<Mp3Frame> frame = FrameOf(rest);
    if (!frame) {
      // A head that is cut itself.
      if (frames > 0 && rest.size() < kMp3FrameHead && ByteAt(rest, 0) == 0xFF) return true;
      if (frames == 0 || !IsTail(rest)) return false;
      break;
    }
    if (frame->size > rest.size()) return true;
    if (frames == 0) told = ToldFrames(rest.substr(0, frame->size), frame->side_info);
    at += frame->size;
  }
  // Some count the frame that tells it.
  return frames < told;
}

}  // namespace portico::media
