#include "api/grpc/scheduler/json_struct.h"

#include <google/protobuf/struct.pb.h>

#include <cmath>
#include <map>
#include <string_view>

#include "text/json_writer.h"

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

constexpr double kExact = 9007199254740992.0;  // whole numbers up to here are exact

void AppendObject(const google::protobuf::Struct& object, std::string* out);

// As deep as protobuf's parser lets a message be.
void AppendValue(const google::protobuf::Value& value, std::string* out) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kNumberValue: {
      const double number = value.number_value();
      if (std::trunc(number) == number && std::abs(number) <= kExact) {
        return AppendJsonInt(static_cast<int64_t>(number), out);
      }
      return AppendJsonDouble(number, out);
    }
    case google::protobuf::Value::kStringValue:
      return AppendJsonString(value.string_value(), out);
    case google::protobuf::Value::kBoolValue:
      out->append(value.bool_value() ? "true" : "false");
      return;
    case google::protobuf::Value::kStructValue:
      return AppendObject(value.struct_value(), out);
    case google::protobuf::Value::kListValue:
      out->push_back('[');
      for (int i = 0; i < value.list_value().values_size(); ++i) {
        if (i > 0) out->push_back(',');
        AppendValue(value.list_value().values(i), out);
      }
      out->push_back(']');
      return;
    default:
      out->append("null");
  }
}

void AppendObject(const google::protobuf::Struct& object, std::string* out) {
  std::map<std::string_view, const google::protobuf::Value*> sorted;
  for (const auto& [name, value] : object.fields()) sorted.emplace(name, &value);
  out->push_back('{');
  for (const auto& [name, value] : sorted) {
    if (out->back() != '{') out->push_back(',');
    AppendJsonString(name, out);
    out->push_back(':');
    AppendValue(*value, out);
  }
  out->push_back('}');
}

}  // namespace

std::string JsonOfStruct(const google::protobuf::Struct& object) {
  std::string text;
  AppendObject(object, &text);
  return text;
}

void FillStruct(const Json& object, google::protobuf::Struct* out) {
  if (!object.is_object()) return;
  auto& fields = *out->mutable_fields();
  for (const auto& [name, value] : object.as_object()) FillValue(value, &fields[name]);
}

}  // namespace portico::api::rpc
