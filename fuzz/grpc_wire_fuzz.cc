// Any bytes as a stream of gRPC messages, cut in two ways, which must give the same; and as the values of gRPC's
// headers, which must come back from what they decode to. The first byte seeds the cuts, the second says whether the
// rest is taken as it is or (an eighth of the time, for it is slow) compressed first, with one bit turned over, so that
// damaged gzip is met too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_wire.h"

namespace {

using namespace portico::net;  // NOLINT: the whole of it is under test

constexpr size_t kMaxMessage = 1024;
constexpr size_t kMaxPieces = 32;

void Check(bool condition) {
  if (!condition) std::abort();
}

// The messages of `bytes`, read in pieces of `piece` bytes, and how it ended.
std::vector<std::string> Messages(std::string_view bytes, size_t piece) {
  std::vector<std::string> seen;
  piece = std::max(piece, bytes.size() / kMaxPieces);
  GrpcDeframer deframer(kMaxMessage);
  deframer.SetEncoding(GrpcEncoding::kGzip);
  while (!bytes.empty()) {
    const std::string part(bytes.substr(0, piece));  // so that reading beyond it shows
    bytes.remove_prefix(part.size());
    std::string_view input = part;
    std::string_view message;
    GrpcDeframer::Result result;
    while ((result = deframer.Next(&input, &message)) == GrpcDeframer::Result::kMessage) {
      Check(message.size() <= kMaxMessage);
      seen.emplace_back(message);
    }
    if (result == GrpcDeframer::Result::kFailed) {
      Check(!deframer.status().ok());
      seen.emplace_back(std::string(deframer.status().message()));
      return seen;
    }
    Check(input.empty() && deframer.held() <= kMaxMessage + kGrpcPrefix);
  }
  seen.emplace_back(deframer.mid_message() ? "cut off" : "whole");
  return seen;
}

void CheckHeaders(std::string_view text) {
  Check(DecodeGrpcMessage(EncodeGrpcMessage(text)) == text);
  for (char c : EncodeGrpcMessage(text)) Check(c >= 0x20 && c <= 0x7e);
  Check(DecodeGrpcMessage(text).size() <= text.size());

  auto values = DecodeBinaryValues(EncodeBinaryValue(text));
  Check(values && values->size() == 1 && values->front() == text);
  if (auto decoded = DecodeBinaryValues(text)) {
    for (const std::string& bytes : *decoded) {
      Check(DecodeBinaryValues(EncodeBinaryValue(bytes))->front() == bytes);
    }
  }

  if (auto timeout = ParseGrpcTimeout(text)) {
    // Writing may round up, by less than a unit of what is left of eight digits.
    auto again = ParseGrpcTimeout(FormatGrpcTimeout(*timeout));
    Check(again && *again >= *timeout &&
          *again - *timeout <= *timeout / 50000 + portico::Duration(1));
  }
  ParseGrpcStatus(text);
  GrpcAccepts(text, GrpcEncoding::kGzip);

  const std::string name(text.substr(0, text.find('=')));
  const std::string value(text.substr(std::min(text.size(), name.size() + 1)));
  Headers wire;
  if (EncodeMetadata({{name, value}}, &wire).ok()) {
    auto back = DecodeMetadata(wire);
    Check(back.ok() && back->size() == 1 && back->front().first == name);
  }
  static_cast<void>(DecodeMetadata({{name, value}}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  CheckHeaders(rest);
  std::string bytes(rest);
  if (data[1] % 8 == 7) {
    bytes.clear();
    AppendGrpcMessage(rest, GrpcEncoding::kGzip, &bytes);
    const size_t damaged = data[0] / 8 % bytes.size();
    if (data[1] >= 128) bytes[damaged] = static_cast<char>(bytes[damaged] ^ 1 << data[0] % 8);
    AppendGrpcMessage(rest, &bytes);
  }
  Check(Messages(bytes, bytes.size()) == Messages(bytes, 1 + data[0] % 64));
  return 0;
}
