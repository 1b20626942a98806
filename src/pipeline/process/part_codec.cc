#include "pipeline/process/part_codec.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "text/utf8.h"

namespace portico::pipeline {
namespace {

constexpr uint32_t kMaxDimensions = 16;
constexpr int32_t kMaxRate = 1'000'000;

// The variant's index is the number of a part's kind on the wire.
enum PartKind : int64_t {
  kText,
  kFile,
  kAudio,
  kHeard,
  kClipEnd,
  kEncoded,
  kFinish,
  kTensor,
  kToolCall
};
static_assert(std::variant_size_v<Part> == kToolCall + 1);

// Values of each kind of part behind its number.
constexpr uint32_t kPartValues[] = {1, 2, 4, 5, 2, 3, 3, 4, 4};

struct PartWriter {
  MessageWriter& frame;

  Status operator()(const TextPart& part) const { return frame.Bytes(part.text); }
  Status operator()(const FilePart& part) const {
    frame.writer().Int(part.clip);
    return frame.Bytes(part.bytes == nullptr ? std::string_view() : *part.bytes);
  }
  Status operator()(const AudioPart& part) const {
    frame.writer().Int(part.clip);
    frame.writer().Int(part.sample_rate);
    frame.writer().Bool(part.last);
    return frame.Bytes({reinterpret_cast<const char*>(part.samples.data()),
                        part.samples.size() * sizeof(int16_t)});
  }
  Status operator()(const HeardPart& part) const {
    msgpack::Writer& w = frame.writer();
    w.Int(part.clip);
    w.Float(part.begin);
    w.Float(part.end);
    w.Array(part.words.size());
    for (const WordTime& word : part.words) {
      w.Array(3);
      w.Str(word.word);
      w.Float(word.begin);
      w.Float(word.end);
    }
    return frame.Bytes(part.text);
  }
  Status operator()(const ClipEndPart& part) const {
    frame.writer().Int(part.clip);
    frame.writer().Float(part.seconds);
    return OkStatus();
  }
  Status operator()(const EncodedPart& part) const {
    frame.writer().Int(part.sample_rate);
    frame.writer().Float(part.seconds);
    return frame.Bytes(part.bytes);
  }
  Status operator()(const FinishPart& part) const {
    frame.writer().Str(part.reason);
    frame.writer().Int(part.prompt_tokens);
    frame.writer().Int(part.completion_tokens);
    return OkStatus();
  }
  Status operator()(const ToolCallPart& part) const {
    frame.writer().Int(part.index);
    frame.writer().Str(part.id);
    frame.writer().Str(part.name);
    return frame.Bytes(part.arguments);
  }
  Status operator()(const TensorPart& part) const {
    msgpack::Writer& w = frame.writer();
    w.Str(part.name);
    w.Str(part.dtype);
    w.Array(part.shape.size());
    for (const int64_t size : part.shape) w.Int(size);
    return frame.Bytes(part.data == nullptr ? std::string_view() : part.data->bytes(), part.data);
  }
};

class PartReader {
 public:
  PartReader(msgpack::Reader& reader, std::shared_ptr<const Blob> blob)
      : reader_(reader), blob_(std::move(blob)) {}

  StatusOr<Part> Read() {
    uint32_t size = 0;
    int64_t kind = 0;
    if (!reader_.Array(&size) || !reader_.Int(&kind) || kind < kText || kind > kToolCall ||
        size != 1 + kPartValues[kind]) {
      return NoMessage("a part of no known kind");
    }
    Part part;
    ReadInto(kind, &part);
    if (bad_ || reader_.failed()) return NoMessage("a part that is not well formed");
    return part;
  }

 private:
  std::string_view Bytes() {
    std::string_view bytes;
    if (reader_.TakeNil()) {
      if (blob_ == nullptr) bad_ = true;
      return blob_ == nullptr ? std::string_view() : blob_->bytes();
    }
    reader_.Bin(&bytes);
    return bytes;
  }
  std::string Text() {
    const std::string_view bytes = Bytes();
    bad_ = bad_ || !IsValidUtf8(bytes);
    return std::string(bytes);
  }
  std::string Name() {
    std::string_view name;
    reader_.Str(&name);
    bad_ = bad_ || name.size() > kMaxMessageName;
    return std::string(name);
  }
  int64_t Number(int64_t min, int64_t max) {
    int64_t value = 0;
    reader_.Int(&value);
    bad_ = bad_ || value < min || value > max;
    return value;
  }
  int32_t Clip() { return static_cast<int32_t>(Number(0, INT32_MAX)); }
  int32_t Rate() { return static_cast<int32_t>(Number(0, kMaxRate)); }
  double Real() {
    double value = 0;
    reader_.Float(&value);
    bad_ = bad_ || !(value >= 0 && value < 1e9);
    return value;
  }

