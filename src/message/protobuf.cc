#include "message/protobuf.h"

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <climits>
#include <mutex>

#include "base/log.h"

namespace portico {
namespace {

namespace pb = google::protobuf;

// What protobuf has complained about in this thread's parse: the only place where it says which
// string is not UTF-8.
thread_local std::string* complaint = nullptr;

void OnLog(pb::LogLevel, const char*, int, const std::string& message) {
  if (complaint != nullptr) {
    *complaint = message;
  } else {
    LogDebug("protobuf: {}", message);
  }
}

// The last name of "String field 'package.Message.field' contains invalid UTF-8 …", or "".
std::string FieldIn(std::string_view message) {
  const size_t begin = message.find('\'');
  const size_t end = message.find('\'', begin + 1);
  if (begin == message.npos || end == message.npos) return {};
  std::string_view name = message.substr(begin + 1, end - begin - 1);
  return std::string(name.substr(name.rfind('.') + 1));
}

}  // namespace

Status ParseProtobuf(std::string_view bytes, pb::MessageLite* message) {
  static std::once_flag quiet;
  std::call_once(quiet, [] { pb::SetLogHandler(OnLog); });

  if (bytes.size() > INT_MAX) return InvalidArgument({}, "the message is too long");
  std::string said;
  complaint = &said;
  const bool parsed = message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  complaint = nullptr;
  if (parsed) return OkStatus();
  const std::string field = FieldIn(said);
  if (!field.empty()) return InvalidArgument(field, fmt::format("{} is not UTF-8", field));
  return InvalidArgument({}, fmt::format("the message is not a {}", message->GetTypeName()));
}

}  // namespace portico
