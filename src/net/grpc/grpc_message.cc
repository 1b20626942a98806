#include "net/grpc/grpc_message.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace portico::net {
namespace {

constexpr std::string_view kGzipName = "gzip";
constexpr std::string_view kIdentityName = "identity";
// zlib's windowBits for a gzip header.
constexpr int kGzipWindow = 15 + 16;
constexpr size_t kInflateStep = 16 << 10;
// A buffer that has grown beyond it is not kept for the next message.
constexpr size_t kMaxSpare = 64 << 10;

Bytef* Bytes(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

// A thread's own state of zlib: to make one for each message costs ten times what a short message
// does. 256 KiB to compress, 40 KiB to decompress, once they have been needed.
class Deflater {
 public:
  Deflater()
      : ok_(deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) ==
            Z_OK) {}
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  // At the beginning of a message; null without memory.
  z_stream* Begin() { return ok_ && deflateReset(&stream_) == Z_OK ? &stream_ : nullptr; }

 private:
  z_stream stream_{};
  const bool ok_;
};

class Inflater {
 public:
  Inflater() : ok_(inflateInit2(&stream_, kGzipWindow) == Z_OK) {}
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream* Begin() { return ok_ && inflateReset(&stream_) == Z_OK ? &stream_ : nullptr; }

 private:
  z_stream stream_{};
  const bool ok_;
};

Status TooLarge(size_t size, size_t limit) {
  return Error(StatusCode::kResourceExhausted, "message of " + std::to_string(size) +
                                                   " bytes is larger than the limit of " +
                                                   std::to_string(limit));
}

}  // namespace

std::string_view GrpcEncodingName(GrpcEncoding encoding) {
  return encoding == GrpcEncoding::kGzip ? kGzipName : kIdentityName;
}

StatusOr<GrpcEncoding> ParseGrpcEncoding(std::string_view name) {
  if (name == kIdentityName) return GrpcEncoding::kIdentity;
  if (name == kGzipName) return GrpcEncoding::kGzip;
  return Error(StatusCode::kUnimplemented, "grpc-encoding \"" + std::string(name) +
                                               "\" is not supported; supported are " +
                                               std::string(kGrpcAcceptEncoding));
}

bool GrpcAccepts(std::string_view accept_encoding, GrpcEncoding encoding) {
  const std::string_view wanted = GrpcEncodingName(encoding);
  while (!accept_encoding.empty()) {
    size_t comma = std::min(accept_encoding.find(','), accept_encoding.size());
    std::string_view name = accept_encoding.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (name == wanted) return true;
    accept_encoding.remove_prefix(std::min(comma + 1, accept_encoding.size()));
  }
  return false;
}

void WriteGrpcPrefix(size_t size, bool compressed, char* to) {
  to[0] = compressed ? 1 : 0;
  for (int i = 1; i <= 4; ++i) to[i] = static_cast<char>(size >> (32 - 8 * i));
}

void AppendGrpcMessage(std::string_view message, std::string* out) {
  char prefix[kGrpcPrefix];
  WriteGrpcPrefix(message.size(), false, prefix);
  out->append(prefix, kGrpcPrefix).append(message);
}

void AppendGrpcMessage(std::string_view message, GrpcEncoding encoding, std::string* out) {
  if (encoding == GrpcEncoding::kIdentity) return AppendGrpcMessage(message, out);
  const std::string compressed = Gzip(message);
  char prefix[kGrpcPrefix];
  WriteGrpcPrefix(compressed.size(), true, prefix);
  out->append(prefix, kGrpcPrefix).append(compressed);
}

