#include "net/exchange.h"

#include <utility>

#include "net/http_text.h"

namespace portico::net {

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

void Exchange::EndDropped(bool streaming) {
  if (streaming) return Cut();
  const HttpError error{500, "the request was dropped without an answer"};
  HttpResponse response;
  response.status = error.status;
  response.body = ErrorBody(error);
  Respond(std::move(response));
}

}  // namespace portico::net
