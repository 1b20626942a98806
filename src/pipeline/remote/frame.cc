#include "pipeline/remote/frame.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace portico::pipeline {
namespace {

constexpr size_t kBuffer = 64 << 10;
constexpr size_t kStep = 256 << 10;    // of long bytes, which go where they stay
constexpr size_t kReserve = 16 << 20;  // of what is only announced

void PutSize(size_t size, char* to) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(size >> (24 - 8 * i));
}

size_t GetSize(const char* from) {
  size_t size = 0;
  for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(from[i]);
  return size;
}

}  // namespace

std::array<char, kFrameHead> FrameHead(const Datagram& message) {
  std::array<char, kFrameHead> head{};
  PutSize(message.bytes.size(), head.data());
  PutSize(message.blob == nullptr ? 0 : message.blob->bytes().size(), head.data() + 4);
  return head;
}

bool FitsFrame(const Datagram& message) {
  return message.blob == nullptr || message.blob->bytes().size() <= kMaxFrameBytes;
}

FrameReader::FrameReader() : buffer_(std::make_unique<char[]>(kBuffer)) {}

size_t FrameReader::Take(size_t wanted, std::string* to) {
  const size_t taken = std::min(wanted - to->size(), end_ - begin_);
  to->append(buffer_.get() + begin_, taken);
  begin_ += taken;
  return wanted - to->size();
}

StatusOr<bool> FrameReader::Next(Datagram* message) {
  if (!in_frame_) {
    if (end_ - begin_ < kFrameHead) return false;
    message_size_ = GetSize(buffer_.get() + begin_);
    behind_size_ = GetSize(buffer_.get() + begin_ + 4);
    if (message_size_ == 0 || message_size_ > kMaxDatagram || behind_size_ > kMaxFrameBytes) {
      return Error(StatusCode::kInvalidArgument, "a frame of a size that cannot be");
    }
    begin_ += kFrameHead;
    in_frame_ = true;
  }
  if (Take(message_size_, &message_) > 0) return false;
  if (behind_.empty()) behind_.reserve(std::min(behind_size_, kReserve));
  if (Take(behind_size_, &behind_) > 0) return false;
  message->bytes = std::exchange(message_, {});
  message->blob = behind_size_ == 0 ? nullptr : Blob::Own(std::exchange(behind_, {}));
  in_frame_ = false;
  return true;
}

std::span<char> FrameReader::Space() {
  const size_t left = behind_size_ - behind_.size();
  if (in_frame_ && message_.size() == message_size_ && left > kBuffer) {
    direct_ = behind_.size();
    behind_.resize(behind_.size() + std::min(left, kStep));
    return {behind_.data() + *direct_, behind_.size() - *direct_};
  }
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  return {buffer_.get() + end_, kBuffer - end_};
}

void FrameReader::Filled(size_t bytes) {
  if (direct_) {
    behind_.resize(*std::exchange(direct_, std::nullopt) + bytes);
  } else {
    end_ += bytes;
  }
}

}  // namespace portico::pipeline