std::string Gzip(std::string_view bytes) {
  thread_local Deflater deflater;
  std::string out;
  z_stream* const begun = deflater.Begin();
  if (begun == nullptr) return out;
  z_stream& stream = *begun;
  out.resize(deflateBound(&stream, bytes.size()));
  stream.next_in = Bytes(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = Bytes(out);
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  return out;
}

Status Gunzip(std::string_view bytes, size_t max_bytes, std::string* out) {
  out->clear();
  thread_local Inflater inflater;
  z_stream* const begun = inflater.Begin();
  if (begun == nullptr) {
    return Error(StatusCode::kInternal, "no memory to decompress a message");
  }
  z_stream& stream = *begun;
  stream.next_in = Bytes(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  int result = Z_OK;
  // One byte over the limit shows that there is more.
  while (result == Z_OK && out->size() <= max_bytes) {
    const size_t old = out->size();
    const size_t step = std::min(std::max(kInflateStep, old), max_bytes - old + 1);
    out->resize(old + step);
    stream.next_out = Bytes(*out) + old;
    stream.avail_out = static_cast<uInt>(step);
    result = inflate(&stream, Z_NO_FLUSH);
    out->resize(old + step - stream.avail_out);
  }
  const bool all_used = stream.avail_in == 0;
  if (out->size() > max_bytes) {
    out->clear();
    return Error(StatusCode::kResourceExhausted,
                 "decompressed message is larger than the limit of " + std::to_string(max_bytes));
  }
  if (result == Z_STREAM_END && all_used) return OkStatus();
  return Error(StatusCode::kInternal, "compressed message is not well-formed gzip");
}

GrpcDeframer::Result GrpcDeframer::Fail(Status status) {
  status_ = std::move(status);
  return Result::kFailed;
}

bool GrpcDeframer::TakePrefix(std::string_view prefix) {
  const auto flag = static_cast<uint8_t>(prefix[0]);
  size_ = 0;
  for (size_t i = 1; i < kGrpcPrefix; ++i) size_ = size_ << 8 | static_cast<uint8_t>(prefix[i]);
  if (flag > 1) {
    Fail(Error(StatusCode::kInternal,
               "message begins with flag " + std::to_string(flag) + "; 0 and 1 are known"));
  } else if (size_ > max_message_bytes_) {
    Fail(TooLarge(size_, max_message_bytes_));
  } else if (flag == 1 && encoding_ == GrpcEncoding::kIdentity) {
    Fail(Error(StatusCode::kInternal, "message is flagged as compressed, without grpc-encoding"));
  }
  compressed_ = flag == 1;
  return status_.ok();
}

GrpcDeframer::Result GrpcDeframer::Open(std::string_view payload, std::string_view* message) {
  if (!compressed_) {
    *message = payload;
    return Result::kMessage;
  }
  Status inflated = Gunzip(payload, max_message_bytes_, &inflated_);
  if (!inflated.ok()) return Fail(std::move(inflated));
  *message = inflated_;
  return Result::kMessage;
}

GrpcDeframer::Result GrpcDeframer::Next(std::string_view* input, std::string_view* message) {
  if (!status_.ok()) return Result::kFailed;
  if (inflated_.capacity() > kMaxSpare) inflated_ = std::string();
  if (std::exchange(whole_, false)) {
    kept_.capacity() > kMaxSpare ? kept_ = std::string() : kept_.erase();
  }
  if (kept_.empty() && input->size() >= kGrpcPrefix) {
    if (!TakePrefix(*input)) return Result::kFailed;
    if (input->size() - kGrpcPrefix >= size_) {
      std::string_view payload = input->substr(kGrpcPrefix, size_);
      input->remove_prefix(kGrpcPrefix + size_);
      return Open(payload, message);
    }
    kept_.assign(input->substr(0, kGrpcPrefix));
    input->remove_prefix(kGrpcPrefix);
  }
  if (kept_.size() < kGrpcPrefix) {
    const size_t taken = std::min(kGrpcPrefix - kept_.size(), input->size());
    kept_.append(input->substr(0, taken));
    input->remove_prefix(taken);
    if (kept_.size() < kGrpcPrefix) return Result::kMore;
    if (!TakePrefix(kept_)) return Result::kFailed;
  }
  const size_t taken = std::min(kGrpcPrefix + size_ - kept_.size(), input->size());
  kept_.append(input->substr(0, taken));
  input->remove_prefix(taken);
  if (kept_.size() < kGrpcPrefix + size_) return Result::kMore;
  whole_ = true;
  return Open(std::string_view(kept_).substr(kGrpcPrefix), message);
}

}  // namespace portico::net
