#include "pipeline/process/message.h"

#include <utility>

#include "message/msgpack/reader.h"
#include "pipeline/process/message_writer.h"
#include "pipeline/process/part_codec.h"
#include "text/utf8.h"

namespace portico::pipeline {
namespace {

constexpr size_t kMaxReason = 4096;

Datagram Small(MessageWriter frame) { return *frame.Take(); }

Status ReadEnd(msgpack::Reader& reader, Message* message) {
  int64_t code = 0;
  std::string_view text;
  std::string_view field;
  std::string_view reason;
  if (!reader.Int(&code) || !reader.Str(&text) || !reader.Str(&field) || !reader.Str(&reason)) {
    return NoMessage("an end without its status");
  }
  if (code < 0 || code > 16 || field.size() > kMaxMessageName || reason.size() > kMaxMessageName) {
    return NoMessage("an end with no known status");
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
      if (!reader.Str(&text) || text.size() > kMaxMessageName) return NoMessage("no name");
      message->name = text;
      if (message->kind == MessageKind::kStart) break;
      [[fallthrough]];
    case MessageKind::kReference:
    case MessageKind::kEmit: {
      PORTICO_ASSIGN_OR_RETURN(message->part, ReadPart(reader, std::move(blob)));
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
      if (!reader.Str(&text) || text.size() > kMaxMessageName) return NoMessage("no name");
      message->name = text;
      return OkStatus();
    case MessageKind::kRoom:
    case MessageKind::kPing:
    case MessageKind::kPong:
      return reader.Int(&message->number) ? OkStatus() : NoMessage("no number");
    case MessageKind::kEnd:
      return ReadEnd(reader, message);
    default:
      return OkStatus();
  }
  if (!reader.Str(&text)) return NoMessage("no text");
  message->text = text;
  return OkStatus();
}

}  // namespace

StatusOr<Datagram> TextMessage(MessageKind kind, std::string_view text) {
  MessageWriter frame(kind, 0, 1);
  frame.writer().Str(text);
  return frame.Take();
}

StatusOr<Datagram> StartMessage(uint64_t run, std::string_view stage, std::string_view request) {
  MessageWriter frame(MessageKind::kStart, run, 2);
  frame.writer().Str(stage);
  frame.writer().Str(request);
  return frame.Take();
}

StatusOr<Datagram> PartMessage(MessageKind kind, uint64_t run, std::string_view name,
                               const Part& part) {
  const bool has_name = kind == MessageKind::kPart || kind == MessageKind::kEmitTo;
  MessageWriter frame(kind, run, has_name ? 2 : 1);
  if (has_name) frame.writer().Str(name);
  PORTICO_RETURN_IF_ERROR(WritePart(part, frame));
  return frame.Take();
}

StatusOr<Datagram> ReferenceMessage(uint64_t run, size_t index, const ReferenceSound& sound) {
  MessageWriter frame(MessageKind::kReference, run, 1);
  PORTICO_RETURN_IF_ERROR(WriteReference(index, sound, frame));
  return frame.Take();
}

Datagram RunMessage(MessageKind kind, uint64_t run) { return Small(MessageWriter(kind, run, 0)); }

Datagram SourceEndMessage(uint64_t run, std::string_view source) {
  MessageWriter frame(MessageKind::kSourceEnd, run, 1);
  frame.writer().Str(source);
  return Small(std::move(frame));
}

Datagram NumberMessage(MessageKind kind, uint64_t run, int64_t number) {
  MessageWriter frame(kind, run, 1);
  frame.writer().Int(number);
  return Small(std::move(frame));
}

Datagram EndMessage(uint64_t run, const Status& status) {
  MessageWriter frame(MessageKind::kEnd, run, 4);
  std::string message(MessageOf(status).substr(0, kMaxReason));
  while (!IsValidUtf8(message)) message.pop_back();
  frame.writer().Int(static_cast<int>(status.code()));
  frame.writer().Str(message);
  frame.writer().Str(FieldOf(status));
  frame.writer().Str(ReasonOf(status));
  return Small(std::move(frame));
}

namespace {

// The next one of the reader's.
StatusOr<Message> ReadNext(msgpack::Reader& reader, std::shared_ptr<const Blob> blob) {
  uint32_t size = 0;
  int64_t kind = 0;
  int64_t run = 0;
  if (!reader.Array(&size) || !reader.Int(&kind) || !reader.Int(&run) || run < 0 || kind < 0 ||
      kind > UINT8_MAX || static_cast<int64_t>(size) != 2 + int64_t{ValuesOf(kind)}) {
    return NoMessage("no array of a known kind");
  }
  Message message;
  message.kind = static_cast<MessageKind>(kind);
  message.run = static_cast<uint64_t>(run);
  PORTICO_RETURN_IF_ERROR(ReadValues(reader, std::move(blob), &message));
  return message;
}

}  // namespace

StatusOr<Message> ReadMessage(const Datagram& datagram) {
  const std::string_view bytes = datagram.bytes;
  const std::shared_ptr<const Blob>& blob = datagram.blob;
  if (bytes.empty()) return NoMessage("nothing");
  const bool in_fd = bytes.front() == kFlagFrameInFd;
  if (!in_fd && bytes.front() != 0) return NoMessage("unknown flags");
  if (in_fd && (blob == nullptr || bytes.size() != 1)) return NoMessage("no frame");
  msgpack::Reader reader(in_fd ? blob->bytes() : bytes.substr(1));
  PORTICO_ASSIGN_OR_RETURN(Message message, ReadNext(reader, in_fd ? nullptr : blob));
  if (!reader.done()) return NoMessage("more than a message");
  return message;
}

StatusOr<std::vector<Message>> ReadMessages(const Datagram& datagram) {
  std::vector<Message> messages;
  const std::string_view bytes = datagram.bytes;
  if (bytes.empty() || bytes.front() != kFlagSeveral) {
    PORTICO_ASSIGN_OR_RETURN(Message message, ReadMessage(datagram));
    messages.push_back(std::move(message));
    return messages;
  }
  if (datagram.blob != nullptr) return NoMessage("several with a memfd");
  msgpack::Reader reader(bytes.substr(1));
  do {
    PORTICO_ASSIGN_OR_RETURN(Message message, ReadNext(reader, nullptr));
    messages.push_back(std::move(message));
  } while (!reader.done());
  return messages;
}

bool Pack(const Datagram& datagram, Datagram* packed) {
  if (datagram.blob != nullptr || datagram.bytes.empty() || datagram.bytes.front() != 0) {
    return false;
  }
  if (packed->bytes.empty()) packed->bytes.push_back(kFlagSeveral);
  packed->bytes.append(datagram.bytes, 1);
  return true;
}

}  // namespace portico::pipeline
