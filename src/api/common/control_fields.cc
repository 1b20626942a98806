#include "api/common/control_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/utf8.h"

namespace portico::api {
namespace {

bool IsKnown(std::string_view name, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

}  // namespace

Status NoSuchField(std::string_view path, std::string_view name) {
  return InvalidArgument(name, fmt::format("{} has no field {:.64}: nothing was done", path, name));
}

Status CheckQueryNames(const net::HttpRequest& request,
                       std::initializer_list<std::string_view> known) {
  std::string_view rest = request.query;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view name = rest.substr(0, std::min(rest.find('='), end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name.empty() || IsKnown(name, known)) continue;
    return NoSuchField(request.path, ToValidUtf8(name));
  }
  return OkStatus();
}

Status CheckMemberNames(std::string_view path, const Json& body,
                        std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : body.as_object()) {
    if (!value.is_null() && !IsKnown(name, known)) return NoSuchField(path, name);
  }
  return OkStatus();
}

}  // namespace portico::api