  void ReadInto(int64_t kind, Part* out) {
    switch (kind) {
      case kText:
        *out = TextPart{Text()};
        return;
      case kFile: {
        FilePart part{Clip(), nullptr};
        part.bytes = std::make_shared<const std::string>(Bytes());
        *out = std::move(part);
        return;
      }
      case kAudio:
        return ReadAudio(out);
      case kHeard:
        return ReadHeard(out);
      case kClipEnd: {
        const int32_t clip = Clip();
        *out = ClipEndPart{clip, Real()};
        return;
      }
      case kEncoded: {
        EncodedPart part;
        part.sample_rate = Rate();
        part.seconds = Real();
        part.bytes = Bytes();
        *out = std::move(part);
        return;
      }
      case kFinish: {
        FinishPart part;
        part.reason = Name();
        part.prompt_tokens = Number(0, INT64_MAX);
        part.completion_tokens = Number(0, INT64_MAX);
        *out = std::move(part);
        return;
      }
      case kToolCall: {
        ToolCallPart part;
        part.index = static_cast<int32_t>(Number(0, 1024));
        part.id = Name();
        part.name = Name();
        part.arguments = Text();
        *out = std::move(part);
        return;
      }
      default:
        return ReadTensor(out);
    }
  }
  void ReadAudio(Part* out) {
    AudioPart part;
    part.clip = Clip();
    part.sample_rate = Rate();
    bad_ = bad_ || part.sample_rate == 0;
    reader_.Bool(&part.last);
    const std::string_view bytes = Bytes();
    bad_ = bad_ || bytes.size() % sizeof(int16_t) != 0;
    part.samples.resize(bytes.size() / sizeof(int16_t));
    if (!bytes.empty()) {
      std::memcpy(part.samples.data(), bytes.data(), part.samples.size() * sizeof(int16_t));
    }
    *out = std::move(part);
  }
  void ReadHeard(Part* out) {
    HeardPart part;
    part.clip = Clip();
    part.begin = Real();
    part.end = Real();
    uint32_t words = 0;
    reader_.Array(&words);
    for (uint32_t i = 0; i < words && !reader_.failed() && !bad_; ++i) {
      uint32_t size = 0;
      bad_ = !reader_.Array(&size) || size != 3;
      WordTime word;
      word.word = Name();
      word.begin = Real();
      word.end = Real();
      part.words.push_back(std::move(word));
    }
    part.text = Text();
    *out = std::move(part);
  }
  void ReadTensor(Part* out) {
    TensorPart part;
    part.name = Name();
    part.dtype = Name();
    uint32_t dimensions = 0;
    reader_.Array(&dimensions);
    bad_ = bad_ || dimensions > kMaxDimensions;
    for (uint32_t i = 0; i < dimensions && !bad_; ++i) part.shape.push_back(Number(0, INT64_MAX));
    part.data = reader_.Peek() == msgpack::Kind::kNil ? blob_ : nullptr;
    const std::string_view bytes = Bytes();
    if (part.data == nullptr) part.data = Blob::Own(std::string(bytes));
    *out = std::move(part);
  }

  msgpack::Reader& reader_;
  const std::shared_ptr<const Blob> blob_;
  bool bad_ = false;
};

}  // namespace

Status NoMessage(std::string_view what) {
  return Error(StatusCode::kInvalidArgument, fmt::format("no message: {}", what));
}

Status WritePart(const Part& part, MessageWriter& frame) {
  frame.writer().Array(1 + kPartValues[part.index()]);
  frame.writer().Uint(part.index());
  return std::visit(PartWriter{frame}, part);
}

Status WriteReference(size_t index, const ReferenceSound& sound, MessageWriter& frame) {
  const std::string_view bytes(reinterpret_cast<const char*>(sound.samples.data()),
                               sound.samples.size() * sizeof(int16_t));
  std::shared_ptr<const Blob> shared;
  if (bytes.size() > kInlineBytes) {
    PORTICO_ASSIGN_OR_RETURN(shared, sound.Shared());
  }
  frame.writer().Array(1 + kPartValues[kAudio]);
  frame.writer().Uint(kAudio);
  frame.writer().Int(static_cast<int64_t>(index));
  frame.writer().Int(sound.sample_rate);
  frame.writer().Bool(true);
  return frame.Bytes(bytes, std::move(shared));
}

StatusOr<Part> ReadPart(msgpack::Reader& reader, std::shared_ptr<const Blob> blob) {
  return PartReader(reader, std::move(blob)).Read();
}

}  // namespace portico::pipeline
