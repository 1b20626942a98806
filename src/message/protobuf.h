// Protobuf messages to and from bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace google::protobuf {
class MessageLite;
}

namespace portico {

// Reads `bytes` into `message`. INVALID_ARGUMENT for what is no such message; the field is named
// where a string in it is not UTF-8. Nothing is printed: protobuf's own log lines go to the debug
// log.
Status ParseProtobuf(std::string_view bytes, google::protobuf::MessageLite* message);

}  // namespace portico
