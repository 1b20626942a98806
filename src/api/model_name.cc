#include "api/model_name.h"

#include "api/query.h"

namespace portico::api {

StatusOr<std::string> ModelInQuery(std::string_view query) {
  PORTICO_ASSIGN_OR_RETURN(auto name, QueryValue(query, "model"));
  return std::move(name).value_or("");
}

StatusOr<std::string> ModelInBody(const Json& body) {
  const Json* name = body.Find("model");
  if (name == nullptr || name->is_null()) return std::string();
  if (!name->is_string()) return InvalidArgument("model", "model must be a string");
  return name->as_string();
}

}  // namespace portico::api
