// The text of HTTP answers: heads, reasons, dates, and the answers that the transport gives itself.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

#include "net/http/exchange.h"

namespace portico::net {

std::string_view ReasonPhrase(int status);

// The answer to a request that the transport refuses; 503 has Retry-After.
HttpResponse ErrorResponse(const HttpError& error, const ErrorWriter& write_error);

// The Date header's value, made anew once a second.
class HttpDate {
 public:
  std::string_view Now();

 private:
  std::time_t second_ = -1;
  char text_[40] = {};
  size_t size_ = 0;
};

enum class BodyFraming {
  kLength,   // Content-Length
  kChunked,  // Transfer-Encoding: chunked
  kToEnd,    // the end of the connection ends the body (HTTP/1.0)
  kNone,     // the status has no body
};

// The parts of an HTTP/1.1 head that do not come from the handler.
struct HeadFrame {
  BodyFraming framing = BodyFraming::kLength;
  size_t length = 0;
  std::string_view server;
  std::string_view date;
  // Connection: close, keep-alive (said to HTTP/1.0 clients only) or nothing.
  bool close = false;
  bool keep_alive = false;
};

// Appends status line and headers with the empty line. Header values with line breaks are left out:
// they would let a value that came from a client forge headers.
void AppendHead(const HttpResponse& response, const HeadFrame& frame, std::string* out);

// Appends one chunk of a chunked body; `bytes` is not empty.
void AppendChunk(std::string_view bytes, std::string* out);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Whether a field's value, or a chunk's extension, may be so: no control character but a tab (RFC 9110, 5.5).
bool IsFieldText(std::string_view text);
// Without the optional white space around it (RFC 9110, 5.6.3).
std::string_view TrimBlanks(std::string_view text);

// Percent-decodes a path, but for "%2F": a slash that is part of a name separates nothing (RFC 3986, 2.2), and a proxy in
// front that decides by path has not seen one. False for a bad escape, an escaped NUL or a control character.
bool DecodePath(std::string_view text, std::string* out);

// Decodes a value of a query, slashes too; a plus sign is a space (application/x-www-form-urlencoded). False as above.
bool DecodeQuery(std::string_view text, std::string* out);

}  // namespace portico::net
