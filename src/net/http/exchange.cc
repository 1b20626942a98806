#include "net/http/exchange.h"

#include <utility>

#include "net/http/http_text.h"

namespace portico::net {

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

void Exchange::EndDropped(bool streaming, const ErrorWriter& write_error) {
  if (streaming) return Cut();
  Respond(ErrorResponse({500, "the request was dropped without an answer"}, write_error));
}

}  // namespace portico::net
