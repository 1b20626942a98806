#include "net/http/http_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/hex_digit.h"

namespace portico::net {
namespace {

constexpr char kSizeDigits[] = "0123456789abcdef";

template <typename... Parts>
void Append(std::string* out, Parts... parts) {
  (out->append(std::string_view(parts)), ...);
}

std::string_view Decimal(size_t value, char (&digits)[24]) {
  char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return {digits, static_cast<size_t>(end - digits)};
}

// An escaped slash becomes `slash`, a plus sign that is not escaped `plus`.
bool DecodePercent(std::string_view text, std::string_view slash, char plus, std::string* out) {
  out->clear();
  out->reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out->push_back(text[i] == '+' ? plus : text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    const int byte = high * 16 + low;
    if (byte < 0x20 || byte == 0x7f) return false;
    if (byte == '/') {
      out->append(slash);
    } else {
      out->push_back(static_cast<char>(byte));
    }
    i += 2;
  }
  return true;
}

}  // namespace

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

HttpResponse ErrorResponse(const HttpError& error, const ErrorWriter& write_error) {
  HttpResponse response;
  response.status = error.status;
  if (error.status == 503) response.headers.emplace_back("retry-after", "1");
  if (write_error != nullptr) {
    response.body = write_error(error);
  } else {
    response.content_type = "text/plain; charset=utf-8";
    response.body = error.message + "\n";
  }
  return response;
}

std::string_view HttpDate::Now() {
  std::time_t now = std::time(nullptr);
  if (now != second_) {
    second_ = now;
    std::tm parts;
    gmtime_r(&now, &parts);
    size_ = std::strftime(text_, sizeof text_, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  }
  return {text_, size_};
}

void AppendHead(const HttpResponse& response, const HeadFrame& frame, std::string* out) {
  char digits[24];
  Append(out, "HTTP/1.1 ", Decimal(static_cast<size_t>(response.status), digits), " ",
         ReasonPhrase(response.status), "\r\n");
  if (!frame.server.empty()) Append(out, "server: ", frame.server, "\r\n");
  Append(out, "date: ", frame.date, "\r\n");
  if (!response.content_type.empty() && frame.framing != BodyFraming::kNone) {
    Append(out, "content-type: ", response.content_type, "\r\n");
  }
  for (const auto& [name, value] : response.headers) {
    // find_first_of() would look at each byte by itself.
    if (value.find('\r') != std::string::npos || value.find('\n') != std::string::npos) continue;
    Append(out, name, ": ", value, "\r\n");
  }
  if (frame.framing == BodyFraming::kLength) {
    Append(out, "content-length: ", Decimal(frame.length, digits), "\r\n");
  } else if (frame.framing == BodyFraming::kChunked) {
    Append(out, "transfer-encoding: chunked\r\n");
  }
  if (frame.close) {
    Append(out, "connection: close\r\n");
  } else if (frame.keep_alive) {
    Append(out, "connection: keep-alive\r\n");
  }
  Append(out, "\r\n");
}

void AppendChunk(std::string_view bytes, std::string* out) {
  // For each event of a stream; std::to_chars() counts the digits first.
  char line[2 * sizeof(size_t) + 2];
  char* const end = line + sizeof line;
  char* begin = end - 2;
  begin[0] = '\r';
  begin[1] = '\n';
  size_t left = bytes.size();
  do {
    *--begin = kSizeDigits[left & 15];
    left >>= 4;
  } while (left > 0);
  out->append(begin, static_cast<size_t>(end - begin));
  out->append(bytes);
  out->append("\r\n");
}

bool IsFieldText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

std::string_view TrimBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool DecodePath(std::string_view text, std::string* out) {
  if (text.find('%') == std::string_view::npos) {
    out->assign(text);
    return true;
  }
  return DecodePercent(text, /*slash=*/"%2F", /*plus=*/'+', out);
}

bool DecodeQuery(std::string_view text, std::string* out) {
  return DecodePercent(text, /*slash=*/"/", /*plus=*/' ', out);
}

}  // namespace portico::net
