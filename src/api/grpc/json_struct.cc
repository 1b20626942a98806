#include "api/grpc/json_struct.h"

#include <google/protobuf/struct.pb.h>

namespace portico::api::rpc {
namespace {

// As deep as the value, which this program has made.
void FillValue(const Json& json, google::protobuf::Value* out) {
  if (json.is_null()) {
    out->set_null_value(google::protobuf::NULL_VALUE);
  } else if (json.is_bool()) {
    out->set_bool_value(json.as_bool());
  } else if (json.is_number()) {
    out->set_number_value(json.as_double());
  } else if (json.is_string()) {
    out->set_string_value(json.as_string());
  } else if (json.is_array()) {
    auto& list = *out->mutable_list_value();
    for (const Json& item : json.as_array()) FillValue(item, list.add_values());
  } else {
    FillStruct(json, out->mutable_struct_value());
  }
}

}  // namespace

void FillStruct(const Json& object, google::protobuf::Struct* out) {
  if (!object.is_object()) return;
  auto& fields = *out->mutable_fields();
  for (const auto& [name, value] : object.as_object()) FillValue(value, &fields[name]);
}

}  // namespace portico::api::rpc
