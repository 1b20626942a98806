// ITU-T G.711: 8-bit samples of telephones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace portico::media {

constexpr int16_t FromMuLaw(uint8_t byte) {
  constexpr int kBias = 0x84;
  const int code = byte ^ 0xFF;
  const int magnitude = ((((code & 0x0F) << 3) + kBias) << ((code & 0x70) >> 4)) - kBias;
  return static_cast<int16_t>((code & 0x80) != 0 ? -magnitude : magnitude);
}

constexpr int16_t FromALaw(uint8_t byte) {
  const int code = byte ^ 0x55;
  const int exponent = (code & 0x70) >> 4;
  int magnitude = ((code & 0x0F) << 4) + 8;
  if (exponent > 0) magnitude = (magnitude + 0x100) << (exponent - 1);
  return static_cast<int16_t>((code & 0x80) != 0 ? magnitude : -magnitude);
}

constexpr uint8_t ToMuLaw(int16_t sample) {
  constexpr int kBias = 0x84;
  constexpr int kMost = 32635;
  const int sign = sample < 0 ? 0x80 : 0;
  int magnitude = sample < 0 ? -static_cast<int>(sample) : sample;
  magnitude = (magnitude > kMost ? kMost : magnitude) + kBias;
  int exponent = 7;
  while (exponent > 0 && (magnitude & (0x80 << exponent)) == 0) --exponent;
  const int code = sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0F);
  return static_cast<uint8_t>(code ^ 0xFF);
}

constexpr uint8_t ToALaw(int16_t sample) {
  const int sign = sample >= 0 ? 0x80 : 0;
  int magnitude = sample < 0 ? -(static_cast<int>(sample) + 1) : sample;
  int exponent = 7;
  while (exponent > 0 && (magnitude & (0x80 << exponent)) == 0) --exponent;
  const int shift = exponent > 0 ? exponent + 3 : 4;
  const int code = sign | (exponent << 4) | ((magnitude >> shift) & 0x0F);
  return static_cast<uint8_t>(code ^ 0x55);
}

template <auto kDecode>
constexpr std::array<int16_t, 256> G711Table() {
  std::array<int16_t, 256> table{};
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = kDecode(static_cast<uint8_t>(i));
  return table;
}

inline constexpr std::array<int16_t, 256> kMuLawSamples = G711Table<FromMuLaw>();
inline constexpr std::array<int16_t, 256> kALawSamples = G711Table<FromALaw>();

}  // namespace portico::media
