#include "api/sglang/control_body.h"

#include <fmt/format.h>

#include <utility>

#include "api/common/control_fields.h"
#include "text/utf8.h"

namespace portico::api {
namespace {

constexpr size_t kMaxControlNameBytes = 4096;

}  // namespace

StatusOr<Json> ControlObject(const net::HttpRequest& request) {
  PORTICO_RETURN_IF_ERROR(CheckQueryNames(request, {}));
  return ControlObject(request.body);
}

StatusOr<Json> ControlObject(const std::string& body) {
  if (body.empty()) return Json(JsonObject{});
  PORTICO_ASSIGN_OR_RETURN(Json value, Json::Parse(body));
  if (!value.is_object()) return InvalidArgument("", "the body must be a JSON object");
  return value;
}

StatusOr<Json> ControlMembers(const net::HttpRequest& request,
                              std::initializer_list<std::string_view> known) {
  PORTICO_ASSIGN_OR_RETURN(Json value, ControlObject(request));
  PORTICO_RETURN_IF_ERROR(CheckMemberNames(request.path, value, known));
  return value;
}

StatusOr<std::string> ControlName(const Json& request, std::string_view field) {
  const Json* value = request.Find(field);
  if (value == nullptr || !value->is_string() || value->as_string().empty() ||
      value->as_string().size() > kMaxControlNameBytes || !IsValidUtf8(value->as_string())) {
    return InvalidArgument(field, fmt::format("{} is required and must be a short text", field));
  }
  return value->as_string();
}

StatusOr<bool> ControlFlag(const Json& request, std::string_view field) {
  const Json* value = request.Find(field);
  if (value == nullptr || value->is_null()) return false;
  if (!value->is_bool()) return InvalidArgument(field, fmt::format("{} must be a boolean", field));
  return value->as_bool();
}

}  // namespace portico::api
