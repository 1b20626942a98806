// JSON values as google.protobuf.Struct.
#pragma once

#include "text/json.h"

namespace google::protobuf {
class Struct;
}

namespace portico::api::rpc {

// Of an object; what is none gives an empty struct. Integers become doubles.
void FillStruct(const Json& object, google::protobuf::Struct* out);

}  // namespace portico::api::rpc
