// gRPC's messages in the body of a stream: a flag (compressed), a length of four bytes, the message
// (gRPC's PROTOCOL-HTTP2.md, "Length-Prefixed-Message"), and their compression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::net {

enum class GrpcEncoding : uint8_t { kIdentity, kGzip };

// What we take, for grpc-accept-encoding.
inline constexpr std::string_view kGrpcAcceptEncoding = "identity,gzip";

std::string_view GrpcEncodingName(GrpcEncoding encoding);
// The encoding that grpc-encoding names; UNIMPLEMENTED, naming those that we take, for another.
StatusOr<GrpcEncoding> ParseGrpcEncoding(std::string_view name);
// Whether a peer's grpc-accept-encoding names the encoding.
bool GrpcAccepts(std::string_view accept_encoding, GrpcEncoding encoding);

inline constexpr size_t kGrpcPrefix = 5;

// Writes the prefix of a message of `size` bytes, which is less than 4 GiB.
void WriteGrpcPrefix(size_t size, bool compressed, char* to);
void AppendGrpcMessage(std::string_view message, std::string* out);
// Compressed, where the encoding says so.
void AppendGrpcMessage(std::string_view message, GrpcEncoding encoding, std::string* out);

std::string Gzip(std::string_view bytes);
// RESOURCE_EXHAUSTED as soon as there are more than `max_bytes`; INTERNAL for what is not gzip.
Status Gunzip(std::string_view bytes, size_t max_bytes, std::string* out);

// Finds the messages in the bytes of a stream, however these are split. What a whole message in one
// piece costs is looking at its prefix; only an incomplete one is copied.
class GrpcDeframer {
 public:
  // `max_message_bytes` bounds a message, before and after decompression. It is checked when the
  // prefix has come, and no more is kept than has come.
  explicit GrpcDeframer(size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  void SetEncoding(GrpcEncoding encoding) { encoding_ = encoding; }
  // Before the first message.
  void SetMaxMessageBytes(size_t bytes) { max_message_bytes_ = bytes; }

  enum class Result : uint8_t { kMessage, kMore, kFailed };
  // Takes bytes from the front of `input`. kMessage: `message` is whole, and valid until the next
  // call while the input's bytes are; there may be more in `input`. kMore: all of `input` has been
  // taken. kFailed: status() says why, and nothing more may be asked.
  Result Next(std::string_view* input, std::string_view* message);
  const Status& status() const { return status_; }

  // A stream that ends now has cut a message off.
  bool mid_message() const { return !kept_.empty() && !whole_; }
  // Bytes of an incomplete message.
  size_t held() const { return whole_ ? 0 : kept_.size(); }

 private:
  bool TakePrefix(std::string_view prefix);
  Result Open(std::string_view payload, std::string_view* message);
  Result Fail(Status status);

  size_t max_message_bytes_;
  GrpcEncoding encoding_ = GrpcEncoding::kIdentity;
  bool compressed_ = false;  // the present message
  bool whole_ = false;       // kept_ has been handed out
  size_t size_ = 0;          // of the present message, once kept_ has its prefix
  std::string kept_;         // prefix and message, as far as they have come
  std::string inflated_;
  Status status_;
};

}  // namespace portico::net
