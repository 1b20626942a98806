#include "net/exchange.h"

namespace portico::net {

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace portico::net
