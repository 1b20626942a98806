#include "net/grpc/grpc_wire.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <utility>

#include "base/hex_digit.h"

namespace portico::net {
namespace {

constexpr size_t kMaxTimeoutDigits = 8;
constexpr int64_t kMaxTimeoutValue = 99999999;

struct TimeoutUnit {
  char letter;
  int64_t nanoseconds;
};
constexpr TimeoutUnit kTimeoutUnits[] = {
    {'n', 1},
    {'u', 1000},
    {'m', 1000 * 1000},
    {'S', 1000LL * 1000 * 1000},
    {'M', 60 * 1000LL * 1000 * 1000},
    {'H', 3600 * 1000LL * 1000 * 1000},
};

constexpr char kHexDigits[] = "0123456789ABCDEF";
constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kBase64Values = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 64; ++i) values[static_cast<uint8_t>(kBase64[i])] = static_cast<int8_t>(i);
  return values;
}();

bool IsPrintable(char c) { return c >= 0x20 && c <= 0x7e; }

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool DecodeBase64(std::string_view text, std::string* out) {
  // Padding is all or nothing: it fills the last four characters up.
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) return false;
  out->reserve(out->size() + text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = kBase64Values[static_cast<uint8_t>(c)];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out->push_back(static_cast<char>(bits >> count & 0xff));
  }
  return true;
}

Status BadEntry(std::string_view name, std::string_view what) {
  std::string message = "metadata \"";
  return Error(StatusCode::kInternal, message.append(EncodeGrpcMessage(name)).append(what));
}

}  // namespace

std::optional<Duration> ParseGrpcTimeout(std::string_view value) {
  if (value.size() < 2 || value.size() > kMaxTimeoutDigits + 1) return std::nullopt;
  int64_t number = 0;
  const char* end = value.data() + value.size() - 1;
  // A sign is no digit, but from_chars reads it.
  if (value.front() == '-') return std::nullopt;
  if (std::from_chars(value.data(), end, number).ptr != end) return std::nullopt;
  for (const TimeoutUnit& unit : kTimeoutUnits) {
    if (unit.letter != value.back()) continue;
    if (number > std::numeric_limits<int64_t>::max() / unit.nanoseconds) return Duration::max();
    return std::chrono::nanoseconds(number * unit.nanoseconds);
  }
  return std::nullopt;
}

std::string FormatGrpcTimeout(Duration timeout) {
  int64_t nanoseconds = std::chrono::nanoseconds(timeout).count();
  if (nanoseconds <= 0) return "0n";
  for (const TimeoutUnit& unit : kTimeoutUnits) {
    int64_t number = nanoseconds / unit.nanoseconds + (nanoseconds % unit.nanoseconds != 0);
    if (number <= kMaxTimeoutValue) return std::to_string(number) + unit.letter;
  }
  return std::to_string(kMaxTimeoutValue) + 'H';
}

std::string EncodeGrpcMessage(std::string_view message) {
  std::string out;
  out.reserve(message.size());
  for (size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    // HTTP/2 does not carry blanks at the ends of a value.
    const bool edge_blank = c == ' ' && (i == 0 || i + 1 == message.size());
    if (IsPrintable(c) && c != '%' && !edge_blank) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out.append({'%', kHexDigits[byte >> 4], kHexDigits[byte & 15]});
    }
  }
  return out;
}

std::string DecodeGrpcMessage(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '%' && value.size() - i > 2) {
      int high = HexDigit(value[i + 1]);
      int low = HexDigit(value[i + 2]);
      if (high >= 0 && low >= 0) {
        out.push_back(static_cast<char>(high << 4 | low));
        i += 2;
        continue;
      }
    }
    out.push_back(value[i]);
  }
  return out;
}

std::optional<StatusCode> ParseGrpcStatus(std::string_view value) {
  unsigned number = 0;
  const char* end = value.data() + value.size();
  if (value.empty() ||
      !std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  bool fits = std::from_chars(value.data(), end, number).ec == std::errc();
  constexpr auto kLast = static_cast<unsigned>(StatusCode::kUnauthenticated);
  return fits && number <= kLast ? static_cast<StatusCode>(number) : StatusCode::kUnknown;
}

std::string EncodeBinaryValue(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int count = 0;
  for (char c : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    for (count += 8; count >= 6;) {
      count -= 6;
      out.push_back(kBase64[bits >> count & 63]);
    }
  }
  if (count > 0) out.push_back(kBase64[bits << (6 - count) & 63]);
  return out;
}

std::optional<std::vector<std::string>> DecodeBinaryValues(std::string_view value) {
  std::vector<std::string> out;
  for (;;) {
    const size_t comma = value.find(',');
    if (!DecodeBase64(Trim(value.substr(0, comma)), &out.emplace_back())) return std::nullopt;
    if (comma == std::string_view::npos) return out;
    value.remove_prefix(comma + 1);
  }
}

bool IsBinaryName(std::string_view name) { return name.ends_with("-bin"); }

bool IsReservedHeader(std::string_view name) {
  static constexpr std::string_view kReserved[] = {
      "content-type",      "te",         "user-agent", "host",
      "content-length",    "connection", "keep-alive", "proxy-connection",
      "transfer-encoding", "upgrade",
  };
  if (name.starts_with(':') || name.starts_with("grpc-")) return true;
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

StatusOr<Headers> DecodeMetadata(const Headers& headers) {
  Headers out;
  for (const auto& [name, value] : headers) {
    if (IsReservedHeader(name)) continue;
    if (!IsBinaryName(name)) {
      out.emplace_back(name, value);
      continue;
    }
    auto values = DecodeBinaryValues(value);
    if (!values) return BadEntry(name, "\" is not base64");
    for (std::string& bytes : *values) out.emplace_back(name, std::move(bytes));
  }
  return out;
}

Status EncodeMetadata(const Headers& metadata, Headers* headers) {
  for (const auto& [name, value] : metadata) {
    if (name.empty() || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
      return BadEntry(name, "\": a name has lower-case letters, digits, '-', '_' and '.' only");
    }
    if (IsReservedHeader(name)) return BadEntry(name, "\": the name belongs to gRPC or HTTP");
    if (IsBinaryName(name)) {
      headers->emplace_back(name, EncodeBinaryValue(value));
    } else if (std::all_of(value.begin(), value.end(), IsPrintable)) {
      headers->emplace_back(name, Trim(value));
    } else {
      return BadEntry(name, "\" has bytes other than printable ASCII; such names end in -bin");
    }
  }
  return OkStatus();
}

StatusCode GrpcCodeOfHttp(int http_status) {
  switch (http_status) {
    case 400:
      return StatusCode::kInternal;
    case 401:
      return StatusCode::kUnauthenticated;
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kUnknown;
  }
}

StatusCode GrpcCodeOfReset(uint32_t http2_error) {
  switch (http2_error) {
    case 7:  // REFUSED_STREAM
      return StatusCode::kUnavailable;
    case 8:  // CANCEL
      return StatusCode::kCancelled;
    case 11:  // ENHANCE_YOUR_CALM
      return StatusCode::kResourceExhausted;
    case 12:  // INADEQUATE_SECURITY
      return StatusCode::kPermissionDenied;
    default:
      return http2_error <= 13 ? StatusCode::kInternal : StatusCode::kUnknown;
  }
}

}  // namespace portico::net
