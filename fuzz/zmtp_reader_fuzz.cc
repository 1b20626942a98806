// Any bytes as those of a ZMTP peer, at once and split: parts within the limit, or refused; the same both times.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "net/zmq/zmtp_reader.h"

namespace {

using portico::net::ZmtpReader;

constexpr size_t kLimit = 4096;
constexpr std::string_view kOpening(
    "\xFF\0\0\0\0\0\0\0\1\x7F\3\1NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\4\x1A\5READY\x0BSocket-Type\0\0\0\4PUSH",
    92);

// Everything that is read of them, in one text.
std::string Read(std::string_view bytes, size_t at_once) {
  ZmtpReader reader(kLimit);
  std::string read;
  while (true) {
    std::string_view part;
    const ZmtpReader::Step step = reader.Next(&part);
    if (step == ZmtpReader::Step::kFailed) return read.append("failed: ").append(reader.why());
    if (step == ZmtpReader::Step::kPart) {
      if (part.size() > kLimit) std::abort();
      read.append(std::to_string(part.size())).append(reader.HasMore() ? "+" : " ").append(part);
      continue;
    }
    if (bytes.empty()) return read + reader.output();
    const auto space = reader.Space();
    if (space.empty() || space.size() > 64 << 10) std::abort();
    const size_t size = std::min({space.size(), bytes.size(), at_once});
    std::memcpy(space.data(), bytes.data(), size);
    reader.Added(size);
    bytes.remove_prefix(size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t at_once = 1 + data[0] % 100;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const std::string_view opening : {std::string_view(), kOpening}) {
    const std::string bytes = std::string(opening).append(rest);
    if (Read(bytes, bytes.size()) != Read(bytes, at_once)) std::abort();
  }
  return 0;
}
