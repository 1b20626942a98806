#include "api/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "net/http/http_text.h"

namespace portico::api {

StatusOr<std::optional<std::string>> QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    std::string value;
    if (!net::DecodeQuery(pair.substr(std::min(equals + 1, pair.size())), &value)) {
      return InvalidArgument(name, fmt::format("{} has a bad escape in the query", name));
    }
    return std::optional<std::string>(std::move(value));
  }
  return std::optional<std::string>();
}

StatusOr<std::optional<int64_t>> QueryInt(std::string_view query, std::string_view name) {
  PORTICO_ASSIGN_OR_RETURN(const std::optional<std::string> text, QueryValue(query, name));
  if (!text) return std::optional<int64_t>();
  int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error == std::errc() && stop == end) return std::optional<int64_t>(number);
  return InvalidArgument(name, fmt::format("{} must be an integer, got \"{:.48}\"", name, *text));
}

}  // namespace portico::api
