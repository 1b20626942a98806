// JSON values as google.protobuf.Struct.
#pragma once

#include <string>

#include "text/json.h"

namespace google::protobuf {
class Struct;
}

namespace portico::api::rpc {

// Of an object; what is none gives an empty struct. Integers become doubles.
void FillStruct(const Json& object, google::protobuf::Struct* out);

// The text of an object. Whole numbers are written as integers: the struct cannot tell them apart.
std::string JsonOfStruct(const google::protobuf::Struct& object);

}  // namespace portico::api::rpc
