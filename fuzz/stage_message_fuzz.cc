// What a stage process, here or on another host, may send: every input is refused or read, and what was read can be sent again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "pipeline/process/message.h"
#include "pipeline/remote/frame.h"

// The same as a stream of frames, in pieces as long as the first byte says.
void ReadFrames(const uint8_t* data, size_t size) {
  portico::pipeline::FrameReader reader;
  portico::pipeline::Datagram message;
  const size_t piece = size == 0 ? 1 : size_t{data[0]} + 1;
  for (size_t at = 1; at < size;) {
    while (true) {
      const auto whole = reader.Next(&message);
      if (!whole.ok()) return;
      if (!*whole) break;
      if (message.bytes.empty()) __builtin_trap();
    }
    const auto space = reader.Space();
    if (space.empty()) __builtin_trap();
    const size_t bytes = std::min({piece, space.size(), size - at});
    std::memcpy(space.data(), data + at, bytes);
    reader.Filled(bytes);
    at += bytes;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using portico::pipeline::MessageKind;
  ReadFrames(data, size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto several = portico::pipeline::ReadMessages({bytes, nullptr});
  if (several.ok() && several->empty()) __builtin_trap();
  const auto message = portico::pipeline::ReadMessage({bytes, nullptr});
  if (message.ok() && !several.ok()) __builtin_trap();
  if (!message.ok() || message->kind != MessageKind::kEmit) return 0;
  const auto again = PartMessage(MessageKind::kEmit, message->run, {}, message->part);
  if (!again.ok() || again->blob != nullptr) return 0;
  if (!portico::pipeline::ReadMessage(*again).ok()) __builtin_trap();
  return 0;
}
