// A message of message.h while it is put together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "message/msgpack/writer.h"
#include "pipeline/blob.h"
#include "pipeline/process/message.h"

namespace portico::pipeline {

// Begins with [kind, run]; `values`, so many, are written by the caller.
class MessageWriter {
 public:
  MessageWriter(MessageKind kind, uint64_t run, size_t values) : writer_(&bytes_) {
    bytes_.push_back(0);
    writer_.Array(2 + values);
    writer_.Uint(static_cast<uint8_t>(kind));
    writer_.Uint(run);
  }
  msgpack::Writer& writer() { return writer_; }

  // Bytes of a part: here, or in shared memory. `shared`: they are there already.
  Status Bytes(std::string_view bytes, std::shared_ptr<const Blob> shared = nullptr) {
    if (bytes.size() <= kInlineBytes) {
      writer_.Bin(bytes);
      return OkStatus();
    }
    writer_.Nil();
    if (shared == nullptr || shared->fd() < 0) {
      PORTICO_ASSIGN_OR_RETURN(shared, Blob::Share(bytes));
    }
    blob_ = std::move(shared);
    return OkStatus();
  }

  StatusOr<Datagram> Take() {
    if (bytes_.size() > 2 * kInlineBytes && blob_ != nullptr) {
      return Error(StatusCode::kResourceExhausted, "a part has too much beside its bytes");
    }
    if (bytes_.size() > 2 * kInlineBytes) {
      PORTICO_ASSIGN_OR_RETURN(blob_, Blob::Share(std::string_view(bytes_).substr(1)));
      bytes_.assign(1, kFlagFrameInFd);
    }
    return Datagram{std::move(bytes_), std::move(blob_)};
  }

 private:
  std::string bytes_;
  std::shared_ptr<const Blob> blob_;
  msgpack::Writer writer_;
};

}  // namespace portico::pipeline
