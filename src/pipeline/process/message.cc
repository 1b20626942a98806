#include "pipeline/process/message.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "message/msgpack/reader.h"
#include "message/msgpack/writer.h"
#include "text/utf8.h"

namespace portico::pipeline {
namespace {

constexpr size_t kMaxName = 256;
constexpr size_t kMaxReason = 4096;
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

Status Garbage(std::string_view what) {
  return Error(StatusCode::kInvalidArgument, fmt::format("no message: {}", what));
}

class Frame {
 public:
  Frame(MessageKind kind, uint64_t run, size_t values) : writer_(&bytes_) {
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

Datagram Small(Frame frame) { return *frame.Take(); }

struct PartWriter {
  Frame& frame;

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

// Values of each kind of part behind its number.
constexpr uint32_t kPartValues[] = {1, 2, 4, 5, 2, 3, 3, 4, 4};

class PartReader {
 public:
  PartReader(msgpack::Reader& reader, std::shared_ptr<const Blob> blob)
      : reader_(reader), blob_(std::move(blob)) {}

  StatusOr<Part> Read() {
    uint32_t size = 0;
    int64_t kind = 0;
    if (!reader_.Array(&size) || !reader_.Int(&kind) || kind < kText || kind > kToolCall ||
        size != 1 + kPartValues[kind]) {
      return Garbage("a part of no known kind");
    }
    Part part;
    ReadInto(kind, &part);
    if (bad_ || reader_.failed()) return Garbage("a part that is not well formed");
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
    bad_ = bad_ || name.size() > kMaxName;
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

Status ReadEnd(msgpack::Reader& reader, Message* message) {
  int64_t code = 0;
  std::string_view text;
  std::string_view field;
  std::string_view reason;
  if (!reader.Int(&code) || !reader.Str(&text) || !reader.Str(&field) || !reader.Str(&reason)) {
    return Garbage("an end without its status");
  }
  if (code < 0 || code > 16 || field.size() > kMaxName || reason.size() > kMaxName) {
    return Garbage("an end with no known status");
  }
  if (code == 0) return OkStatus();
  std::string said(text.substr(0, kMaxReason));
  while (!IsValidUtf8(said)) said.pop_back();
  message->status = Error(static_cast<StatusCode>(code), std::move(said), field, reason);
  return OkStatus();
}

// Values behind [kind, run]; -1 for no kind.
int ValuesOf(int64_t kind) {
  switch (static_cast<MessageKind>(kind)) {
    case MessageKind::kInputEnd:
    case MessageKind::kAbort:
    case MessageKind::kTook:
    case MessageKind::kGathered:
      return 0;
    case MessageKind::kInit:
    case MessageKind::kRoom:
    case MessageKind::kPing:
    case MessageKind::kProfile:
    case MessageKind::kReady:
    case MessageKind::kFailed:
    case MessageKind::kEmit:
    case MessageKind::kReference:
    case MessageKind::kChoose:
    case MessageKind::kEndStreams:
    case MessageKind::kWaitFor:
    case MessageKind::kSourceEnd:
    case MessageKind::kPong:
      return 1;
    case MessageKind::kStart:
    case MessageKind::kPart:
    case MessageKind::kEmitTo:
      return 2;
    case MessageKind::kEnd:
      return 4;
  }
  return -1;
}

Status ReadValues(msgpack::Reader& reader, std::shared_ptr<const Blob> blob, Message* message) {
  std::string_view text;
  switch (message->kind) {
    case MessageKind::kStart:
    case MessageKind::kPart:
    case MessageKind::kEmitTo:
      if (!reader.Str(&text) || text.size() > kMaxName) return Garbage("no name");
      message->name = text;
      if (message->kind == MessageKind::kStart) break;
      [[fallthrough]];
    case MessageKind::kReference:
    case MessageKind::kEmit: {
      PORTICO_ASSIGN_OR_RETURN(message->part, PartReader(reader, std::move(blob)).Read());
      return OkStatus();
    }
    case MessageKind::kInit:
    case MessageKind::kProfile:
    case MessageKind::kReady:
    case MessageKind::kFailed:
    case MessageKind::kChoose:
    case MessageKind::kEndStreams:
    case MessageKind::kWaitFor:
      break;
    case MessageKind::kSourceEnd:
      if (!reader.Str(&text) || text.size() > kMaxName) return Garbage("no name");
      message->name = text;
      return OkStatus();
    case MessageKind::kRoom:
    case MessageKind::kPing:
    case MessageKind::kPong:
      return reader.Int(&message->number) ? OkStatus() : Garbage("no number");
    case MessageKind::kEnd:
      return ReadEnd(reader, message);
    default:
      return OkStatus();
  }
  if (!reader.Str(&text)) return Garbage("no text");
  message->text = text;
  return OkStatus();
}

}  // namespace

StatusOr<Datagram> TextMessage(MessageKind kind, std::string_view text) {
  Frame frame(kind, 0, 1);
  frame.writer().Str(text);
  return frame.Take();
}

StatusOr<Datagram> StartMessage(uint64_t run, std::string_view stage, std::string_view request) {
  Frame frame(MessageKind::kStart, run, 2);
  frame.writer().Str(stage);
  frame.writer().Str(request);
  return frame.Take();
}

StatusOr<Datagram> PartMessage(MessageKind kind, uint64_t run, std::string_view name,
                               const Part& part) {
  const bool has_name = kind == MessageKind::kPart || kind == MessageKind::kEmitTo;
  Frame frame(kind, run, has_name ? 2 : 1);
  if (has_name) frame.writer().Str(name);
  frame.writer().Array(1 + kPartValues[part.index()]);
  frame.writer().Uint(part.index());
  PORTICO_RETURN_IF_ERROR(std::visit(PartWriter{frame}, part));
  return frame.Take();
}

StatusOr<Datagram> ReferenceMessage(uint64_t run, size_t index, const ReferenceSound& sound) {
  const std::string_view bytes(reinterpret_cast<const char*>(sound.samples.data()),
                               sound.samples.size() * sizeof(int16_t));
  std::shared_ptr<const Blob> shared;
  if (bytes.size() > kInlineBytes) {
    PORTICO_ASSIGN_OR_RETURN(shared, sound.Shared());
  }
  Frame frame(MessageKind::kReference, run, 1);
  frame.writer().Array(1 + kPartValues[kAudio]);
  frame.writer().Uint(kAudio);
  frame.writer().Int(static_cast<int64_t>(index));
  frame.writer().Int(sound.sample_rate);
  frame.writer().Bool(true);
  PORTICO_RETURN_IF_ERROR(frame.Bytes(bytes, std::move(shared)));
  return frame.Take();
}

Datagram RunMessage(MessageKind kind, uint64_t run) { return Small(Frame(kind, run, 0)); }

Datagram SourceEndMessage(uint64_t run, std::string_view source) {
  Frame frame(MessageKind::kSourceEnd, run, 1);
  frame.writer().Str(source);
  return Small(std::move(frame));
}

Datagram NumberMessage(MessageKind kind, uint64_t run, int64_t number) {
  Frame frame(kind, run, 1);
  frame.writer().Int(number);
  return Small(std::move(frame));
}

Datagram EndMessage(uint64_t run, const Status& status) {
  Frame frame(MessageKind::kEnd, run, 4);
  std::string message(MessageOf(status).substr(0, kMaxReason));
  while (!IsValidUtf8(message)) message.pop_back();
  frame.writer().Int(static_cast<int>(status.code()));
  frame.writer().Str(message);
  frame.writer().Str(FieldOf(status));
  frame.writer().Str(ReasonOf(status));
  return Small(std::move(frame));
}

StatusOr<Message> ReadMessage(const Datagram& datagram) {
  const std::string_view bytes = datagram.bytes;
  const std::shared_ptr<const Blob>& blob = datagram.blob;
  if (bytes.empty()) return Garbage("nothing");
  const bool in_fd = bytes.front() == kFlagFrameInFd;
  if (!in_fd && bytes.front() != 0) return Garbage("unknown flags");
  if (in_fd && (blob == nullptr || bytes.size() != 1)) return Garbage("no frame");
  msgpack::Reader reader(in_fd ? blob->bytes() : bytes.substr(1));
  uint32_t size = 0;
  int64_t kind = 0;
  int64_t run = 0;
  if (!reader.Array(&size) || !reader.Int(&kind) || !reader.Int(&run) || run < 0 || kind < 0 ||
      kind > UINT8_MAX || static_cast<int64_t>(size) != 2 + int64_t{ValuesOf(kind)}) {
    return Garbage("no array of a known kind");
  }
  Message message;
  message.kind = static_cast<MessageKind>(kind);
  message.run = static_cast<uint64_t>(run);
  PORTICO_RETURN_IF_ERROR(ReadValues(reader, in_fd ? nullptr : blob, &message));
  if (!reader.done()) return Garbage("more than a message");
  return message;
}

}  // namespace portico::pipeline
