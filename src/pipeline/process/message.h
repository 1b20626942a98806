// What a pipeline and its stage processes say to each other: MessagePack arrays [kind, run, …], one
// a datagram, never code or pickled objects. python/portico/stage.py speaks the same.
//
// A datagram is one byte of flags and the array. Bytes of a part that are longer than kInlineBytes
// are a nil there and lie in the memfd that comes with the datagram; an array that is itself longer
// lies in the memfd as a whole (kFlagFrameInFd). Or it has several arrays, one behind the other, without a memfd
// (kFlagSeveral); to a remote host none has.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pipeline/blob.h"
#include "pipeline/part.h"
#include "pipeline/request.h"
#include "text/json.h"

namespace portico::pipeline {

inline constexpr size_t kInlineBytes = 32 << 10;
inline constexpr size_t kMaxDatagram = 128 << 10;
inline constexpr char kFlagFrameInFd = 1;
inline constexpr char kFlagSeveral = 2;

enum class MessageKind : uint8_t {
  // To the stage process.
  kInit = 1,        // JSON: {"stages": [{"name", "factory_path", "factory", "next"}], "folder"}
  kStart = 2,       // stage, JSON of the request
  kPart = 3,        // source, part
  kInputEnd = 4,    // no more parts come
  kAbort = 5,       // nobody waits any more; answered by kEnd as ever
  kRoom = 6,        // so many of the parts that were sent have gone on
  kPing = 7,        // a number
  kProfile = 8,     // JSON: {"run_id", "event_dir", "trace_path_template", "max_bytes"}; {}: stop
  kReference = 9,   // an audio part, `clip` among the request's references; behind kStart
  kSourceEnd = 10,  // source: nothing more comes from it
  kGathered = 11,   // all that the stage waits for has come
  // From it.
  kReady = 16,       // JSON: {"stages": {name: {"max_running", "voices", "speech_fields"}}}
  kFailed = 17,      // why it cannot begin
  kTook = 18,        // a part has been worked on
  kEmit = 19,        // part
  kEnd = 20,         // code (gRPC's), message, field, reason; the last of a run, always
  kPong = 21,        // the ping's number
  kEmitTo = 22,      // one of the stages behind, part
  kChoose = 23,      // JSON: the names of those in `next` that go on; before kEnd
  kEndStreams = 24,  // JSON: the names of those in `stream_to` that are told the end; before kEnd
  kWaitFor = 25,     // JSON: the names of those in `wait_for` that the request waits for
};

// A message as it travels; may be sent to several processes, one after the other.
struct Datagram {
  std::string bytes;
  std::shared_ptr<const Blob> blob;  // goes along; null: nothing

  size_t size() const { return bytes.size() + (blob == nullptr ? 0 : blob->bytes().size()); }
};

// A message as it was read; what its kind does not have is empty.
struct Message {
  MessageKind kind{};
  uint64_t run = 0;
  std::string name;    // stage, source or target
  std::string text;    // JSON, or the reason of kFailed
  int64_t number = 0;  // kRoom, kPing, kPong
  Part part;
  Status status;
};

// `text`: of kInit, kReady and kFailed. UNAVAILABLE where no shared memory is left.
StatusOr<Datagram> TextMessage(MessageKind kind, std::string_view text);
StatusOr<Datagram> StartMessage(uint64_t run, std::string_view stage, std::string_view request);
// kPart, kEmit or kEmitTo; `name` is the source of kPart, the target of kEmitTo.
StatusOr<Datagram> PartMessage(MessageKind kind, uint64_t run, std::string_view name,
                               const Part& part);
Datagram RunMessage(MessageKind kind, uint64_t run);
Datagram SourceEndMessage(uint64_t run, std::string_view source);
Datagram NumberMessage(MessageKind kind, uint64_t run, int64_t number);
Datagram EndMessage(uint64_t run, const Status& status);

// INVALID_ARGUMENT: no message.
StatusOr<Message> ReadMessage(const Datagram& datagram);
// Also of a datagram of several; at least one.
StatusOr<std::vector<Message>> ReadMessages(const Datagram& datagram);

// Adds `datagram` to the several ones in `packed`, which is empty at first. False: it must travel alone.
bool Pack(const Datagram& datagram, Datagram* packed);

StatusOr<Datagram> ReferenceMessage(uint64_t run, size_t index, const ReferenceSound& sound);

// A stage that takes these of kSpeechFields gets the reference, in the order of the request's.
bool GetsReference(const VoiceReference& reference, std::span<const std::string> speech_fields);

// What a stage sees of a request; ReadRequest() gives back what stages of this program look at.
// `speech_fields`: of kSpeechFields, those that the stage takes.
std::string RequestJson(const Request& request, std::span<const std::string> speech_fields = {});
StatusOr<Request> ReadRequest(std::string_view json);

}  // namespace portico::pipeline
