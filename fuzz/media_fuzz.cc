// Any bytes as WAV, MP3 and Ogg files, forms and WebSocket frames: nothing crashes, bounds hold, and frames mean the same in whatever
// pieces they come. The first byte chooses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "media/mp3_end.h"
#include "media/ogg_end.h"
#include "media/wav.h"
#include "net/http/multipart.h"
#include "net/websocket/frame_reader.h"

namespace {

constexpr size_t kMaxMessage = 4096;

std::vector<std::string> Frames(std::string_view bytes, size_t piece) {
  portico::net::WsFrameReader reader(kMaxMessage);
  std::vector<std::string> seen;
  uint16_t code = 0;
  for (size_t at = 0; at < bytes.size() && code == 0; at += piece) {
    code = reader.Feed(bytes.substr(at, piece), [&](const portico::net::WsMessage& message) {
      if (message.data.size() > kMaxMessage) std::abort();
      seen.push_back(std::to_string(message.kind) + std::string(message.data));
      return true;
    });
  }
  seen.push_back(std::to_string(code));
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: {
      const auto sound = portico::media::ReadWav(bytes, {});
      if (sound.ok() && sound->samples.size() > bytes.size()) std::abort();
      portico::media::Mp3IsCut(bytes);
      portico::media::OggIsCut(bytes);
      break;
    }
    case 1: {
      const auto parts = portico::net::ParseForm("multipart/form-data; boundary=b", bytes);
      if (parts.ok() && parts->size() > 64) std::abort();
      break;
    }
    default:
      if (Frames(bytes, bytes.size() + 1) != Frames(bytes, 1 + data[0] / 3)) std::abort();
  }
  return 0;
}
