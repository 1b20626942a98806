#include "net/http/exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "net/http/http_text.h"
#include "net/loop/out_of_memory.h"

namespace portico::net {

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string_view HttpRequest::BodyCoding() const {
  for (const auto& [key, value] : headers) {
    if (key != "content-encoding") continue;
    for (std::string_view rest = value; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      const auto coding = absl::StripAsciiWhitespace(absl::string_view(rest.data(), end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (coding.empty() || absl::EqualsIgnoreCase(coding, "identity")) continue;
      return {coding.data(), coding.size()};
    }
  }
  return {};
}

void NoteId(const HttpResponse& response, HttpRequest* request) {
  const auto is_id = [](const auto& header) { return header.first == "x-request-id"; };
  const auto answered = std::find_if(response.headers.begin(), response.headers.end(), is_id);
  if (answered == response.headers.end()) return;
  const auto asked = std::find_if(request->headers.begin(), request->headers.end(), is_id);
  if (asked == request->headers.end()) {
    request->headers.push_back(*answered);
  } else {
    asked->second = answered->second;
  }
}

void Exchange::EndDropped(bool streaming, const ErrorWriter& write_error) {
  if (streaming) return Cut();
  if (IsOutOfMemory()) {
    return Respond(ErrorResponse({503, std::string(kOutOfMemory)}, write_error));
  }
  Respond(ErrorResponse({500, "the request was dropped without an answer"}, write_error));
}

}  // namespace portico::net
